"""Data sets: one module each, `load(data_dir, download) -> Splits`, in memory as uint8."""

from importlib import import_module

import numpy as np

from dawnbench_tf.data import synthetic
from dawnbench_tf.data.splits import Splits
from dawnbench_tf.settings import Refusal


def load(task, recipe, run) -> Splits:
    """Loads a task's data, or its synthetic stand-in. Raises Refusal if it is not all there."""
    if recipe.synthetic:
        splits = synthetic.make(task, recipe.seed)
    else:
        splits = import_module(f"{__name__}.{task.name}").load(run.data_dir, run.download)
    _check(task, splits)
    return splits


def _check(task, splits):
    for name, images, labels, wanted in (
        ("train", splits.train_images, splits.train_labels, task.train_examples),
        ("test", splits.test_images, splits.test_labels, task.test_examples),
    ):
        if len(images) != wanted or len(labels) != wanted:
            raise Refusal(f"{task.name} {name}: should hold {wanted} examples, found {len(images)}")
        if labels.min() < 0 or labels.max() >= task.classes:
            bad = int(np.argmax((labels < 0) | (labels >= task.classes)))
            raise Refusal(
                f"{task.name} {name}: label {labels[bad]} of example {bad} should be in "
                f"0..{task.classes - 1}; the file is damaged or of another data set"
            )
