"""Data sets: one module each, `load(data_dir, download)`, and the pipelines of their two kinds.

Images are `Splits`, questions on passages are `Reading`.
"""

from importlib import import_module

import numpy as np

from dawnbench_tf.data import image_pipeline, question_pipeline, synthetic
from dawnbench_tf.data.reading import Reading
from dawnbench_tf.data.splits import Splits
from dawnbench_tf.settings import Refusal


def pipeline(task):
    """The module that makes batches of the task's data."""
    return {"images": image_pipeline, "questions": question_pipeline}[task.kind]


def load(task, recipe, run) -> Splits | Reading:
    """Loads a task's data, or its synthetic stand-in. Raises Refusal if it is not all there."""
    if recipe.synthetic:
        splits = synthetic.make(task, recipe.seed)
    else:
        splits = import_module(f"{__name__}.{task.name}").load(run.data_dir, run.download)
    {"images": _check_images, "questions": _check_questions}[task.kind](task, splits)
    return splits


def _check_questions(task, splits):
    for name, split, wanted in (
        ("train", splits.train, task.train_examples),
        ("test", splits.test, task.test_examples),
    ):
        if len(split.passages) != wanted:
            found = len(split.passages)
            raise Refusal(f"{task.name} {name}: should hold {wanted} questions, found {found}")


def _check_images(task, splits):
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
