"""Loads the published weights that a recipe starts from."""

from pathlib import Path

import tensorflow as tf

from dawnbench_tf import models, terminal
from dawnbench_tf.refusals import one_line, refuse


def load(model: tf.keras.Model, file: str | Path, name: str) -> None:
    """Loads published weights; a head of another number of classes is left as it is, and said."""
    try:
        with_head = models.load_published(model, Path(file).expanduser(), new_head=True)
    except OSError as error:
        refuse("pretrained", name, f"can't be read ({error.strerror})")
    except ValueError as error:
        refuse("pretrained", name, one_line(error, 300).replace("`file`", str(file)))
    head = "" if with_head else "; the head is new"
    terminal.say(f"starts from {Path(file).name}{head}")
