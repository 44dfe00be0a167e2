"""Checks a model's name and its file of published weights, without TensorFlow."""

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


def folder(model: str, weights: str, sha256: str) -> Path:
    """Returns the folder for an entry: that of the run, or infer/MODEL-FILE-DIGEST.

    Files of different weights often have one name, as model.safetensors.
    """
    name = f"{model}-{Path(weights).stem}-{sha256[:8]}"
    return Path("infer") / name if weights else Path(model)
