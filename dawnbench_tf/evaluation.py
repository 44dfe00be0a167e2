"""How good the model is now: every test example through it exactly once, under any strategy."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from dawnbench_tf import scores
from dawnbench_tf.data import pipeline

BATCH = 500  # examples at a time, all replicas together; rounded up to a multiple of them


def evaluator(task, recipe, model, splits, strategy, data_format) -> Callable[[], dict[str, float]]:
    """Makes `evaluate() -> {column: value}` over the task's whole test set."""
    replicas = strategy.num_replicas_in_sync
    batches = pipeline.test(
        splits, recipe, strategy, data_format, batch_size=-(-BATCH // replicas) * replicas
    )
    score = scores.SCORES[task.score]

    @tf.function
    def forward(images):
        outputs = strategy.run(lambda images: model(images, training=False), args=(images,))
        return strategy.gather(outputs, axis=0)

    def evaluate():
        outputs = np.concatenate([forward(images).numpy() for images in batches])
        return score(outputs[: len(splits.test_labels)], splits.test_labels)  # the rest is padding

    return evaluate
