"""Sliding windows over contexts: the network's inputs for them, and the merging of their answers.

A window is a question with its context or a part of it: one input of the network. A context that is
too long for BERT is read in overlapping windows, and the best answer of all its windows counts
(google-research/bert, run_squad.py: `doc_stride`, `_check_is_max_context`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.questions import spans
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.models import networks, texts
from dawnbench_tf.recipe import Questions, Recipe

SIGNS = 3  # special tokens of a sequence: [CLS], and [SEP] twice


class Windows(NamedTuple):
    """Windows as columns, each (windows,); the windows of a question are consecutive."""

    questions: np.ndarray  # index of the question
    firsts: np.ndarray  # first token of the window in the context
    pasts: np.ndarray  # past its last token

    def take(self, indices: np.ndarray) -> "Windows":
        """Returns the windows with the given indices."""
        return Windows(*(values[indices] for values in self))

    def find(self, question: int) -> np.ndarray:
        """Returns the indices of a question's windows."""
        return np.arange(*np.searchsorted(self.questions, [question, question + 1]))

    def lengths(self) -> np.ndarray:
        """Returns the number of context tokens in each window, (windows,)."""
        return self.pasts - self.firsts


def build(split: EncodedSplit, form: Questions) -> Windows:
    """Returns the windows of a split; one for each question if there is no `sequence_length`."""
    lengths = split.contexts.lengths()[split.context_of_question]
    fits = lengths  # context tokens that fit into a window, for each question
    if form.sequence_length:
        fits = form.sequence_length - SIGNS - question_lengths(split, form)
    # Windows start every `strides` tokens; the last one reaches the context's end:
    # count = 1 + ceil((length - fit) / stride), or 1 if the whole context fits.
    strides = np.clip(fits, 1, form.document_stride)
    counts = 1 - (np.minimum(fits - lengths, 0) // strides)
    questions = np.repeat(np.arange(len(lengths)), counts)
    # Number of the window within its question: 0, 1, ..., count - 1.
    numbers = np.arange(len(questions)) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = numbers * strides[questions]
    return Windows(questions, firsts, np.minimum(firsts + fits[questions], lengths[questions]))


def question_lengths(split: EncodedSplit, form: Questions) -> np.ndarray:
    """Returns the length of each question; with `sequence_length`, cut at most_question_tokens."""
    lengths = split.questions.lengths()
    return np.minimum(lengths, form.most_question_tokens) if form.sequence_length else lengths


def input_names(recipe: Recipe) -> tuple[str, ...]:
    """Returns the names of the inputs of the recipe's network, in order."""
    return networks.family_of(models.get(recipe.model)).reads


def make_inputs(
    names: Sequence[str],
    encoded: Encoded,
    split: EncodedSplit,
    selected: Windows,
    lengths: Mapping[str, int],
) -> tuple[np.ndarray, ...]:
    """Returns the network's inputs for windows: (windows, tokens, ...) each, 0 in padding."""
    # `names` are those of `models.texts`, `lengths` the padded numbers of tokens of "context" and
    # "question".
    contexts, rows = split.context_of_question[selected.questions], selected.questions
    part = (selected.firsts, selected.pasts)
    inputs = []
    for name in names:
        text, _, kind = name.partition("_")
        if kind == "matches":
            inputs.append(_matches(encoded.lower_ids, split, selected, lengths["context"]))
        elif kind == "tags":
            inputs.append(split.context_tags.padded(contexts, lengths[text], part))
        else:
            ids = encoded.character_ids if kind == "characters" else encoded.token_ids
            if text == "context":
                inputs.append(split.contexts.padded(contexts, lengths[text], part, ids))
            else:
                inputs.append(split.questions.padded(rows, lengths[text], table=ids))
    return tuple(inputs)


def _matches(
    lower_ids: np.ndarray, split: EncodedSplit, selected: Windows, length: int
) -> np.ndarray:
    """Returns the match features of `models.texts`, float32 (windows, length, 4)."""
    # For each token of the context: whether the question has the token; has it apart from case; has
    # its lemma; and the token's frequency in the context.
    matches = np.zeros((len(selected.questions), length, 4), np.float32)
    for features, question, first, past in zip(matches, *selected, strict=True):
        context, words = split.context_of_question[question], split.questions.row(question)
        types = split.contexts.row(context)[first:past]
        lemmas, lower = split.context_lemmas.row(context)[first:past], lower_ids[types]
        _, distinct, counts = np.unique(lower, return_inverse=True, return_counts=True)
        features[: len(types)] = np.stack(
            [
                np.isin(types, words),
                np.isin(lower, lower_ids[words]),
                np.isin(lemmas, split.question_lemmas.row(question)),
                counts[distinct] / len(types),
            ],
            axis=1,
        )
    return matches


def signature(
    names: Sequence[str], batch: int | None = None, lengths: Mapping[str, int | None] | None = None
) -> tuple[tf.TensorSpec, ...]:
    """Returns the inputs' specs; `batch`, and `lengths` by text, are None where they vary."""
    specs = []
    for name in names:
        axes, dtype = texts.INPUTS[name]
        length = lengths[name.partition("_")[0]] if lengths else None
        specs.append(tf.TensorSpec((batch, length, *axes), dtype))
    return tuple(specs)


class Merged:
    """The best answer of each question, merged from the logits of its windows.

    It has at most `most_tokens` tokens; 0: no limit.
    """

    def __init__(self, windows: Windows, most_tokens: int):
        self._windows, self._most = windows, most_tokens
        count = int(windows.questions[-1]) + 1
        self.scores = np.full(count, -np.inf)  # logit sum of the best answer so far
        self._several = np.bincount(windows.questions)[windows.questions] > 1
        self.spans = np.zeros((count, 2), np.int32)  # first and last token in the context
        self.probabilities = np.zeros(count)  # p(first) p(last) within the answer's window

    def add(self, rows: np.ndarray, logits: np.ndarray, free: np.ndarray | None = None) -> None:
        """Adds the logits (rows, 2, tokens) of the windows with indices `rows`."""
        # `free` are the logits of tokens that an answer may have, -inf for others; None: of all.
        longest = int(self._windows.take(rows).lengths().max())
        if logits.shape[:2] != (len(rows), 2) or logits.shape[2] < longest:
            shape = f"({len(rows)}, 2, tokens) with at least {longest} tokens"
            raise ValueError(f"logits should be {shape}. Received: {logits.shape}")
        allowed = self._mask_starts(rows, logits if free is None else free)
        best = spans.best(allowed, self._most)
        batch = np.arange(len(rows))
        scores = allowed[batch, 0, best[:, 0]] + allowed[batch, 1, best[:, 1]]
        probabilities = spans.probability(logits, best)
        for i, row in enumerate(rows):
            question = self._windows.questions[row]
            if scores[i] > self.scores[question]:
                self.scores[question] = scores[i]
                # From tokens of the window to tokens of the context.
                self.spans[question] = best[i] + self._windows.firsts[row]
                self.probabilities[question] = probabilities[i]

    def _mask_starts(self, rows: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """Masks starts for which another window has more context (BERT's max_context)."""
        if not self._several[rows].any():
            return logits
        logits = logits.copy()
        for i, row in enumerate(rows):
            if self._several[row]:
                own = self._windows.take(self._windows.find(self._windows.questions[row]))
                tokens = np.arange(logits.shape[2]) + self._windows.firsts[row]
                # BERT's measure of the context around each token, (windows, tokens): the smaller
                # number of tokens before or after, plus 0.01 x the window's length.
                least = np.minimum(tokens - own.firsts[:, None], own.pasts[:, None] - 1 - tokens)
                around = np.where(least >= 0, least + 0.01 * own.lengths()[:, None], -np.inf)
                firsts = own.firsts[np.argmax(around, 0)]
                logits[i, 0, firsts != self._windows.firsts[row]] = -np.inf
        return logits
