"""Evaluation: scores over the whole test set, each example once, under any strategy."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf.data.dataset import Data
from dawnbench_tf.training import averages

BATCH = 500  # size of the global batch; rounded up to a multiple of the number of replicas


class Evaluator:
    """A callable that evaluates a model and returns {column: score} over the test set.

    It uses the moving averages of the weights, if the recipe has them (`average`), and the mean
    logits of the recipe's test-time augmentation (`test_views`). `answers` keeps the last answers.

    Args:
      data: data set with the test examples.
      model: network of `data.network`; compiled, if it has averages.
    """

    def __init__(self, data: Data, model: tf.keras.Model):
        strategy = data.placement.strategy
        replicas = strategy.num_replicas_in_sync
        most = min(BATCH, data.recipe.task_row.test_examples or BATCH)
        self._batch_size = -(-most // replicas) * replicas
        self._batches = data.test_batches(self._batch_size)
        self._data, self._model = data, model
        self.answers: Any = None
        with strategy.scope():
            with_views = data.with_views(model)

        def answer(batch: Any) -> tf.Tensor:
            return with_views(data.prepare(batch), training=False)

        @tf.function(reduce_retracing=True)
        def forward(batch: Any) -> tf.Tensor:
            return strategy.gather(strategy.run(answer, args=(batch,)), axis=0)

        self._forward = forward

    def __call__(self) -> dict[str, float]:
        with averages.use_averages(self._model, self._data.placement.strategy):
            outputs = [self._forward(batch).numpy() for batch in self._batches]
        self.answers = self._data.collect(outputs, self._batch_size)
        return self._data.score(self.answers)

    def save(self, folder: Path) -> None:
        """Writes the last answers in the task's published format, if it has one (questions)."""
        if self.answers is not None:
            self._data.save_answers(self.answers, folder)
