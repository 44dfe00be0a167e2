"""Scores against scikit-learn, a stable sort, and the official rules by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score

from dawnbench_tf.data.images.scores import SCORES, class_accuracies, top_accuracies
from dawnbench_tf.data.questions.spans import Answers, score, seed_f1


@pytest.mark.parametrize("ties", [False, True])
def test_top5_equals_a_stable_sort(ties):
    rng = np.random.default_rng(0)
    outputs = rng.integers(0, 4, (500, 9)) if ties else rng.normal(size=(500, 9))
    outputs, references = outputs.astype(np.float32), rng.integers(0, 9, 500)
    order = np.argsort(-outputs, axis=1, kind="stable")
    hits = {k: np.mean((order[:, :k] == references[:, None]).any(axis=1)) for k in (1, 5)}
    accuracies = SCORES["top1_and_top5"](outputs, references)
    assert accuracies == {f"top{k}Accuracy": pytest.approx(100 * hits[k]) for k in (1, 5)}
    if not ties:
        for k in (1, 5):
            wanted = 100 * top_k_accuracy_score(references, outputs, k=k)
            assert accuracies[f"top{k}Accuracy"] == pytest.approx(wanted)


def test_what_is_no_number_or_no_class_counts_as_wrong():
    outputs = np.array([[np.nan, 1.0], [0.0, np.nan], [0.0, 1.0], [0.0, 1.0]])
    assert top_accuracies(outputs, np.array([1, 0, 1, -1])) == {"top1Accuracy": 25.0}
    assert class_accuracies(outputs[:3], np.array([0, 1, 1]), "ab") == {"a": 0.0, "b": 50.0}


@pytest.mark.parametrize("count", [0, 9, 11])
def test_a_count_that_is_off_raises(count):
    with pytest.raises(ValueError, match=f"Received: {count} outputs"):
        top_accuracies(np.zeros((count, 10)), np.zeros(10, int))


def reading(*answers, words=10):
    """A test set: a question for each tuple of right answers (text, first token, last token)."""
    questions = [
        SimpleNamespace(id=str(i), answers=[(text, 0) for text, *_ in references])
        for i, references in enumerate(answers)
    ]
    ends = [span for references in answers for _, *span in references]
    bounds = np.cumsum([0, *map(len, answers)])
    count = np.arange(len(answers) + 1)
    test = SimpleNamespace(
        spans=SimpleNamespace(values=np.array(ends), bounds=bounds),
        questions=SimpleNamespace(bounds=count * words),
    )
    return SimpleNamespace(test=test, test_corpus=SimpleNamespace(questions=questions))


@pytest.mark.parametrize(
    ("answer", "accepted", "f1", "exact"),  # by the official rules, by hand
    [
        ("the Cat", ["cat"], 1, 1),  # articles and case
        ("cat.", ["a cat"], 1, 1),  # punctuation
        ("black cat", ["cat"], 2 / 3, 0),
        ("dog", ["cat", "dog", "dogs"], 1, 1),  # the best of several
        ("", ["cat"], 0, 0),
        ("the", ["the"], 0, 1),  # nothing is left on either side
        ("naïve café", ["Naïve  café"], 1, 1),
        ("cat cat", ["cat"], 2 / 3, 0),  # as often as it is said
    ],
)
def test_squad_s_official_rules(answer, accepted, f1, exact):
    references = reading([(text, 0, 0) for text in accepted])
    row = score(Answers([answer], np.array([[0, 0]])), references)
    assert row["f1Score"] == pytest.approx(f1) and row["exactMatch"] == exact


def test_the_seed_s_f1_is_of_positions():
    references = reading([("x", 2, 5)], [("x", 0, 0), ("y", 4, 4)], [("x", 7, 9)])
    ends = np.array([[4, 7], [4, 4], [0, 1]])
    # 2 places common of 4 and 4; the second answer exactly; none.
    assert seed_f1(ends, references.test) == pytest.approx((0.5 + 1 + 0) / 3)
    assert seed_f1(ends, references.test, most=1) == 0.5
    assert seed_f1(ends[:1], reading([("x", 2, 5)], words=31).test) == 0


def test_every_question_is_answered_once():
    with pytest.raises(ValueError, match="each of 1 questions should be answered .* Received: 2"):
        score(Answers(["a", "b"], np.zeros((2, 2), int)), reading([("x", 0, 0)]))
