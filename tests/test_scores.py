import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from dawnbench_tf import scores


def test_top1_equals_scikit_learn():
    rng = np.random.default_rng(0)
    outputs, references = rng.normal(size=(1000, 10)), rng.integers(0, 10, 1000)
    wanted = 100 * accuracy_score(references, outputs.argmax(1))
    assert scores.top1(outputs, references) == {"top1Accuracy": pytest.approx(wanted)}


@pytest.mark.parametrize("count", [0, 9, 11])
def test_a_count_that_is_off_raises(count):
    with pytest.raises(ValueError, match=f"Received: {count} outputs"):
        scores.top1(np.zeros((count, 10)), np.zeros(10, int))
