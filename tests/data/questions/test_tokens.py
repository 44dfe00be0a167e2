"""Tokens have exact offsets in any text, and the seeds' boundaries; a stand-in splits sentences."""

import re
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from dawnbench_tf.data.questions import tokens
from dawnbench_tf.refusals import Refusal


class Sentences:
    """A stand-in for Punkt, whose data is a download: sentences end at a period and a space."""

    def __init__(self, language):
        pass

    def span_tokenize(self, text):
        return [match.span() for match in re.finditer(r"(?s)\S.*?(\. |\Z)", text)]


@pytest.fixture(autouse=True, scope="module")
def nltk():
    tokens._tokenizers.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nltk.tokenize.PunktTokenizer", Sentences)
        yield
    tokens._tokenizers.cache_clear()


@pytest.mark.parametrize("tokenizer", ["glove", "words", "treebank"])
@given(text=st.text("ab .,'\"`()-:;?!$#n't\n\u201c%&*/") | st.text())
def test_words_are_the_text_but_for_white_space(tokenizer, text):
    offsets = tokens.offsets(text, tokenizer)
    assert "".join(text[a:b] for a, b in offsets) == re.sub(r"\s", "", text)
    assert all(a < b for a, b in offsets)
    assert all(b <= c for (_, b), (c, _) in pairwise(offsets))


@pytest.mark.parametrize(
    ("tokenizer", "text", "words"),
    [
        ("glove", "It's 3.5% of $1,000-2,000.", "It 's 3.5 % of $ 1,000 - 2,000 ."),
        ("glove", "they’ll can't", "they ’ll ca n't"),
        ("glove", "U.S. (1990s) naïve 日本 👍🏽", "U . S . ( 1990 s ) naïve 日本 👍 🏽"),
        ("glove", "a\tb\u00a0c\x00d", "a b c \x00 d"),
        ("treebank", "It's 19 May. U.S. law won't.", "It ' s 19 May . U.S . law wo n ' t ."),
        ("treebank", 'He said "no" (twice).', 'He said " no " ( twice ) .'),
        ("treebank", "1990–95, $1,000.50 and/or 5%", "1990 – 95 , $ 1,000.50 and / or 5 %"),
    ],
)
def test_words_are_cut_where_answers_end(tokenizer, text, words):
    assert [text[a:b] for a, b in tokens.offsets(text, tokenizer)] == words.split(" ")


@settings(deadline=None)
@given(st.text("ab -", min_size=1), st.data())
def test_an_answer_comes_back_from_its_words(text, data):
    offsets = tokens.offsets(text)
    if not offsets:
        return
    first = data.draw(st.integers(0, len(offsets) - 1))
    last = data.draw(st.integers(first, len(offsets) - 1))
    assert tokens.span(offsets, offsets[first][0], offsets[last][1]) == (first, last)


@pytest.mark.parametrize(("start", "nearest"), [(4, 4), (5, 4), (1, 0), (-3, 0), (99, 8)])
def test_a_start_that_is_off_means_the_nearest(start, nearest):
    assert tokens.locate("abc abc abc", "abc", start) == nearest
    assert tokens.locate("abc", "xyz", start) == -1


def test_quotes_are_parted_by_nltk_s_rules():
    """Compared with nltk's own tokens, joined, in texts without unusual quotes."""
    text = "The Norman's army (1066) cannot lose. We'll see, i.e. 3.5% more..."
    words = [w for s in re.split(r"(?<=\.) ", text) for w in NLTKWordTokenizer().tokenize(s)]
    wanted = [part for word in words for part in re.split("(')", word) if part]
    assert [text[a:b] for a, b in tokens.offsets(text, "treebank")] == wanted


def test_what_is_not_installed_is_one_line(monkeypatch):
    tokens._tokenizers.cache_clear()

    def no_data(language):
        raise LookupError("Resource punkt_tab not found.\nPlease use the NLTK Downloader")

    stand_in = SimpleNamespace(PunktTokenizer=no_data, NLTKWordTokenizer=NLTKWordTokenizer)
    monkeypatch.setitem(sys.modules, "nltk.tokenize", stand_in)
    with pytest.raises(Refusal, match="--tokenizer=treebank: nltk's sentences are not installed"):
        tokens.version("treebank")
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    with pytest.raises(Refusal, match="--tokenizer=treebank: nltk is not installed; pip install"):
        tokens.version("treebank")
    tokens._tokenizers.cache_clear()
