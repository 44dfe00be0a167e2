"""`tf.function`, weights frozen to constants, so that TensorFlow folds what it can."""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Example
from dawnbench_tf.inference import exports
from dawnbench_tf.inference.served import Runtime, Served, keras_precision, weight_bytes
from dawnbench_tf.models.layers import recurrent


def build(served: Served, precision: str, threads: int) -> Runtime:
    """The model as TensorFlow's graph, on the CPUs of the process."""
    model = served.build(keras_precision(precision))
    recurrent.fuse(model)
    forward = exports.frozen(model, served)

    def call(example: Example) -> np.ndarray:
        return forward(*map(tf.constant, example))[0].numpy()

    return Runtime(call, weight_bytes(model))
