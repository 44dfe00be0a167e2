"""A fused LSTM equals Keras's in both directions, for any padding."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import recurrent

RNG = np.random.default_rng(0)


@pytest.fixture
def layer():
    layer = recurrent.bilstm(5, ("glorot_uniform", "orthogonal", "zeros"), None)
    layer.build((None, None, 3))
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def fuse(layer):
    inputs = tf.keras.Input((None, 3)), tf.keras.Input((None,), dtype="bool")
    recurrent.fuse(tf.keras.Model(inputs, layer(inputs[0], mask=inputs[1])))


def test_a_fused_lstm_equals_keras_s_at_every_token(layer):
    x = tf.constant(RNG.normal(size=(4, 9, 3)), tf.float32)
    mask = tf.constant(np.arange(9) < np.array([9, 4, 1, 7])[:, None])

    keras_s = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(5, return_sequences=True))
    keras_s.build((None, None, 3))
    keras_s.set_weights(layer.get_weights())
    tokens = tf.cast(mask, tf.float32)[..., None]
    expected = keras_s(x, mask=mask) * tokens
    np.testing.assert_array_equal(layer(x, mask=mask) * tokens, expected)
    fuse(layer)
    np.testing.assert_allclose(layer(x, mask=mask) * tokens, expected, rtol=1e-4, atol=1e-5)


def test_a_fused_lstm_refuses_a_gradient(layer):
    """TensorFlow's gradient of BlockLSTMV2 assumes another order of the gates."""
    fuse(layer)
    with tf.GradientTape() as tape:
        y = layer(tf.ones((1, 2, 3)), mask=tf.ones((1, 2), bool))
    with pytest.raises(NotImplementedError, match="fused LSTMs are for inference"):
        tape.gradient(y, layer.trainable_weights)


def test_a_fused_lstm_is_one_operation_for_all_tokens(layer):
    fuse(layer)
    call = tf.function(lambda x, mask: layer(x, mask=mask))
    specs = tf.TensorSpec((1, None, 3)), tf.TensorSpec((1, None), tf.bool)
    graph = call.get_concrete_function(*specs).graph
    operations = [operation.type for operation in graph.get_operations()]
    assert operations.count("BlockLSTMV2") == 2 and "While" not in operations
