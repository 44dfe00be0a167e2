"""Checks a model's name and its file of published weights, without TensorFlow."""

import hashlib
from pathlib import Path

from dawnbench_tf import models
from dawnbench_tf.refusals import refuse
from dawnbench_tf.tasks import TASKS


def check(model: str, weights: str, task: str) -> None:
    """Raises Refusal unless the model is known, the file exists and the task has its inputs."""
    try:
        variant = models.get(model)
    except ValueError as error:
        refuse("model", model, str(error))
    if not Path(weights).is_file():
        refuse("weights", weights, "is no file; should be published weights of --model")
    if task not in TASKS:
        text = "should be" if task else "is required with --weights:"
        refuse("task", task, f"{text} one of {', '.join(TASKS)}")
    if variant.inputs != TASKS[task].inputs:
        refuse("task", task, f"{model} takes {variant.inputs}")


def folder(model: str, weights: str) -> Path:
    """Returns the folder for an entry: that of the run, or infer/MODEL-FILE-DIGEST.

    Files of different weights often have one name, as model.safetensors.
    """
    if not weights:
        return Path(model)
    return Path("infer") / f"{model}-{Path(weights).stem}-{digest(weights)[:8]}"


def digest(weights: str | Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with open(weights, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
