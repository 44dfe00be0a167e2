"""Answer spans: the best first and last token, from their logits. NumPy only."""

from typing import NamedTuple

import numpy as np

from dawnbench_tf.data.questions.encoding import Encoded


class Answers(NamedTuple):
    """Predicted answers, in the questions' order."""

    texts: list[str]
    spans: np.ndarray  # (questions, 2), first and last token


def best(logits: np.ndarray, most_tokens: int = 0) -> np.ndarray:
    """Returns the span i <= j with the largest p(first = i) p(last = j), int (batch, 2)."""
    # `logits`: (batch, 2, context), very low in padding. `most_tokens`: of an answer; 0: no limit,
    # as in the original.
    first, last = logits[:, 0], logits[:, 1]  # (batch, context)
    length = first.shape[1]
    # total[:, j]: logit sum of the best span that ends at j; starts[:, j]: its first token.
    total = np.full(first.shape, -np.inf, np.float64)
    starts = np.zeros(first.shape, np.int64)
    if not most_tokens:
        # The best start for j is the argmax of `first` up to j: a running maximum, O(context).
        highest = np.maximum.accumulate(first, 1)
        new = first > np.pad(highest, [(0, 0), (1, 0)], constant_values=-np.inf)[:, :-1]
        starts = np.maximum.accumulate(np.where(new, np.arange(length), 0), 1)
        total = highest.astype(np.float64) + last
    else:
        # Tries spans of 1, 2, ... most_tokens tokens, all ends j at once.
        for back in range(min(most_tokens, length)):
            value = first[:, : length - back].astype(np.float64) + last[:, back:]
            better = value > total[:, back:]
            total[:, back:] = np.where(better, value, total[:, back:])
            starts[:, back:] = np.where(better, np.arange(length - back), starts[:, back:])
    j = np.argmax(total, 1)
    return np.stack([starts[np.arange(len(j)), j], j], 1)


def probability(logits: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Returns p(first) p(last) of spans (batch, 2), from logits (batch, 2, context)."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    shares = shifted / shifted.sum(-1, keepdims=True)
    row = np.arange(len(spans))
    return shares[row, 0, spans[:, 0]] * shares[row, 1, spans[:, 1]]


def answers(encoded: Encoded, predicted: np.ndarray) -> Answers:
    """Returns answers with their texts, from first and last tokens (questions, 2)."""
    split, corpus = encoded.test, encoded.test_corpus
    offsets, first = split.offsets, split.offsets.bounds[split.context_of_question]
    begins = offsets.values[first + predicted[:, 0], 0]
    ends = offsets.values[first + predicted[:, 1], 1]
    texts = [
        corpus.contexts[question.context][begin:end]
        for question, begin, end in zip(corpus.questions, begins, ends, strict=True)
    ]
    return Answers(texts, predicted)


def predictions(answers: Answers, encoded: Encoded) -> dict[str, str]:
    """Returns {question id: answer}, the input of SQuAD's official evaluator."""
    questions = encoded.test_corpus.questions
    return {q.id: text for q, text in zip(questions, answers.texts, strict=True)}
