"""Top-k accuracy of image classifiers, in NumPy; training and inference both use it."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np


def top_accuracies(
    outputs: np.ndarray, references: np.ndarray, most: tuple[int, ...] = (1,)
) -> dict[str, float]:
    """Returns {"topKAccuracy": percent}: how often the true class is among the k largest outputs.

    Ties go to the lower class, as in `np.argmax`. An example with a NaN output counts as wrong.
    `outputs`: (examples, classes); `references`: true classes; `most`: the values of k. Raises
    ValueError if their numbers of examples differ.

    >>> top_accuracies(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]), most=(1, 2))
    {'top1Accuracy': 50.0, 'top2Accuracy': 100.0}
    """
    if len(outputs) != len(references):
        raise ValueError(
            f"each of {len(references)} examples should be scored once. "
            f"Received: {len(outputs)} outputs"
        )
    classes = np.arange(outputs.shape[1])
    true = references[:, None]
    true_outputs = np.where(true == classes, outputs, -np.inf).max(1, keepdims=True)
    ahead = (outputs > true_outputs) | ((outputs == true_outputs) & (classes < true))
    ranks = ahead.sum(1)  # 0 where the true class has the largest output
    answered = np.isfinite(true_outputs[:, 0]) & ~np.isnan(outputs).any(1)
    return {
        f"top{k}Accuracy": 100 * int(np.sum(answered & (ranks < k))) / len(references) for k in most
    }


def class_accuracies(
    outputs: np.ndarray, references: np.ndarray, names: Sequence[str]
) -> dict[str, float]:
    """Returns the top-1 accuracy in percent of each class that has examples, the lowest first.

    >>> class_accuracies(np.array([[0.1, 0.9], [0.8, 0.2], [0.2, 0.8]]), np.array([1, 1, 0]), "ab")
    {'a': 0.0, 'b': 50.0}
    """
    right = (outputs.argmax(1) == references) & ~np.isnan(outputs).any(1)
    shares = {names[c]: 100 * float(right[references == c].mean()) for c in np.unique(references)}
    return dict(sorted(shares.items(), key=lambda item: item[1]))


def mistakes(
    outputs: np.ndarray, references: np.ndarray, count: int
) -> list[tuple[int, int, float]]:
    """Returns (example, answer, its probability) of at most `count` most confident mistakes.

    >>> logits = np.log([[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]])
    >>> [(i, answer, round(p, 3)) for i, answer, p in mistakes(logits, np.array([0, 1, 0]), 2)]
    [(2, 1, 0.9), (0, 1, 0.75)]
    """
    shifted = np.exp(outputs - outputs.max(1, keepdims=True))
    sure, answers = 1 / shifted.sum(1), outputs.argmax(1)
    wrong = np.flatnonzero(answers != references)
    first = wrong[np.argsort(-sure[wrong], kind="stable")][:count]
    return [(int(i), int(answers[i]), float(sure[i])) for i in first]


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], dict[str, float]]] = {
    "top1": top_accuracies,
    "top1_and_top5": partial(top_accuracies, most=(1, 5)),
}
