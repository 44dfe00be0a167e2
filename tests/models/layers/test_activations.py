"""Activations and their gradients equal NumPy's float64 formulas, in every precision."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit
from scipy.stats import norm

from dawnbench_tf.models.layers import activations, image, xla

X = np.concatenate([np.linspace(-6, 6, 241), [0.0, -0.0, 40.0, -40.0]])


# name: (layer, formula of the value, formula of the derivative)
FORMULAS = {
    "gelu": (  # Hendrycks & Gimpel 2016, section 2
        activations.GELU,
        lambda x: x * norm.cdf(x),
        lambda x: norm.cdf(x) + x * norm.pdf(x),
    ),
    "celu": (  # Barron 2017, equation 2
        lambda **dtype: activations.CELU(0.3, **dtype),
        lambda x: np.maximum(x, 0) + np.minimum(0, 0.3 * np.expm1(x / 0.3)),
        lambda x: np.where(x > 0, 1, np.exp(np.minimum(x, 0) / 0.3)),
    ),
    "silu": (  # Elfwing et al. 2017, equations 8 and 9
        activations.SiLU,
        lambda x: x * expit(x),
        lambda x: expit(x) * (1 + x * expit(-x)),
    ),
    "mish": (  # Misra 2019, equation 1, with t = tanh(ln(1 + exp(x)))
        activations.Mish,
        lambda x: x * np.tanh(np.logaddexp(0, x)),
        lambda x: np.tanh(np.logaddexp(0, x)) + x * expit(x) / np.cosh(np.logaddexp(0, x)) ** 2,
    ),
    "leaky_relu": (
        lambda **dtype: activations.LeakyReLU(0.1, **dtype),
        lambda x: np.where(x > 0, x, 0.1 * x),
        lambda x: np.where(x > 0, 1, 0.1),
    ),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("dtype", "error"),
    [("float64", 1e-12), ("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 1e-2)],
)
@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_derivatives_equal_the_formulas(name, dtype, error, training):
    make, value, slope = FORMULAS[name]
    if not training or name == "leaky_relu":
        error = max(error, 1e-6)  # TensorFlow's operations have float32 constants
    x = tf.cast(X, dtype)
    layer = make(dtype=dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=training)
    upstream = tf.cast(np.linspace(-2, 2, len(X)), dtype)
    dx = tape.gradient(y, x, upstream)
    assert y.dtype == dx.dtype == dtype
    exact, scale = (np.asarray(tf.cast(values, "float64")) for values in (x, upstream))
    np.testing.assert_allclose(tf.cast(y, "float64"), value(exact), rtol=error, atol=error)
    where = exact != 0  # leaky ReLU has no derivative at 0
    slopes, expected = np.asarray(tf.cast(dx, "float64")), slope(exact) * scale
    np.testing.assert_allclose(slopes[where], expected[where], rtol=error, atol=error)


def test_inference_after_a_convolution_and_bn_equals_the_eager_one():
    """TensorFlow fuses these operations on CPUs, and has no fused kernel for Mish."""
    layers = [make(dtype="float32") for make, _, _ in FORMULAS.values()]
    images = tf.random.stateless_normal((2, 8, 8, 3), (0, 1))
    kernels = tf.unstack(tf.random.stateless_normal((len(layers), 3, 3, 3, 4), (0, 2)))
    normalize = tf.keras.layers.BatchNormalization()

    def outputs(images):
        maps = [normalize(tf.nn.conv2d(images, kernel, 1, "SAME")) for kernel in kernels]
        return [layer(x) for layer, x in zip(layers, maps, strict=True)]

    for one, other in zip(tf.function(outputs)(images), outputs(images), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_layer_is_restored_from_its_configuration():
    layer = activations.LeakyReLU(0.2)  # of the others: test_catalog.py
    again = activations.LeakyReLU.from_config(layer.get_config())
    np.testing.assert_array_equal(layer(X), again(X))


def test_what_a_step_has_traced_is_compiled_before_it_runs(monkeypatch):
    def names():
        functions = activations._forward, activations._backward, image._pool_forward
        return {t.name for f in functions for t in f._list_all_concrete_functions()}

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = activations.CELU(0.37)(image.pool_pairs(x, 1), training=True)
        return tape.gradient(y, x)

    before, calls, compiled = names(), [], xla.traces()
    step.get_concrete_function(tf.TensorSpec((2, 6, 4, 3), tf.bfloat16))
    step.get_concrete_function(tf.TensorSpec((None, 6, 4, 3), tf.bfloat16))
    fill = tf.fill
    monkeypatch.setattr(tf, "fill", lambda shape, x: calls.append(shape) or fill(shape, x))
    due = [trace for trace in xla.traces() if trace not in compiled]
    xla.compile_at_once(due)
    # Forward one argument, backward two; sizes that are not known are compiled by the step.
    assert len(names() - before) == 6 and len({t.name for t in due} & names() - before) == 3
    assert sorted(map(tuple, calls)) == [(2, 3, 2, 3)] * 5 + [(2, 6, 4, 3)]
