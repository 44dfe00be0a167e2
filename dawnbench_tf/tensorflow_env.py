"""How the commands import TensorFlow: late, as tf-keras 2, and without its chatter."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from absl import logging


@contextmanager
def importing(verbosity: int = logging.WARNING) -> Iterator[None]:
    """The body imports TensorFlow, for the first time in this process.

    `tf.keras` is then tf-keras 2: Keras 3's `fit` fails on several workers and knows no TPU
    strategy.

    Args:
      verbosity: absl's, for what is logged from then on.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    yield
    logging.set_verbosity(verbosity)  # TensorFlow's import has raised it to INFO


def compile_unheard() -> None:
    """Lets XLA compile something: the first time in a process it says so, whatever the level."""
    import tensorflow as tf

    with silent():
        tf.function(lambda: tf.constant(0), jit_compile=True)()


@contextmanager
def silent() -> Iterator[None]:
    """Hides what code written in C++ says on stderr: TensorFlow logs some at any level."""
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
