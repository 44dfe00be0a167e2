"""The polynomial kernel and its gradients equal formulas in float64."""

import re

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import activations

X = np.linspace(-3, 3, 24).reshape(2, 3, 2, 2)


def built(power, balance, dtype="float64"):
    layer = activations.PolynomialKernel(power, balance, dtype=dtype)
    layer.build(X.shape)
    return layer


@pytest.mark.parametrize("dtype", ["float64", "float32", "mixed_bfloat16", "mixed_float16"])
def test_gradients_equal_the_formula(dtype):
    """d/dx (x + b)^2 = 2 (x + b), also where x + b is negative; the balance's is the sum.

    The third power: test_imagenet_resnets.py.
    """
    layer = built(2, 1.5, dtype)
    x = tf.cast(X, layer.compute_dtype)
    upstream = tf.cast(np.linspace(-1, 1, X.size).reshape(X.shape), x.dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    dx, d_balance = tape.gradient(y, [x, layer.trainable_variables[0]], upstream)
    assert y.dtype == dx.dtype == x.dtype
    exact, scale = (np.asarray(tf.cast(values, "float64")) for values in (x, upstream))
    error = {"float64": 1e-12, "float32": 1e-6}.get(dtype, 1e-2)
    np.testing.assert_allclose(tf.cast(y, "float64"), (exact + 1.5) ** 2, rtol=error)
    slopes = 2 * (exact + 1.5) * scale
    np.testing.assert_allclose(tf.cast(dx, "float64"), slopes, rtol=error, atol=error)
    np.testing.assert_allclose(tf.cast(d_balance, "float64"), slopes.sum(), rtol=error)


def test_the_balance_is_one_trained_number_and_its_initial_value_is_in_the_config():
    layer = built(3, 2)
    (balance,) = layer.trainable_variables
    assert balance.shape == () and float(balance) == 2
    balance.assign(5)
    again = activations.PolynomialKernel.from_config(layer.get_config())
    again.build(X.shape)
    assert again.power == 3 and float(again.trainable_variables[0]) == 2


@pytest.mark.parametrize("power", [0, 2.5])
def test_a_power_that_is_no_count_is_refused(power):
    line = re.escape(f"`power` should be a whole number from 1 on. Received: power={power}")
    with pytest.raises(ValueError, match=f"^{line}$"):
        activations.PolynomialKernel(power)
