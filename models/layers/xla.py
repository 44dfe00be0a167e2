"""Functions that XLA compiles, and their compilation ahead of a step of training."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import tensorflow as tf

_functions: list[Any] = []
_compiled = set[str]()  # names of traces


def compiled(function: Callable) -> Any:
    """Makes a function of tensors one that XLA compiles, for each shape of its arguments."""
    _functions.append(tf.function(function, jit_compile=True, autograph=False))
    return _functions[-1]


def compile_traced() -> None:
    """Compiles what has been traced, all at once: a step of training compiles one by one.

    They run on zeros, on TensorFlow's default device. Traces of unknown sizes are left out.
    """
    traces = [t for f in _functions for t in f._list_all_concrete_functions()]
    due = [t for t in traces if t.name not in _compiled]
    due = [t for t in due if all(x.shape.is_fully_defined() for x in t.inputs)]
    _compiled.update(t.name for t in due)

    # A graph, in which TensorFlow keeps what it compiles under the names that the step's graph has.
    @tf.function(autograph=False)
    def calls(zero: tf.Tensor) -> list[Any]:
        zeros = ([tf.fill(x.shape, tf.cast(zero, x.dtype)) for x in t.inputs] for t in due)
        return [t.inference_fn.call_flat(*values) for t, values in zip(due, zeros, strict=True)]

    with suppress(tf.errors.ResourceExhaustedError):  # the step needs them at different times
        calls(tf.zeros([]))
