"""The answer in a context: the best first and last token, from their logits. NumPy only."""

from typing import NamedTuple

import numpy as np

from dawnbench_tf.data.questions.encoding import Encoded


class Answers(NamedTuple):
    """Predicted answers, one for each question, in the questions' order."""

    texts: list[str]
    spans: np.ndarray  # (questions, 2): first and last token


def best(logits: np.ndarray, most_tokens: int = 0) -> np.ndarray:
    """First and last token i <= j with the highest p(first = i) p(last = j).

    Args:
      logits: of first and last token, (batch, 2, context); padding is far below all tokens.
      most_tokens: tokens of an answer, at most; 0: no limit, as the original.

    Returns:
      int (batch, 2).
    """
    first, last = logits[:, 0], logits[:, 1]  # (batch, context)
    length = first.shape[1]
    total = np.full(first.shape, -np.inf, np.float64)  # of the best span that ends there
    starts = np.zeros(first.shape, np.int64)
    if not most_tokens:
        highest = np.maximum.accumulate(first, 1)
        new = first > np.pad(highest, [(0, 0), (1, 0)], constant_values=-np.inf)[:, :-1]
        starts = np.maximum.accumulate(np.where(new, np.arange(length), 0), 1)
        total = highest.astype(np.float64) + last
    else:
        for back in range(min(most_tokens, length)):
            value = first[:, : length - back].astype(np.float64) + last[:, back:]
            better = value > total[:, back:]
            total[:, back:] = np.where(better, value, total[:, back:])
            starts[:, back:] = np.where(better, np.arange(length - back), starts[:, back:])
    j = np.argmax(total, 1)
    return np.stack([starts[np.arange(len(j)), j], j], 1)


def probability(logits: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """p(first) p(last) of each span.

    Args:
      logits: of first and last token, (batch, 2, context).
      spans: int (batch, 2).

    Returns:
      float (batch,).
    """
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    shares = shifted / shifted.sum(-1, keepdims=True)
    row = np.arange(len(spans))
    return shares[row, 0, spans[:, 0]] * shares[row, 1, spans[:, 1]]


def answers(encoded: Encoded, predicted: np.ndarray) -> Answers:
    """The text from the first to the last token of each test question's answer.

    Args:
      encoded: the data set.
      predicted: int (questions, 2), first and last token.
    """
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
    """Answers to the test's questions by question id: the JSON of SQuAD's official evaluator."""
    questions = encoded.test_corpus.questions
    return {q.id: text for q, text in zip(questions, answers.texts, strict=True)}
