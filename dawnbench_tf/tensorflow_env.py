"""Imports TensorFlow late, with tf-keras 2 as tf.keras, and without its log messages."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from absl import logging

from dawnbench_tf.refusals import Refusal


@contextmanager
def importing(verbosity: int = logging.WARNING) -> Iterator[None]:
    """Prepares the environment for a body that imports TensorFlow for the first time.

    `tf.keras` is then tf-keras 2: Keras 3's `fit` fails on several workers and knows no TPU
    strategy. oneDNN is on: TensorFlow leaves it out on x86 CPUs without AVX512_VNNI, where
    training is up to twice as fast with it, and NCHW needs it. On GPUs batch normalization in 16
    bits uses cuDNN's NHWC kernels, and memory is taken as it is needed: to take all of an H200's
    at the start lasts 2 s, and leaves none to other runtimes.

    Args:
      verbosity: absl's, for what is logged from then on.

    Raises:
      ModuleNotFoundError: tf-keras is not installed.
      Refusal: this process has used `tf.keras` as Keras 3 before.
    """
    if find_spec("tf_keras") is None:
        raise ModuleNotFoundError("no tf-keras", name="tf_keras")
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT", "1")
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    check_keras()
    yield
    logging.set_verbosity(verbosity)  # TensorFlow's import has raised it to INFO


def check_keras() -> None:
    """Raises Refusal if this process uses `tf.keras` as Keras 3."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow and tensorflow.keras.Model.__module__.startswith("keras."):
        raise Refusal(
            'tf.keras is Keras 3 here; set os.environ["TF_USE_LEGACY_KERAS"] = "1" before anything '
            "uses tf.keras, e.g. in a notebook's first cell, and start the kernel anew"
        )


@contextmanager
def silent() -> Iterator[None]:
    """Hides output of C++ code on stderr: TensorFlow logs some messages at every level."""
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
