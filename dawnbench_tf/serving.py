"""A run made ready to answer: network from its recipe, its weights, the examples of its task."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import checkpoints, data, models, optimizers, reader, scores, tasks
from dawnbench_tf.data import vocabulary
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.runtimes import Served
from dawnbench_tf.settings import Refusal
from dawnbench_tf.tasks import Task

CALIBRATION = 100  # training examples from which the ranges of integers are taken


class Serving(NamedTuple):
    """What it takes to time a run's model, and to score it on just what was timed."""

    task: Task
    recipe: Recipe
    served: Served
    splits: object  # Splits or Reading

    def score(self, outputs: list[np.ndarray], examples: int | None = None) -> dict[str, float]:
        """`{column: value}` of one output for each test example, or for the first `examples`."""
        pipeline = data.pipeline(self.task)
        splits = self.splits if examples is None else pipeline.first(self.splits, examples)
        found = pipeline.together(outputs, splits)
        return scores.SCORES[self.task.score](found, pipeline.references(splits))


def load(folder: Path, data_dir: str = "", task: str = "") -> Serving:
    """Loads a run for inference.

    Args:
      folder: `--output_dir` of a training run. Only its recipe, weights and word list are read.
      data_dir: of the task's data set.
      task: that the run should be of, if one is meant.

    Raises:
      Refusal: it is no such folder, or damaged, or of another task, or the data is not there.
    """
    recipe = checkpoints.recipe_of(folder)
    if task and task != recipe.task:
        raise Refusal(f"--task={task}: {folder} holds a run of {recipe.task}")
    found = tasks.TASKS[recipe.task]
    splits = data.load(found, recipe, RunOptions(data_dir=data_dir))
    return Serving(
        found, recipe, _SERVED[found.kind](folder, recipe, found, splits, data_dir), splits
    )


def of_images(serving: Serving, batch_size: int) -> Served:
    """The same images in batches of some size; the last ones, too few for a batch, are left out."""
    images = np.concatenate([image for (image,) in serving.served.examples])
    calibration = np.concatenate([image for (image,) in serving.served.calibration])
    return serving.served._replace(
        examples=_batches(images, batch_size), calibration=_batches(calibration, batch_size)
    )


def _batches(images, size):
    images = np.resize(images, (max(len(images), size), *images.shape[1:]))
    return [(images[at : at + size],) for at in range(0, len(images) - size + 1, size)]


def _classifier(folder, recipe, task, splits, data_dir):
    pipeline = data.pipeline(task)
    examples = pipeline.one_by_one(splits, recipe)
    shape = examples[0][0].shape[1:]

    def build(precision):
        return models.build(
            recipe.model, num_classes=task.classes, input_shape=shape, dtype=precision
        )

    known = splits._replace(test_images=splits.train_images[:CALIBRATION])
    return Served(
        _with_weights(folder, recipe, build),
        examples,
        pipeline.one_by_one(known, recipe),
        static=True,
    )


def _reader(folder, recipe, task, splits, data_dir):
    known = vocabulary.load(folder)
    if known != splits.vocabulary:
        raise Refusal(f"--data_dir={data_dir}: holds other words than {folder} was trained on")

    def build(precision):
        return reader.build(recipe, known, precision)

    pipeline = data.pipeline(task)
    training = pipeline.first(splits._replace(test=splits.train), CALIBRATION)
    return Served(
        _with_weights(folder, recipe, build),
        pipeline.one_by_one(splits, recipe),
        pipeline.one_by_one(training, recipe),
        static=False,
    )


_SERVED = {"images": _classifier, "questions": _reader}


def _with_weights(folder, recipe, build):
    """`build`, with the run's weights: their moving averages, if it kept them."""
    trained = build("float32")
    trained.compile(optimizers.build(recipe, steps_per_epoch=1))
    checkpoints.load_weights(folder, trained)
    weights = [variable.numpy().copy() for variable in trained.weights]

    def built(precision):
        model = build(precision)
        model.set_weights(weights)
        return model

    tf.keras.backend.clear_session()
    return built
