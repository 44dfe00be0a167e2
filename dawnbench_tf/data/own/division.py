"""Division of examples into a training and a test set, and selection of a part of them."""

from collections.abc import Sequence

import numpy as np

from dawnbench_tf.refusals import refuse

_VALIDATION, _PART = 2026, 2027  # purposes of random numbers


def divide(
    labels: np.ndarray, share: float, seed: int, names: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Divides examples at random into a training and a test set, class by class.

    Each class has at least one example in each set. The division depends on labels, share and seed
    only. Returns ascending indices of both.

    >>> train, test = divide(np.repeat([0, 1], [8, 4]), share=0.25, seed=0)
    >>> len(train), len(test)
    (9, 3)
    """
    test: list[np.ndarray] = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if len(own) < 2:
            name = names[label] if len(names) else label
            text = f"class {name} has one example; each needs 2, for training and for the test"
            refuse("validation_share", share, text)
        count = min(max(round(share * len(own)), 1), len(own) - 1)
        test.append(np.random.default_rng([seed, _VALIDATION, int(label)]).permutation(own)[:count])
    chosen = np.sort(np.concatenate(test))
    return np.setdiff1d(np.arange(len(labels)), chosen), chosen


def choose(examples: int, count: int, seed: int) -> np.ndarray:
    """Returns the indices of a part of the training examples: the first of a random order."""
    # A larger part with the same seed contains a smaller one.
    if count > examples:
        refuse("train_examples", count, f"should be at most the {examples:,} examples there are")
    return np.sort(np.random.default_rng([seed, _PART]).permutation(examples)[:count])
