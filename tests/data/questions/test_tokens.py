"""Tokens have exact offsets in any text."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.data.questions import tokens


@pytest.mark.parametrize("tokenizer", ["glove", "words"])
@given(text=st.text())
def test_words_are_the_text_but_for_white_space(tokenizer, text):
    offsets = tokens.offsets(text, tokenizer)
    assert "".join(text[a:b] for a, b in offsets) == re.sub(r"\s", "", text)
    assert all(a < b for a, b in offsets)
    assert all(b <= c for (_, b), (c, _) in pairwise(offsets))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 3.5% of $1,000-2,000.", "It 's 3.5 % of $ 1,000 - 2,000 ."),
        ("they’ll can't", "they ’ll ca n't"),
        ("U.S. (1990s) naïve 日本 👍🏽", "U . S . ( 1990 s ) naïve 日本 👍 🏽"),
        ("a\tb\u00a0c\x00d", "a b c \x00 d"),
    ],
)
def test_words_are_cut_where_answers_end(text, words):
    assert [text[a:b] for a, b in tokens.offsets(text)] == words.split(" ")


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
