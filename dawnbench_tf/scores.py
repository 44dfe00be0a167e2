"""How good the outputs are: NumPy in, `{column: score}` out, every example counted.

Used alike by training's callback and by inference, whatever ran the model.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1  # needs no TensorFlow

from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.spans import Answers, predictions


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


def squad(outputs: Answers, references: Encoded) -> dict[str, float]:
    """SQuAD v1.1's official F1 and exact match, as fractions, and the seed entry's own F1.

    `seedF1` is what DAWNBench's seed entries logged: overlap of token positions, on the first 6,000
    test questions that might be trained on. No rule knows it.

    Args:
      outputs: an answer for each test question, in their order.
      references: the data set.

    Raises:
      ValueError: there is not one answer for each question.
    """
    questions = references.test_corpus.questions
    if len(outputs.texts) != len(questions):
        raise ValueError(
            f"each of {len(questions)} questions should be answered once. "
            f"Received: {len(outputs.texts)} answers"
        )
    qas = [{"id": q.id, "answers": [{"text": text} for text, _ in q.answers]} for q in questions]
    dataset = [{"paragraphs": [{"qas": qas}]}]
    official = squad_evaluate_v1_1.evaluate(dataset, predictions(outputs, references))
    return {
        "f1Score": official["final_f1"],
        "exactMatch": official["exact_match"],
        "seedF1": seed_f1(outputs.spans, references.test),
    }


def seed_f1(predicted: np.ndarray, test: EncodedSplit, most: int = 6000) -> float:
    """Mean over questions of the best F1 between predicted and right token positions, 0 to 1.

    Args:
      predicted: (questions, 2): first and last token of each answer.
      test: the questions.
      most: only so many questions count, those first of at most 30 tokens whose answers all end
        within 400 tokens.
    """
    scores = []
    for index, (first, last) in enumerate(predicted):
        right = test.spans.values[test.spans.bounds[index] : test.spans.bounds[index + 1]]
        length = test.questions.bounds[index + 1] - test.questions.bounds[index]
        if length > 30 or right[:, 1].max() >= 400 or right[:, 0].min() < 0:
            continue
        common = np.minimum(right[:, 1], last) - np.maximum(right[:, 0], first) + 1
        common = np.maximum(common, 0)
        sizes = (last - first + 1) + (right[:, 1] - right[:, 0] + 1)
        scores.append(float(np.max(2 * common / sizes)))
        if len(scores) == most:
            break
    return float(np.mean(scores)) if scores else 0.0


SCORES: dict[str, Callable[[Any, Any], dict[str, float]]] = {
    "top1": top_accuracies,
    "top1_and_top5": partial(top_accuracies, most=(1, 5)),
    "squad": squad,
}
