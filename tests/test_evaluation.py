"""Every test example is scored once, whatever the batch; strategies: test_strategies.py."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import evaluation, models, recipes, tasks
from dawnbench_tf.data.splits import Splits


@pytest.mark.parametrize("batch", [1, 7, 13, 26, 500])
def test_the_score_is_that_of_one_example_at_a_time(monkeypatch, batch):
    monkeypatch.setattr(evaluation, "BATCH", batch)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (26, 8, 8, 3), np.uint8)
    model = models.build("resnet8_v1_pad", input_shape=(8, 8, 3))
    one_by_one = [
        np.argmax(model(tf.image.per_image_standardization(image[None]))) for image in images
    ]
    labels = np.where(np.arange(26) % 2, one_by_one, -1)  # right for every other one
    splits = Splits(images, labels, images, labels)
    evaluate = evaluation.Evaluator(
        tasks.TASKS["digits"],
        recipes.get("digits/resnet8"),
        model,
        splits,
        tf.distribute.get_strategy(),
        "NHWC",
    )
    assert evaluate() == {"top1Accuracy": 50.0}
    assert evaluate() == {"top1Accuracy": 50.0}
