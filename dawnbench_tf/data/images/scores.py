"""Accuracies of classifiers: NumPy in, `{column: score}` out, every example counted.

Used alike by training's callback and by inference, whatever ran the model.
"""

from collections.abc import Callable
from functools import partial

import numpy as np


def top_accuracies(
    outputs: np.ndarray, references: np.ndarray, most: tuple[int, ...] = (1,)
) -> dict[str, float]:
    """Top-k accuracies in percent: how often the true class is among the k likeliest.

    Of equal outputs the earlier class counts as the likelier, as in `np.argmax`; an output that is
    not a number counts as wrong.

    Args:
      outputs: logits or probabilities, (examples, classes).
      references: true classes, (examples,).
      most: each k.

    Raises:
      ValueError: there is not one output for each example.

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
    of_true = np.where(true == classes, outputs, -np.inf).max(1, keepdims=True)
    ahead = (outputs > of_true) | ((outputs == of_true) & (classes < true))
    ranks = ahead.sum(1)  # 0 where the true class is the likeliest
    answered = np.isfinite(of_true[:, 0]) & ~np.isnan(outputs).any(1)
    return {
        f"top{k}Accuracy": 100 * int(np.sum(answered & (ranks < k))) / len(references) for k in most
    }


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], dict[str, float]]] = {
    "top1": top_accuracies,
    "top1_and_top5": partial(top_accuracies, most=(1, 5)),
}
