"""The best span, compared with brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.data.questions import spans


@settings(deadline=None)
@given(st.integers(1, 7), st.none() | st.integers(1, 8), st.integers(0, 10_000), st.booleans())
def test_the_best_span_equals_brute_force(words, most, seed, ties):
    rng = np.random.default_rng(seed)
    logits = rng.integers(0, 3, (4, 2, words)) if ties else rng.normal(size=(4, 2, words))
    logits = logits.astype(np.float32)
    best = spans.best(logits, most)
    for (i, j), (first, last) in zip(best, logits, strict=True):
        allowed = [
            (a, b)
            for a, b in itertools.product(range(words), repeat=2)
            if a <= b and (not most or b - a < most)
        ]
        assert (i, j) in allowed
        assert first[i] + last[j] == pytest.approx(max(first[a] + last[b] for a, b in allowed))


def test_the_probability_is_that_of_both_ends():
    logits = np.log([[[0.2, 0.8], [0.3, 0.7]]])
    assert spans.probability(logits, np.array([[0, 1]])) == pytest.approx([0.2 * 0.7])
    assert [spans.past_marks("Jose\u0301\u0323 s", end) for end in (3, 4, 7)] == [3, 6, 7]
