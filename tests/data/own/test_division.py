"""Division into training and test, and the part that --train_examples selects."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dawnbench_tf.data.own import division
from dawnbench_tf.refusals import Refusal

CLASSES = st.lists(st.integers(2, 30), min_size=1, max_size=5)  # examples of each class


@given(CLASSES, st.floats(0.01, 0.9), st.integers(0, 99))
def test_every_example_is_in_one_set_and_every_class_in_both(counts, share, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    train, test = division.divide(labels, share, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label, count in enumerate(counts):
        own = np.sum(labels[test] == label)
        assert 1 <= own < count and abs(own - share * count) <= 1


def test_a_class_of_one_example_is_refused():
    with pytest.raises(Refusal, match="class 1 has one example"):
        division.divide(np.array([0, 0, 1]), 0.5, 0)


@given(st.integers(1, 60), st.integers(0, 9))
def test_a_larger_part_contains_a_smaller_one(count, seed):
    larger, smaller = (set(division.choose(80, n, seed)) for n in (count + 10, count))
    assert smaller < larger <= set(range(80))


def test_more_examples_than_there_are_are_refused():
    with pytest.raises(Refusal, match=r"--train_examples=9: should be at most the 8 examples"):
        division.choose(8, 9, 0)
