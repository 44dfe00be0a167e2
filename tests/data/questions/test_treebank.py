"""nltk's tokens have exact offsets and the seed's boundaries; a stand-in splits sentences."""

import re
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from dawnbench_tf.data.questions import tokens, treebank
from dawnbench_tf.refusals import Refusal


class Sentences:
    """A stand-in for Punkt, whose data is a download: sentences end at a period and a space."""

    def __init__(self, language):
        pass

    def span_tokenize(self, text):
        offset = 0
        for match in re.finditer(r"\. |$", text):
            if text[offset : match.end()].strip():
                yield offset, match.end()
            offset = match.end()


@pytest.fixture(autouse=True, scope="module")
def nltk():
    treebank._tokenizers.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nltk.tokenize.PunktTokenizer", Sentences)
        yield
    treebank._tokenizers.cache_clear()


@given(st.text("ab .,'\"`()-:;?!$#n't\n\u201c%&*/") | st.text())
def test_words_are_the_text_but_for_white_space(text):
    offsets = tokens.offsets(text, "treebank")
    assert "".join(text[a:b] for a, b in offsets) == re.sub(r"\s", "", text)
    assert all(a < b for a, b in offsets)
    assert all(b <= c for (_, b), (c, _) in pairwise(offsets))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's the 19th of May. U.S. law won't.", "It ' s the 19th of May . U.S . law wo n ' t ."),
        ('He said "no" (twice).', 'He said " no " ( twice ) .'),
        ("1990–95, $1,000.50 and/or 5%", "1990 – 95 , $ 1,000.50 and / or 5 %"),
    ],
)
def test_tokens_are_the_seed_s(text, words):
    assert [text[a:b] for a, b in tokens.offsets(text, "treebank")] == words.split(" ")


def test_quotes_are_parted_by_nltk_s_rules():
    """Compared with nltk's own tokens, joined, in texts without unusual quotes."""
    text = "The Norman's army (1066) cannot lose. We'll see, i.e. 3.5% more..."
    words = [w for s in re.split(r"(?<=\.) ", text) for w in NLTKWordTokenizer().tokenize(s)]
    wanted = [part for word in words for part in re.split("(')", word) if part]
    assert [text[a:b] for a, b in tokens.offsets(text, "treebank")] == wanted


def test_what_is_not_installed_is_one_line(monkeypatch):
    treebank._tokenizers.cache_clear()

    def no_data(language):
        raise LookupError("Resource punkt_tab not found.\nPlease use the NLTK Downloader")

    stand_in = SimpleNamespace(PunktTokenizer=no_data, NLTKWordTokenizer=NLTKWordTokenizer)
    monkeypatch.setitem(sys.modules, "nltk.tokenize", stand_in)
    with pytest.raises(Refusal, match="--tokenizer=treebank: nltk's sentences are not installed"):
        treebank.version()
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    with pytest.raises(Refusal, match="--tokenizer=treebank: nltk is not installed; pip install"):
        treebank.version()
    treebank._tokenizers.cache_clear()
