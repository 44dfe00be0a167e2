"""The answer in a passage: the best first and last word, from their logits. NumPy only."""

from typing import NamedTuple

import numpy as np


class Answers(NamedTuple):
    """Predicted answers, one for each question, in the questions' order."""

    texts: list[str]
    ends: np.ndarray  # (questions, 2): first and last word


def best(logits: np.ndarray, most_words: int | None = None) -> np.ndarray:
    """First and last word i <= j with the highest p(first = i) p(last = j).

    Args:
      logits: of first and last word, (batch, 2, words); padding is far below all words.
      most_words: words of an answer, at most; None: no limit, as the original.

    Returns:
      int (batch, 2).
    """
    first, last = logits[:, 0], logits[:, 1]
    words = first.shape[1]
    total = np.full(first.shape, -np.inf, np.float64)  # of the best span that ends there
    starts = np.zeros(first.shape, np.int64)
    if most_words is None:
        highest = np.maximum.accumulate(first, 1)
        new = first > np.pad(highest, [(0, 0), (1, 0)], constant_values=-np.inf)[:, :-1]
        starts = np.maximum.accumulate(np.where(new, np.arange(words), 0), 1)
        total = highest.astype(np.float64) + last
    else:
        for back in range(min(most_words, words)):
            value = first[:, : words - back].astype(np.float64) + last[:, back:]
            better = value > total[:, back:]
            total[:, back:] = np.where(better, value, total[:, back:])
            starts[:, back:] = np.where(better, np.arange(words - back), starts[:, back:])
    j = np.argmax(total, 1)
    return np.stack([starts[np.arange(len(j)), j], j], 1)


def probability(logits: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """p(first) p(last) of each span in `ends` (batch, 2)."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    shares = shifted / shifted.sum(-1, keepdims=True)
    row = np.arange(len(ends))
    return shares[row, 0, ends[:, 0]] * shares[row, 1, ends[:, 1]]
