"""How good the model is now: every test example through it exactly once, under any strategy."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf.data import inputs
from dawnbench_tf.data.inputs import Placement, Splits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.scores import SCORES
from dawnbench_tf.training import averages

BATCH = 500  # examples at a time, all replicas together; rounded up to a multiple of them


def of_held_out(
    recipe: Recipe, model: tf.keras.Model, splits: Splits, placement: Placement
) -> dict[str, float]:
    """Scores over the training examples that were held out, by column; {} if none were.

    Args:
      recipe, model, splits, placement: as `Evaluator` takes them.
    """
    if not recipe.held_out:
        return {}
    return Evaluator(recipe, model, splits._replace(test=splits.held_out), placement)()


class Evaluator:
    """Call it for `{column: score}` over the whole test set; `outputs` are what was scored.

    With moving averages (`recipe.average`) these are evaluated, with test-time views
    (`recipe.test_views`) the mean over them.

    Args:
      recipe: of the model.
      model: compiled.
      splits: the recipe's data set.
      placement: that of the model.
    """

    def __init__(self, recipe: Recipe, model: tf.keras.Model, splits: Splits, placement: Placement):
        strategy = placement.strategy
        replicas = strategy.num_replicas_in_sync
        self._batch_size = -(-BATCH // replicas) * replicas
        self._inputs = inputs.of(recipe.task_row)
        splits = self._inputs.arrange(splits, recipe)
        self._score = SCORES[recipe.task_row.scoring]
        self._batches = self._inputs.test(splits, recipe, placement, self._batch_size)
        self._model, self._splits, self._placement = model, splits, placement
        self.outputs: Any = None
        with strategy.scope():
            answering = self._inputs.answering(model, recipe, placement)
        prepare = self._inputs.prepare_test(recipe, placement)

        def answer(batch):
            return answering(prepare(batch), training=False)

        @tf.function(reduce_retracing=True)
        def forward(batch):
            return strategy.gather(strategy.run(answer, args=(batch,)), axis=0)

        self._forward = forward

    def __call__(self) -> dict[str, float]:
        with averages.averaged(self._model, self._placement.strategy):
            outputs = [self._forward(batch).numpy() for batch in self._batches]
        collect = self._inputs.collect
        self.outputs = collect(outputs, self._splits, self._placement, self._batch_size)
        return self._score(self.outputs, self._inputs.references(self._splits))

    def save(self, folder: Path) -> None:
        """Writes what was scored last, if people want it: the answers to questions."""
        if self.outputs is not None:
            self._inputs.save_outputs(self.outputs, self._splits, folder)
