"""The generated reading data: answering needs the question, and answers are at their offsets."""

from collections import Counter

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1

from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.questions import squad_json


def test_generated_questions_need_to_be_read():
    """Even the best single answer to all questions of a context scores far below the threshold."""
    parsed = squad_json.parse("generated", qa_mini.write_json(200, 7, "blind"))
    by_context = {}
    for question in parsed.questions:
        by_context.setdefault(question.context, []).append(question.answers[0][0])
    best = [
        max(np.mean([squad_evaluate_v1_1._f1_score(guess, x) for x in gold]) for guess in gold)
        for gold in by_context.values()
    ]
    assert np.mean(best) < 0.3
    counts = Counter(q.text.split()[0] for q in parsed.questions)
    assert len(counts) >= 5  # kinds of question


def test_generated_answers_are_where_they_are_said_to_be():
    train = qa_mini.generate(12 * qa_mini.QUESTIONS, 30, seed=1).train
    assert len(train.context_of_question) == 12 * qa_mini.QUESTIONS
    assert not train.alignments.any()
