"""A run made ready to answer: network from its recipe, its weights, the examples of its task."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import runs
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data, Example
from dawnbench_tf.inference import loading
from dawnbench_tf.inference.served import Served
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal

CALIBRATION = 100  # training examples from which the ranges of integers are taken


class Serving(NamedTuple):
    """A trained run loaded for inference: its data set, and what runtimes take of it."""

    data: Data
    served: Served

    @property
    def recipe(self) -> Recipe:
        """The recipe of the run."""
        return self.data.recipe

    def score(self, outputs: list[np.ndarray], examples: int | None = None) -> dict[str, float]:
        """`{column: score}` of logits for each test example, or for the first `examples`."""
        data = self.data if examples is None else self.data.first(examples)
        return data.score(data.join(outputs))


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
    build = loading.builder(recipe, folder)
    build("float32")  # refuses the weights of another model before the data set is loaded
    data = dataset.open(recipe, data_dir)
    data.check_saved(folder)
    tf.keras.backend.clear_session()
    served = Served(
        build,
        data.examples(),
        data.training_as_test(CALIBRATION).examples(),
        data.fixed_shape,
        # A long text's windows are its batch.
        fixed_batch=not getattr(recipe.data, "sequence_length", 0),
    )
    return Serving(data, served)


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
