"""Loading of whole `.keras` files.

Importing this module imports every module of ours that registers a layer or an initializer with
Keras, so that Keras finds the classes that a file names.
"""

import os

import tensorflow as tf

from . import (  # noqa: F401
    activations,
    attention,
    convolutions,
    dropouts,
    initializers,
    layers,
    recurrence,
    sequences,
    text_layers,
)


def load_model(file: str | os.PathLike) -> tf.keras.Model:
    """Returns the model of a `.keras` file; `models.load_model` documents it."""
    return tf.keras.models.load_model(file, safe_mode=True)
