"""BiDAF equals plain NumPy and its paper's size; padding does not change logits."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from dawnbench_tf import models
from dawnbench_tf.models import bidafs, tpu_qanets
from dawnbench_tf.models.layers import attention
from tests.models.graphs import as_graph, random_reader

RNG = np.random.default_rng(0)


def reader(**overrides):
    sizes = {"trained_words": 20, "fixed_words": 30, "vector_width": 100, "characters": 9}
    return random_reader("bidaf", 0, **sizes, hidden=5, character_filters=7, **overrides)


def texts(context=11, question=4, examples=3):
    def words(length):
        numbers = RNG.integers(1, 50, (examples, length)).astype(np.int32)
        return numbers, RNG.integers(0, 9, (examples, length, 16)).astype(np.int32)

    return [*words(context), *words(question)]


def test_texts_have_their_channels_last_whatever_keras_is_set_to():
    before = tf.keras.backend.image_data_format()
    tf.keras.backend.set_image_data_format("channels_first")
    try:
        spelling = bidafs._spelling(9, 7, 0.0, None)
        assert spelling(np.ones((2, 5, 16), np.int32)).shape == (2, 5, 7)
        convolution = tpu_qanets.convolve(4, 3, None)
        assert convolution(tf.ones([2, 6, 4]), tf.ones([2, 6])).shape == (2, 6, 4)
    finally:
        tf.keras.backend.set_image_data_format(before)


def test_parameters_are_the_paper_s_2_6_million():
    """Each character adds 8 and each trained word 100; here there are two each."""
    width, hidden = 200, 100

    def bilstm(inputs):
        return 2 * 4 * ((inputs + hidden) * hidden + hidden)

    convolution, highways = 5 * 8 * 100 + 100, 2 * 2 * (width * width + width)
    attends, ends = 3 * width + 1, 2 * (5 * width + 1)
    lstms = bilstm(width) + bilstm(4 * width) + bilstm(width) + bilstm(7 * width)
    counted = convolution + highways + attends + ends + lstms
    assert counted == 2_570_703
    assert models.get("bidaf").parameters == counted + 2 * 8 + 2 * 100


def test_attention_equals_numpy_with_the_tensor_of_all_pairs():
    layer = attention.BidirectionalAttention()
    h, u = RNG.normal(size=(2, 6, 8)).astype("f"), RNG.normal(size=(2, 4, 8)).astype("f")
    h_mask, u_mask = np.arange(6) < [[6], [3]], np.arange(4) < [[2], [4]]
    layer([h, u, h_mask, u_mask])
    layer.bias.assign(0.7)
    outputs = layer([h, u, h_mask, u_mask])
    w = np.concatenate(np.asarray(tf.identity(layer.parts)))
    for i, (words, questions) in enumerate([(6, 2), (3, 4)]):
        hh, uu = h[i, :words], u[i, :questions]
        both = np.broadcast_arrays(hh[:, None], uu[None])
        s = np.concatenate([*both, both[0] * both[1]], -1) @ w + 0.7  # (words, asked)
        attended, attended_context = softmax(s, 1) @ uu, softmax(s.max(1)) @ hh
        expected = np.concatenate([hh, attended, hh * attended, hh * attended_context], -1)
        np.testing.assert_allclose(outputs[i, :words], expected, atol=1e-5)


@pytest.mark.long
def test_dropout_applies_in_training_only():
    model, again = reader(), reader(dropout=0.5)
    again.set_weights(model.get_weights())
    forward, inputs = tf.function(again), [tf.constant(x) for x in texts()]
    expected = as_graph(model)(inputs)
    np.testing.assert_allclose(forward(inputs, training=False), expected, atol=1e-6)
    assert not np.allclose(*(forward(inputs, training=True) for _ in range(2)))


def test_initial_weights_have_the_ranges_of_the_seed():
    """TensorFlow 1: one Glorot range for a cell's inputs and states, and Glorot for biases."""
    model = models.build("bidaf", characters=50)
    limits = {}
    for weight in model.trainable_variables:
        limits.setdefault(tuple(weight.shape), []).append(float(np.abs(weight.numpy()).max()))

    def glorot(fan_in, fan_out):
        return (6 / (fan_in + fan_out)) ** 0.5

    for width in (200, 800, 1400):
        kernels = limits[width, 400]
        assert all(0.99 < most / glorot(width + 100, 400) <= 1 for most in kernels)
    assert any(0.99 < most / glorot(300, 400) <= 1 for most in limits[100, 400])
    (attention,) = limits[3, 200]
    assert 0.98 < attention / glorot(600, 1) <= 1
    assert any(0.9 < most / glorot(100, 100) <= 1 for most in limits[100,])
