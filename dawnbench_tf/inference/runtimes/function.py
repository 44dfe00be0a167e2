"""Runtime `function`: `tf.function` with weights frozen to constants, which TensorFlow folds."""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.serving import Runtime, Served, keras_precision, weight_bytes
from dawnbench_tf.models.layers import recurrent


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Builds the model as a frozen TensorFlow graph, on the CPUs of the process."""
    model = served.build(keras_precision(precision))
    recurrent.fuse(model)
    forward = exports.freeze(model, served)

    def call(example: Example) -> np.ndarray:
        return forward(*map(tf.constant, example))[0].numpy()

    return Runtime(call, weight_bytes(model))
