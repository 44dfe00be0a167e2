"""Answer spans: the best first and last token, from their logits, and their scores. NumPy only."""

import unicodedata
from typing import NamedTuple

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1  # needs no TensorFlow

from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit


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
    total, starts = np.full(first.shape, -np.inf), np.zeros(first.shape, np.int64)
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
    texts = []
    for question, begin, end in zip(corpus.questions, begins, ends, strict=True):
        context = corpus.contexts[question.context]
        texts.append(context[begin : past_marks(context, end)])
    return Answers(texts, predicted)


def past_marks(text: str, end: int) -> int:
    """Returns an answer's end past the combining marks, such as accents, of its last letter."""
    while end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return end


def check_number(answers: int, references: Encoded) -> None:
    """Raises ValueError unless there is an answer to each test question."""
    if answers != (count := len(references.test_corpus.questions)):
        text = f"each of {count} questions should be answered once"
        raise ValueError(f"{text}. Received: {answers} answers")


def predictions(answers: Answers, encoded: Encoded) -> dict[str, str]:
    """Returns {question id: answer}, the input of SQuAD's official evaluator."""
    questions = encoded.test_corpus.questions
    return {q.id: text for q, text in zip(questions, answers.texts, strict=True)}


def score(outputs: Answers, references: Encoded) -> dict[str, float]:
    """Returns SQuAD v1.1's official F1 and exact match, and the F1 of DAWNBench's seed entries."""
    # `seedF1` is the score that the seed entries logged: overlap of token positions, on the first
    # 6,000 test questions within the training limits. No rule of the benchmark uses it. Each is 0
    # to 1.
    questions = references.test_corpus.questions
    check_number(len(outputs.texts), references)
    qas = [{"id": q.id, "answers": [{"text": text} for text, _ in q.answers]} for q in questions]
    dataset = [{"paragraphs": [{"qas": qas}]}]
    official = squad_evaluate_v1_1.evaluate(dataset, predictions(outputs, references))
    return {
        # Rounded: a sum of thirds may be 0.7299999999999999, which the timer takes for 0.73.
        "f1Score": round(official["final_f1"], 12),
        "exactMatch": official["exact_match"],
        "seedF1": seed_f1(outputs.spans, references.test),
    }


def seed_f1(predicted: np.ndarray, test: EncodedSplit, most: int = 6000) -> float:
    """Returns the mean F1, 0 to 1, of predicted token positions against the best right answer."""
    # `predicted`: (questions, 2), first and last token. It counts the first `most` questions that
    # have at most 30 tokens, and whose right answers were all found and end within the context's
    # first 400 tokens.
    scores = []
    for index, (first, last) in enumerate(predicted):
        answers = test.spans.values[test.spans.bounds[index] : test.spans.bounds[index + 1]]
        length = test.questions.bounds[index + 1] - test.questions.bounds[index]
        if length > 30 or answers[:, 1].max() >= 400 or answers[:, 0].min() < 0:
            continue
        common = np.minimum(answers[:, 1], last) - np.maximum(answers[:, 0], first) + 1
        common = np.maximum(common, 0)
        sizes = (last - first + 1) + (answers[:, 1] - answers[:, 0] + 1)
        scores.append(float(np.max(2 * common / sizes)))
        if len(scores) == most:
            break
    return float(np.mean(scores)) if scores else 0.0
