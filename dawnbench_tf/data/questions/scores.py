"""Scores of readers: answers in, `{column: score}` out, every question counted.

Used alike by training's callback and by inference, whatever ran the model.
"""

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1  # needs no TensorFlow

from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.spans import Answers, predictions


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
