"""Scores of readers: SQuAD's F1 and exact match; training and inference both use them."""

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1  # needs no TensorFlow

from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.spans import Answers, predictions


def squad(outputs: Answers, references: Encoded) -> dict[str, float]:
    """Returns SQuAD v1.1's official F1 and exact match, and the F1 of DAWNBench's seed entries."""
    # `seedF1` is the score that the seed entries logged: overlap of token positions, on the first
    # 6,000 test questions within the training limits. No rule of the benchmark uses it. Each is 0
    # to 1.
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
