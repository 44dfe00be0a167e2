"""A trained model as runtimes take it, and as they give it back."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Example


class Served(NamedTuple):
    """A trained model, ready for a runtime."""

    build: Callable[[str], tf.keras.Model]  # the model with its weights, in a precision
    examples: Sequence[Example]  # of the test
    calibration: Sequence[Example]  # of the training data, for the ranges of integers
    fixed_shape: bool  # whether all examples have one shape
    fixed_batch: bool = True  # whether all are batches of one size


class Runtime(NamedTuple):
    """A model in a runtime."""

    call: Callable[[Example], np.ndarray]  # one example to its logits, an array of its own
    size: int  # bytes of the weights as this runtime has them


def weight_bytes(model: tf.keras.Model) -> int:
    """Bytes of a Keras model's weights."""
    return sum(int(np.prod(w.shape)) * tf.as_dtype(w.dtype).size for w in model.weights)


def keras_precision(precision: str) -> str:
    """A runtime's precision as Keras names the policy of its layers."""
    return "mixed_bfloat16" if precision == "bfloat16" else precision
