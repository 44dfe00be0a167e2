"""Runtime `xla`: `tf.function` compiled by XLA."""

import tensorflow as tf

from dawnbench_tf.inference.serving import Runtime, Served, keras_precision, weight_bytes


def build(served: Served, precision: str, threads: int) -> Runtime:
    """Builds the model as an XLA-compiled function, on the CPUs of the process."""
    model = served.build(keras_precision(precision))
    forward = tf.function(lambda *inputs: model(list(inputs), training=False), jit_compile=True)
    return Runtime(lambda example: forward(*map(tf.constant, example)).numpy(), weight_bytes(model))
