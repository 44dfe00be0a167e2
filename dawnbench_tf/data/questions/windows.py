"""Windows: what a network reads at once, a question with its context or with a part of it.

A context that is too long for BERT is read in windows that overlap; of what they answer, the best
counts (google-research/bert, run_squad.py: `doc_stride`, `_check_is_max_context`).
"""

from typing import NamedTuple

import numpy as np

from dawnbench_tf.data.questions import spans
from dawnbench_tf.data.questions.encoding import EncodedSplit
from dawnbench_tf.recipe import Questions

SIGNS = 3  # of a sequence: [CLS], and [SEP] twice


class Windows(NamedTuple):
    """One row each; a question's own follow one another."""

    questions: np.ndarray  # (windows,): index
    firsts: np.ndarray  # first token of the context
    pasts: np.ndarray  # past its last

    def rows(self, places: np.ndarray) -> "Windows":
        """Some of them, by index."""
        return Windows(*(values[places] for values in self))

    def find(self, index: int) -> np.ndarray:
        """Indices of a question's windows."""
        return np.arange(*np.searchsorted(self.questions, [index, index + 1]))

    def lengths(self) -> np.ndarray:
        """Tokens of the context in each."""
        return self.pasts - self.firsts


def build(split: EncodedSplit, form: Questions) -> Windows:
    """The windows of a split: one for each question, where `sequence_length` sets no limit."""
    lengths = split.contexts.lengths()[split.context_of_question]
    fits = lengths
    if form.sequence_length:
        fits = form.sequence_length - SIGNS - question_lengths(split, form)
    strides = np.clip(fits, 1, form.document_stride)
    counts = 1 - (np.minimum(fits - lengths, 0) // strides)
    questions = np.repeat(np.arange(len(lengths)), counts)
    places = np.arange(len(questions)) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = places * strides[questions]
    return Windows(questions, firsts, np.minimum(firsts + fits[questions], lengths[questions]))


def question_lengths(split: EncodedSplit, form: Questions) -> np.ndarray:
    """Tokens of each question, as many as are read of it."""
    lengths = split.questions.lengths()
    return np.minimum(lengths, form.most_question_tokens) if form.sequence_length else lengths


class Merged:
    """The answers of all questions, out of their windows'.

    Args:
      windows: of a split.
      most_tokens: of an answer; 0: no limit.
    """

    def __init__(self, windows: Windows, most_tokens: int):
        self._windows, self._most = windows, most_tokens
        count = int(windows.questions[-1]) + 1
        self._scores = np.full(count, -np.inf)
        self._several = np.bincount(windows.questions)[windows.questions] > 1
        self.spans = np.zeros((count, 2), np.int32)  # first and last token of each answer
        self.probabilities = np.zeros(count)  # in the window that the answer is of

    def add(self, rows: np.ndarray, logits: np.ndarray) -> None:
        """Adds logits (rows, 2, tokens) of some windows, by index."""
        best = spans.best(self._with_starts(rows, logits), self._most)
        places = np.arange(len(rows))
        scores = logits[places, 0, best[:, 0]] + logits[places, 1, best[:, 1]]
        probabilities = spans.probability(logits, best)
        for place, row in enumerate(rows):
            question = self._windows.questions[row]
            if scores[place] > self._scores[question]:
                self._scores[question] = scores[place]
                self.spans[question] = best[place] + self._windows.firsts[row]
                self.probabilities[question] = probabilities[place]

    def _with_starts(self, rows, logits):
        """The logits without starts that another of the question's windows sees more around."""
        if not self._several[rows].any():
            return logits
        logits = logits.copy()
        for place, row in enumerate(rows):
            if self._several[row]:
                own = self._windows.rows(self._windows.find(self._windows.questions[row]))
                tokens = np.arange(logits.shape[2]) + self._windows.firsts[row]
                most = own.firsts[np.argmax(_around(own, tokens), 0)] == self._windows.firsts[row]
                logits[place, 0, ~most] = -np.inf
        return logits


def _around(windows, tokens):
    """How much of the context each window sees around each token, (windows, tokens)."""
    before = tokens - windows.firsts[:, None]
    after = windows.pasts[:, None] - 1 - tokens
    least = np.minimum(before, after)
    return np.where(least >= 0, least + 0.01 * windows.lengths()[:, None], -np.inf)
