"""A run made ready to answer: network from its recipe, its weights, the examples of its task."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import runs
from dawnbench_tf.data import inputs
from dawnbench_tf.data.inputs import Example, Inputs, Placement, Splits
from dawnbench_tf.inference.served import Served
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.scores import SCORES
from dawnbench_tf.training import checkpoints, optimizers

CALIBRATION = 100  # training examples from which the ranges of integers are taken


class Serving(NamedTuple):
    """A trained run loaded for inference: recipe, model builder, test examples, references."""

    recipe: Recipe
    served: Served
    inputs: Inputs
    splits: Splits

    def score(self, outputs: list[np.ndarray], examples: int | None = None) -> dict[str, float]:
        """`{column: score}` of logits for each test example, or for the first `examples`."""
        splits = self.splits if examples is None else self.inputs.first(self.splits, examples)
        joined = self.inputs.join(outputs, splits)
        return SCORES[self.recipe.task_row.scoring](joined, self.inputs.references(splits))


def load(folder: Path, data_dir: str = "", task: str = "") -> Serving:
    """Loads a run for inference.

    Args:
      folder: `--output_dir` of a training run. Only its recipe, weights and word list are read.
      data_dir: of the task's data set.
      task: that the run should be of, if one is meant.

    Raises:
      Refusal: it is no such folder, or damaged, or of another task, or the data is not there.
    """
    recipe = runs.recipe_of(folder)
    if task and task != recipe.task:
        raise Refusal(f"--task={task}: {folder} holds a run of {recipe.task}")
    of_task = inputs.of(recipe.task_row)
    splits = inputs.load(recipe, data_dir)
    of_task.check_saved(splits, folder)
    here = Placement(tf.distribute.get_strategy())

    def build(precision):
        return of_task.network(splits, recipe, here, precision)

    def answering(model):
        return of_task.answering(model, recipe, here)

    served = Served(
        _with_weights(folder, recipe, build, answering),
        of_task.one_by_one(splits, recipe),
        of_task.one_by_one(of_task.of_training(splits, CALIBRATION), recipe),
        of_task.fixed_shape,
        # A long text's windows are its batch.
        fixed_batch=not getattr(recipe.data, "sequence_length", 0),
    )
    return Serving(recipe, served, of_task, splits)


def in_batches(served: Served, batch_size: int, most: int) -> Served:
    """A model of fixed shape for batches of some size, with `most` batches of the test at most.

    The last examples, too few for a batch, are left out; where all are too few, they are repeated.
    """
    return served._replace(
        examples=_batches(served.examples, batch_size, most),
        calibration=_batches(served.calibration, batch_size, len(served.calibration)),
    )


def _batches(examples, size, most) -> list[Example]:
    count = min(most, max(1, len(examples) // size))
    batches = np.arange(count * size).reshape(count, size) % len(examples)
    return [
        tuple(np.concatenate(arrays) for arrays in zip(*(examples[i] for i in batch), strict=True))
        for batch in batches.tolist()
    ]


def _with_weights(folder, recipe, build, answering) -> Callable[[str], tf.keras.Model]:
    """`build`, with the run's weights, or their averages if it kept them, `answering`."""
    trained = build("float32")
    trained.compile(optimizers.build(recipe, steps_per_epoch=1, model=trained))
    checkpoints.load_weights(folder, recipe, trained)
    weights = [variable.numpy().copy() for variable in trained.weights]

    def with_weights(precision):
        model = build(precision)
        model.set_weights(weights)
        return answering(model)

    tf.keras.backend.clear_session()
    return with_weights
