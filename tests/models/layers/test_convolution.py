"""Our gradient of a kernel against TensorFlow's own, of float64."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import convolution

RNG = np.random.default_rng(0)


def drawn(*shape):
    """Numbers that bfloat16 holds exactly."""
    return tf.cast(tf.cast(RNG.normal(size=shape), tf.bfloat16), tf.float64)


@pytest.mark.parametrize(("height", "width"), [(3, 3), (7, 7), (1, 1), (2, 5), (1, 8)])
def test_gradients_are_tensorflow_s(height, width):
    x, kernel = drawn(3, height, width, 4), drawn(3, 3, 4, 5)
    upstream = drawn(3, height, width, 5)

    def of(convolve):
        with tf.GradientTape() as tape:
            tape.watch([x, kernel])
            y = convolve(x, kernel)
        return y, *tape.gradient(y, [x, kernel], upstream)

    tensorflow = of(lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"))
    for ours, theirs in zip(of(convolution._convolve), tensorflow, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_only_where_products_are_faster():
    """bfloat16, small maps, many channels, all of them convolved at once without a stride."""

    def by_products(filters=256, size=3, dtype="bfloat16", side=7, channels=256, **keywords):
        layer = convolution.Conv2D(filters, size, padding="same", dtype=dtype, **keywords)
        x = tf.zeros([1, side, side, channels], dtype)
        layer.build(x.shape)
        return bool(convolution._by_products(layer, x, layer.kernel))

    assert by_products()
    assert not by_products(filters=128)
    assert not by_products(channels=128)
    assert not by_products(size=1)
    assert not by_products(side=14)
    assert not by_products(dtype="float32")
    assert not by_products(strides=2)
    assert not by_products(groups=2)
    assert not by_products(dilation_rate=2)


def test_a_layer_of_bfloat16_learns_as_one_of_float32():
    x, upstream = drawn(2, 3, 3, 256), drawn(2, 3, 3, 256)
    gradients = []
    for layer in (
        convolution.Conv2D(256, 3, padding="same", use_bias=False, dtype="bfloat16"),
        tf.keras.layers.Conv2D(256, 3, padding="same", use_bias=False, dtype="float32"),
    ):
        inputs = tf.cast(x, layer.dtype)
        with tf.GradientTape() as tape:
            y = layer(inputs)
        gradient = tape.gradient(y, layer.kernel, tf.cast(upstream, layer.dtype))
        gradients.append(np.asarray(tf.cast(gradient, "float32")))
    np.testing.assert_allclose(*gradients, rtol=1e-2, atol=0.1)
