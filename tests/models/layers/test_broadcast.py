"""Biases and scales: Keras's in float32; in 16 bits their gradients are exact sums."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import broadcast, convolution, text

pytestmark = pytest.mark.both_kerases

RNG = np.random.default_rng(0)
KERAS = tf.keras.layers
SEPARABLE = broadcast.SeparableConv1D, KERAS.SeparableConv1D
LAYERS = {  # ours, Keras's, their arguments, shape of the input
    "dense": (broadcast.Dense, KERAS.Dense, (5, "relu"), (4, 7, 3)),
    "dense of vectors": (broadcast.Dense, KERAS.Dense, (5,), (4, 3)),
    "dense without bias": (broadcast.Dense, KERAS.Dense, (5, None, False), (4, 3)),
    "convolution": (convolution.Conv2D, KERAS.Conv2D, (5, 3, 2), (4, 7, 7, 3)),
    "dilated": (*SEPARABLE, (5, 3, 1, "valid", None, 2), (4, 9, 3)),
    "separable": (*SEPARABLE, (5, 3, 2), (4, 9, 3)),
}
TOLERANCES = {"float32": 0, "mixed_bfloat16": 0.05, "mixed_float16": 0.005}  # in norm


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_keras_s_weights_outputs_and_gradients(name, dtype):
    ours, keras, arguments, shape = LAYERS[name]
    x = tf.constant(RNG.normal(size=shape), tf.float32)
    layers = [cls(*arguments, dtype=dtype, name="own") for cls in (ours, keras)]
    for layer in layers:
        layer.build(shape)
    layers[0].set_weights([RNG.normal(size=w.shape) for w in layers[0].get_weights()])
    layers[1].set_weights(layers[0].get_weights())
    assert [w.name for w in layers[0].weights] == [w.name for w in layers[1].weights]
    for a, b in zip(*(outputs_and_gradients(layer, x) for layer in layers), strict=True):
        assert np.linalg.norm(a - b) <= TOLERANCES[dtype] * np.linalg.norm(b)


def outputs_and_gradients(layer, x):
    with tf.GradientTape() as tape:
        y = layer(x)
    tensors = [y, *tape.gradient(y, layer.trainable_weights)]
    return [tf.cast(tensor, tf.float64).numpy() for tensor in tensors]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("function", "shape", "axis"),
    [
        (broadcast.add, (24,), -1),
        (broadcast.add, (24,), 1),
        (broadcast.add, (24,), None),
        (broadcast.add, (31, 24), None),
        (broadcast.add, (), None),
        (broadcast.multiply, (24,), None),
        (broadcast.multiply, (31, 24), None),
        (broadcast.multiply, (64, 1, 1, 24), None),
    ],
)
def test_a_weight_s_gradient_is_the_sum_of_its_terms(function, shape, axis, dtype, monkeypatch):
    sizes = (64, 24, 31, 31) if axis == 1 else (64, 31, 31, 24)
    x, upstream = (tf.cast(RNG.normal(size=sizes), dtype) for _ in range(2))
    weight = tf.Variable(RNG.normal(size=shape), dtype=tf.float32)
    options = {"axis": axis} if axis else {}
    gradients = []
    for devices in ([], ["GPU:0"]):  # a GPU sums few columns otherwise
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind, own=devices: own)
        with tf.GradientTape() as tape:
            outputs = function(x, weight, **options)
        gradients.append(tape.gradient(outputs, weight, upstream))
    terms = upstream * x if function is broadcast.multiply else upstream  # rounded to 16 bits
    axes = (0, 2, 3) if axis == 1 else (1, 2) if 1 in shape else tuple(range(4 - len(shape)))
    exact = tf.reduce_sum(tf.cast(terms, tf.float64), axes, keepdims=1 in shape)
    for gradient in gradients:
        assert gradient.dtype == tf.float32
        assert np.linalg.norm(gradient.numpy() - exact) < 0.004 * np.linalg.norm(exact)


def test_vectors_gradients_are_summed_in_float32():
    """Few vectors are a matrix product in 16 bits: the segments of a BERT."""
    for vectors in (2, 100):
        layer = text.TokenEmbedding(vectors, 0, 16, dtype="mixed_bfloat16")
        ids = tf.constant(RNG.integers(0, vectors, (64, 400)))
        upstream = tf.cast(RNG.normal(size=(64, 400, 16)), tf.bfloat16)
        with tf.GradientTape() as tape:
            outputs = layer(ids, training=True)
        gradient = tf.convert_to_tensor(tape.gradient(outputs, layer.table, upstream))
        terms = tf.reshape(tf.cast(upstream, tf.float64), [-1, 16])
        exact = tf.math.unsorted_segment_sum(terms, tf.reshape(ids, [-1]), vectors)
        assert np.linalg.norm(gradient.numpy() - exact) < 0.004 * np.linalg.norm(exact)
        rounded = tf.cast(tf.cast(tf.gather(layer.table, ids), tf.bfloat16), tf.float32)
        np.testing.assert_array_equal(tf.cast(outputs, tf.float32), rounded)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float32_is_tensorflow_s_operation_bit_for_bit(dtype):
    x, weight = (tf.constant(RNG.normal(size=s), dtype) for s in ((8, 5, 5, 24), (24,)))
    for ours, theirs in (
        (broadcast.add, lambda x, w: x + w),
        (partial(broadcast.add, axis=-1), tf.nn.bias_add),
        (broadcast.multiply, lambda x, w: x * w),
    ):
        values = []
        for function in (ours, theirs):
            with tf.GradientTape() as tape:
                tape.watch([x, weight])
                outputs = function(x, weight)
            values.append([outputs, *tape.gradient(outputs, [x, weight], tf.sin(outputs))])
        for a, b in zip(*values, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_factor_of_an_unknown_number_of_examples_has_its_gradient():
    """The attention layers multiply by activations, whose batch size may be unknown."""

    @tf.function(input_signature=[tf.TensorSpec((None, n, 3), tf.bfloat16) for n in (5, 1)])
    def gradient(x, factor):
        with tf.GradientTape() as tape:
            tape.watch(factor)
            y = broadcast.multiply(x, factor)
        return tape.gradient(y, factor)

    x = tf.cast(RNG.normal(size=(4, 5, 3)), "bfloat16")
    sums = tf.reduce_sum(tf.cast(x, "float32"), 1, keepdims=True)
    np.testing.assert_allclose(gradient(x, x[:, :1]), tf.cast(sums, "bfloat16"), rtol=0.02)
