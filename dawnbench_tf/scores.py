"""How good the outputs are: NumPy in, `{column: value}` out, every example counted.

Used alike by training's callback and by inference, whatever ran the model.
"""

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1  # needs no TensorFlow

from dawnbench_tf.spans import Answers


def top1(outputs: np.ndarray, references: np.ndarray) -> dict[str, float]:
    """Top-1 accuracy in percent.

    Args:
      outputs: logits or probabilities, (examples, classes).
      references: true classes, (examples,).

    Raises:
      ValueError: there is not one output for each example.

    >>> top1(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    {'top1Accuracy': 50.0}
    """
    if len(outputs) != len(references):
        raise ValueError(
            f"each of {len(references)} examples should be scored once. "
            f"Received: {len(outputs)} outputs"
        )
    right = int(np.sum(np.argmax(outputs, axis=1) == references))
    return {"top1Accuracy": 100 * right / len(references)}


def squad(outputs: Answers, references) -> dict[str, float]:
    """SQuAD v1.1's official F1 and exact match, as fractions, and the seed entry's own F1.

    `seedF1` is what DAWNBench's seed entries logged: overlap of places of words, on the first 6,000
    test questions that might be trained on. No rule knows it.

    Args:
      outputs: an answer for each test question, in their order.
      references: the data set, a `data.reading.Reading`.

    Raises:
      ValueError: there is not one answer for each question.
    """
    questions = references.test_passages.questions
    if len(outputs.texts) != len(questions):
        raise ValueError(
            f"each of {len(questions)} questions should be answered once. "
            f"Received: {len(outputs.texts)} answers"
        )
    qas = [{"id": q.id, "answers": [{"text": text} for text, _ in q.answers]} for q in questions]
    dataset = [{"paragraphs": [{"qas": qas}]}]
    found = squad_evaluate_v1_1.evaluate(dataset, predictions(outputs, references))
    seed = seed_f1(outputs.ends, references.test)
    return {"f1Score": found["final_f1"], "exactMatch": found["exact_match"], "seedF1": seed}


def predictions(outputs: Answers, references) -> dict[str, str]:
    """Answers by the id of their question: the official evaluator's JSON."""
    questions = references.test_passages.questions
    return {q.id: text for q, text in zip(questions, outputs.texts, strict=True)}


def seed_f1(ends: np.ndarray, test, most: int = 6000) -> float:
    """Mean of each question's best overlap with a right answer, in places of words: F1, 0 to 1.

    Over the first `most` questions of at most 30 words whose answers all end within 400 words
    of `test`, a `data.reading.Encoded`.
    """
    scores = []
    for number, (first, last) in enumerate(ends):
        right = test.spans.values[test.spans.bounds[number] : test.spans.bounds[number + 1]]
        asked = test.questions.bounds[number + 1] - test.questions.bounds[number]
        if asked > 30 or right[:, 1].max() >= 400 or right[:, 0].min() < 0:
            continue
        common = np.minimum(right[:, 1], last) - np.maximum(right[:, 0], first) + 1
        common = np.maximum(common, 0)
        sizes = (last - first + 1) + (right[:, 1] - right[:, 0] + 1)
        scores.append(float(np.max(2 * common / sizes)))
        if len(scores) == most:
            break
    return float(np.mean(scores)) if scores else 0.0


SCORES = {"top1": top1, "squad": squad}
