"""How good the model is now: every test example through it exactly once, under any strategy."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf.data.dataset import Data
from dawnbench_tf.training import averages

BATCH = 500  # examples at a time, all replicas together; rounded up to a multiple of them


class Evaluator:
    """Call it for `{column: score}` over the whole test set; `answers` are what was scored.

    With moving averages (`recipe.average`) these are evaluated, with test-time views
    (`recipe.test_views`) the mean over them.

    Args:
      data: whose test it is.
      model: of `data.network`; compiled, if it has averages.
    """

    def __init__(self, data: Data, model: tf.keras.Model):
        strategy = data.placement.strategy
        replicas = strategy.num_replicas_in_sync
        self._batch_size = -(-BATCH // replicas) * replicas
        self._batches = data.test_batches(self._batch_size)
        self._data, self._model = data, model
        self.answers: Any = None
        with strategy.scope():
            with_views = data.with_views(model)

        def answer(batch):
            return with_views(data.prepare(batch), training=False)

        @tf.function(reduce_retracing=True)
        def forward(batch):
            return strategy.gather(strategy.run(answer, args=(batch,)), axis=0)

        self._forward = forward

    def __call__(self) -> dict[str, float]:
        with averages.averaged(self._model, self._data.placement.strategy):
            outputs = [self._forward(batch).numpy() for batch in self._batches]
        self.answers = self._data.collect(outputs, self._batch_size)
        return self._data.score(self.answers)

    def save(self, folder: Path) -> None:
        """Writes what was scored last, if people want it: the answers to questions."""
        if self.answers is not None:
            self._data.save_answers(self.answers, folder)
