"""Words keep their places, whatever the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dawnbench_tf.data import tokens


@given(st.text())
def test_words_are_the_text_but_for_white_space(text):
    places = tokens.places(text)
    assert "".join(text[a:b] for a, b in places) == re.sub(r"\s", "", text)
    assert all(a < b for a, b in places)
    assert all(b <= c for (_, b), (c, _) in zip(places, places[1:], strict=False))


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
    assert [text[a:b] for a, b in tokens.places(text)] == words.split(" ")


@given(st.text("ab -", min_size=1), st.data())
def test_an_answer_comes_back_from_its_words(text, data):
    places = tokens.places(text)
    if not places:
        return
    first = data.draw(st.integers(0, len(places) - 1))
    last = data.draw(st.integers(first, len(places) - 1))
    assert tokens.span(places, places[first][0], places[last][1]) == (first, last)


@pytest.mark.parametrize(("start", "found"), [(4, 4), (5, 4), (1, 0), (-3, 0), (99, 8)])
def test_a_start_that_is_off_means_the_nearest(start, found):
    assert tokens.locate("abc abc abc", "abc", start) == found
    assert tokens.locate("abc", "xyz", start) == -1
