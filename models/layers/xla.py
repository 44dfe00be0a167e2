"""Functions that XLA compiles, and their compilation ahead of a step of training."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import tensorflow as tf

_functions: list[Any] = []


def compiled(function: Callable) -> Any:
    """Makes a function of tensors one that XLA compiles, for each shape of its arguments."""
    _functions.append(tf.function(function, jit_compile=True, autograph=False))
    return _functions[-1]


def traces() -> list[Any]:
    """Returns the traces of all these functions whose arguments have known sizes."""
    every = [t for f in _functions for t in f._list_all_concrete_functions()]
    return [t for t in every if all(x.shape.is_fully_defined() for x in t.inputs)]


def compile_at_once(traces: Sequence[Any]) -> None:
    """Compiles traces in parallel; a step of training would compile one after another.

    They run on zeros, on TensorFlow's default device. The peaks of GPUs' memory begin anew.
    """

    # A graph, in which TensorFlow keeps what it compiles under the names that the step's graph has.
    @tf.function(autograph=False)
    def calls(zero: tf.Tensor) -> tf.Tensor:
        zeros = [[tf.fill(x.shape, tf.cast(zero, x.dtype)) for x in t.inputs] for t in traces]
        outputs = [t.inference_fn.call_flat(*z) for t, z in zip(traces, zeros, strict=True)]
        with tf.control_dependencies(tf.nest.flatten(outputs)):
            return tf.identity(zero)

    with suppress(tf.errors.ResourceExhaustedError):  # the step needs them at different times
        calls(tf.zeros([]))
    for device in tf.config.list_logical_devices("GPU"):
        tf.config.experimental.reset_memory_stats(device.name)
