"""The convolution's gradients equal TensorFlow's in float64."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import convolution

RNG = np.random.default_rng(0)


def random_values(*shape):
    """Draws float64 values that bfloat16 represents exactly."""
    return tf.cast(tf.cast(RNG.normal(size=shape), tf.bfloat16), tf.float64)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 5)])
def test_gradients_equal_tensorflow_s(height, width):
    x, kernel = random_values(3, height, width, 4), random_values(3, 3, 4, 5)
    upstream = random_values(3, height, width, 5)

    def outputs_and_gradients(convolve):
        with tf.GradientTape() as tape:
            tape.watch([x, kernel])
            y = convolve(x, kernel)
        return y, *tape.gradient(y, [x, kernel], upstream)

    tensorflow = outputs_and_gradients(lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"))
    for ours, theirs in zip(outputs_and_gradients(convolution._convolve), tensorflow, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_matrix_products_are_used_only_where_they_are_faster():
    """bfloat16, 3x3, small maps, many channels; no stride, groups or dilation."""

    def uses_products(filters=256, size=3, dtype="bfloat16", side=7, channels=256, **keywords):
        layer = convolution.Conv2D(filters, size, padding="same", dtype=dtype, **keywords)
        x = tf.zeros([1, side, side, channels], dtype)
        layer.build(x.shape)
        return bool(convolution._uses_matrix_products(layer, x, layer.kernel))

    assert uses_products()
    others = {"filters": 128, "channels": 128, "size": 1, "side": 14, "dtype": "float32"}
    others |= {"strides": 2, "groups": 2, "dilation_rate": 2}
    assert not [name for name, value in others.items() if uses_products(**{name: value})]


def test_kernel_gradient_in_bfloat16_is_close_to_float32_s():
    x, upstream = random_values(2, 3, 3, 256), random_values(2, 3, 3, 256)
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
