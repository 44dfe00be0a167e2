from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from dawnbench_tf import scores
from dawnbench_tf.spans import Answers


def test_top1_equals_scikit_learn():
    rng = np.random.default_rng(0)
    outputs, references = rng.normal(size=(1000, 10)), rng.integers(0, 10, 1000)
    wanted = 100 * accuracy_score(references, outputs.argmax(1))
    assert scores.top1(outputs, references) == {"top1Accuracy": pytest.approx(wanted)}


@pytest.mark.parametrize("count", [0, 9, 11])
def test_a_count_that_is_off_raises(count):
    with pytest.raises(ValueError, match=f"Received: {count} outputs"):
        scores.top1(np.zeros((count, 10)), np.zeros(10, int))


def reading(*answers, words=10):
    """A test set of one question for each tuple of right answers (text, first word, last word)."""
    questions = [
        SimpleNamespace(id=str(i), answers=[(text, 0) for text, *_ in right])
        for i, right in enumerate(answers)
    ]
    ends = [span for right in answers for _, *span in right]
    bounds = np.cumsum([0, *map(len, answers)])
    count = np.arange(len(answers) + 1)
    test = SimpleNamespace(
        spans=SimpleNamespace(values=np.array(ends), bounds=bounds),
        questions=SimpleNamespace(bounds=count * words),
    )
    return SimpleNamespace(test=test, test_passages=SimpleNamespace(questions=questions))


@pytest.mark.parametrize(
    ("answer", "right", "f1", "exact"),  # by the official rules, by hand
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
def test_squad_s_official_rules(answer, right, f1, exact):
    references = reading([(text, 0, 0) for text in right])
    found = scores.squad(Answers([answer], np.array([[0, 0]])), references)
    assert found["f1Score"] == pytest.approx(f1) and found["exactMatch"] == exact


def test_the_seed_s_f1_is_of_places():
    references = reading([("x", 2, 5)], [("x", 0, 0), ("y", 4, 4)], [("x", 7, 9)])
    ends = np.array([[4, 7], [4, 4], [0, 1]])
    # 2 places common of 4 and 4; the second answer exactly; none.
    assert scores.seed_f1(ends, references.test) == pytest.approx((0.5 + 1 + 0) / 3)
    assert scores.seed_f1(ends, references.test, most=1) == 0.5
    assert scores.seed_f1(ends[:1], reading([("x", 2, 5)], words=31).test) == 0


def test_every_question_is_answered_once():
    with pytest.raises(
        ValueError, match="each of 1 questions should be answered once. Received: 2"
    ):
        scores.squad(Answers(["a", "b"], np.zeros((2, 2), int)), reading([("x", 0, 0)]))
