"""The interface of runtimes: `Served` is their input, `Runtime` their output."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Example


class Served(NamedTuple):
    """A trained model and its examples, the input of a runtime."""

    build: Callable[[str], tf.keras.Model]  # precision -> model with its weights
    examples: Sequence[Example]  # test examples
    calibration: Sequence[Example]  # training examples, for the ranges of int8 values
    fixed_shape: bool  # whether all examples have the same shape
    fixed_batch: bool = True  # whether all examples have the same batch size


class Runtime(NamedTuple):
    """A model loaded in a runtime."""

    call: Callable[[Example], np.ndarray]  # example -> logits, a new array
    size: int  # bytes of the weights in the runtime's format


def weight_bytes(model: tf.keras.Model) -> int:
    """Returns the size of a Keras model's weights in bytes."""
    return sum(int(np.prod(w.shape)) * tf.as_dtype(w.dtype).size for w in model.weights)


def keras_precision(precision: str) -> str:
    """Returns the Keras dtype policy for a runtime's precision."""
    return "mixed_bfloat16" if precision == "bfloat16" else precision
