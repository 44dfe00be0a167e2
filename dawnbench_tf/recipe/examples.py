"""The classes of data settings: which one a task's examples take, and conversion between them."""

from dataclasses import fields
from typing import Any

from dawnbench_tf.recipe.images import Images, Jpegs
from dawnbench_tf.recipe.questions import Questions
from dawnbench_tf.tasks import Task

NAMES = {Images: "images of one size", Jpegs: "JPEGs", Questions: "questions"}  # in errors


def settings_of(task: Task) -> type[Images] | type[Jpegs] | type[Questions]:
    """Returns the class of a task's data settings."""
    return Questions if task.inputs == "questions" else Jpegs if task.jpegs else Images


def converted(data: Any, task: Task | None) -> Any:
    """Returns data settings of the class that a task takes, with the values that both have.

    `image_sizes` are dropped: they fit the old task only.
    """
    if task is None or isinstance(data, settings_of(task)):
        return data
    cls = settings_of(task)
    shared = {item.name for item in fields(cls)} & {item.name for item in fields(data)}
    shared -= {"image_sizes", "image_size_epochs"}
    return cls(**{name: getattr(data, name) for name in shared})
