"""Checks that hold for every reader; each takes a model and inputs of equal lengths."""

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import networks
from dawnbench_tf.models.layers import text


def as_graph(model):
    """Returns the model as one graph for all lengths: eager tf-keras would trace each LSTM anew."""
    shapes = [tf.TensorSpec(x.shape, x.dtype) for x in model.inputs]
    graph = tf.function(lambda *inputs: model([*inputs], training=False), input_signature=shapes)
    return lambda inputs: graph(*map(tf.constant, inputs)).numpy()


def check_padding(model, inputs):
    """Checks that more padding in contexts, questions or both does not change logits."""
    outputs = as_graph(model)
    expected = outputs(inputs)
    length = expected.shape[-1]
    for context, question in ((1, 0), (0, 3), (9, 5)):
        more = {"context": (0, context), "question": (0, question)}
        padded = []
        for name, x in zip(networks.family_of(models.get(model.name)).reads, inputs, strict=True):
            tokens = more[name.partition("_")[0]]
            padded.append(np.pad(x, [(0, 0), tokens, *[(0, 0)] * (x.ndim - 2)]))
        logits = outputs(padded)
        np.testing.assert_allclose(logits[:, :, :length], expected, atol=1e-5)
        assert (logits[:, :, length:] <= text.NEVER).all()


def check_gradients(model, inputs):
    """Checks that every trained weight has a gradient other than zeros."""

    @tf.function  # eager tf-keras would trace each LSTM anew
    def differentiate(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(inputs, training=False)))
        return tape.gradient(loss, model.trainable_weights)

    gradients = differentiate([*map(tf.constant, inputs)])
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        assert np.any(tf.convert_to_tensor(gradient)), weight.name


def check_compiled(model, inputs):
    """Checks logits under XLA (tf-keras, which commands use)."""
    inputs = [tf.constant(x) for x in inputs]
    if tf.keras.layers.Layer.__module__.startswith("tf_keras"):
        compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
        np.testing.assert_allclose(compiled(inputs), as_graph(model)(inputs), atol=1e-4)


def check_saved(model, inputs, folder):
    """Checks logits after saving and loading."""
    model.save(folder / "model.keras")
    loaded = tf.keras.models.load_model(folder / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(as_graph(loaded)(inputs), as_graph(model)(inputs))
