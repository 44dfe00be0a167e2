"""What every reader keeps to, whatever its network: each takes a model and inputs of one length."""

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import networks
from dawnbench_tf.models.layers import text


def answers(model):
    """The model as one graph, whatever the length: eagerly, tf-keras traces each LSTM anew."""
    shapes = [tf.TensorSpec(x.shape, x.dtype) for x in model.inputs]
    graph = tf.function(lambda *inputs: model([*inputs], training=False), input_signature=shapes)
    return lambda inputs: graph(*map(tf.constant, inputs)).numpy()


def padding_changes_nothing(model, inputs):
    """Not with more tokens of padding in the contexts, in the questions, in both."""
    outputs = answers(model)
    wanted = outputs(inputs)
    length = wanted.shape[-1]
    for context, question in ((1, 0), (0, 3), (9, 5)):
        more = {"context": (0, context), "question": (0, question)}
        padded = []
        for name, x in zip(networks.family_of(models.get(model.name)).reads, inputs, strict=True):
            tokens = more[name.partition("_")[0]]
            padded.append(np.pad(x, [(0, 0), tokens, *[(0, 0)] * (x.ndim - 2)]))
        logits = outputs(padded)
        np.testing.assert_allclose(logits[:, :, :length], wanted, atol=1e-5)
        assert (logits[:, :, length:] <= text.NEVER).all()


def parameters_are(name, counted):
    """The catalogue's, and those of the network as it is built."""
    assert models.get(name).parameters == counted
    trained = models.build(name).trainable_weights
    assert sum(int(np.prod(w.shape)) for w in trained) == counted


def gradients_reach_every_weight(model, inputs):
    """None of them is zeros everywhere."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(inputs, training=False)))
    gradients = tape.gradient(loss, model.trainable_weights)
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        assert np.any(tf.convert_to_tensor(gradient)), weight.name


def it_compiles_and_comes_back(model, inputs, folder):
    """Under XLA (with the Keras that the commands train with), and from a file."""
    inputs = [tf.constant(x) for x in inputs]
    wanted = model(inputs, training=False)
    if tf.keras.layers.Layer.__module__.startswith("tf_keras"):
        compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
        np.testing.assert_allclose(compiled(inputs), wanted, atol=1e-4)
    model.save(folder / "model.keras")
    again = tf.keras.models.load_model(folder / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(again(inputs, training=False), wanted)
