"""Activations that are fast in training on CPUs: each is one loop that XLA compiles.

TensorFlow's own activations are several passes over a map, or one that is not vectorized. They take
a large part of a bfloat16 step on CPUs: GELU a quarter of airbench94's step, the gradient of leaky
ReLU 70 of 160 ms of resnet20_tf's. At inference the layers here are TensorFlow's operations, which
every runtime supports, in float32.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from .broadcast import widen
from .registration import register

compiled = partial(tf.function, jit_compile=True, autograph=False)


def _activate(
    forward: Callable[..., tf.Tensor],
    backward: Callable[..., tf.Tensor],
    x: tf.Tensor,
    *args: float,
) -> tf.Tensor:
    """Returns forward(x, *args), with backward(x, upstream, *args) as its gradient."""

    @tf.custom_gradient
    def activate(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(x, *args), lambda upstream: backward(x, upstream, *args)

    return activate(x)


@register
class GELU(tf.keras.layers.Layer):
    """Gaussian error linear unit: x times the standard normal CDF of x, computed with erf.

    Source: Hendrycks & Gimpel 2016, arXiv 1606.08415; without the tanh approximation.
    """

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(_gelu_forward, _gelu_backward, inputs)
        return tf.cast(tf.nn.gelu(widen(inputs)), inputs.dtype)


def _normal_cdf(x: tf.Tensor) -> tf.Tensor:
    return 0.5 * (1 + tf.math.erf(x * math.sqrt(0.5)))


@compiled
def _gelu_forward(x: tf.Tensor) -> tf.Tensor:
    wide = widen(x)
    return tf.cast(wide * _normal_cdf(wide), x.dtype)


@compiled
def _gelu_backward(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    # d/dx x cdf(x) = cdf(x) + x density(x)
    wide = widen(x)
    density = tf.exp(-0.5 * wide * wide) / math.sqrt(2 * math.pi)
    return tf.cast(widen(upstream) * (_normal_cdf(wide) + wide * density), x.dtype)


@register
class SiLU(tf.keras.layers.Layer):
    """Sigmoid linear unit: x sigmoid(x), or swish (Elfwing et al. 2017, arXiv 1702.03118)."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(_silu_forward, _silu_backward, inputs)
        return tf.cast(tf.nn.silu(widen(inputs)), inputs.dtype)


@compiled
def _silu_forward(x: tf.Tensor) -> tf.Tensor:
    wide = widen(x)
    return tf.cast(wide * tf.sigmoid(wide), x.dtype)


@compiled
def _silu_backward(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    # d/dx x sigmoid(x) = sigmoid(x) (1 + x (1 - sigmoid(x)))
    wide = widen(x)
    share = tf.sigmoid(wide)
    return tf.cast(widen(upstream) * share * (1 + wide * (1 - share)), x.dtype)


@register
class Mish(tf.keras.layers.Layer):
    """Mish: x tanh(softplus(x)) (Misra 2019, arXiv 1908.08681)."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(_mish_forward, _mish_backward, inputs)
        # tanh(s) is computed as -m / (m + 2), with m = exp(-2 s) - 1. On CPUs with oneDNN,
        # TensorFlow 2.20 fuses convolution, BN and tanh(softplus), but has no kernel for it.
        wide = widen(inputs)
        m = tf.math.expm1(-2 * tf.nn.softplus(wide))
        return tf.cast(wide * (-m / (m + 2)), inputs.dtype)


@compiled
def _mish_forward(x: tf.Tensor) -> tf.Tensor:
    wide = widen(x)
    return tf.cast(wide * tf.tanh(tf.nn.softplus(wide)), x.dtype)


@compiled
def _mish_backward(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    # With t = tanh(softplus(x)): d/dx x t = t + x sigmoid(x) (1 - t^2)
    wide = widen(x)
    squashed = tf.tanh(tf.nn.softplus(wide))
    slope = squashed + wide * tf.sigmoid(wide) * (1 - squashed * squashed)
    return tf.cast(widen(upstream) * slope, x.dtype)


@register
class CELU(tf.keras.layers.Layer):
    """Continuously differentiable ELU: x if x > 0, else alpha (exp(x / alpha) - 1) (Barron 2017).

    Args:
      alpha: negative of the limit for x -> -infinity, over 0.
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(_celu_forward, _celu_backward, inputs, self.alpha)
        wide = widen(inputs)
        return tf.cast(tf.nn.elu(wide / self.alpha) * self.alpha, inputs.dtype)


@compiled
def _celu_forward(x: tf.Tensor, alpha: float) -> tf.Tensor:
    wide = widen(x)
    below = alpha * tf.math.expm1(tf.minimum(wide, 0) / alpha)
    return tf.cast(tf.where(wide > 0, wide, below), x.dtype)


@compiled
def _celu_backward(x: tf.Tensor, upstream: tf.Tensor, alpha: float) -> tf.Tensor:
    return tf.cast(widen(upstream) * tf.exp(tf.minimum(widen(x), 0) / alpha), x.dtype)


@register
class LeakyReLU(tf.keras.layers.Layer):
    """Leaky ReLU: x if x > 0, else `slope` x (Maas et al. 2013).

    Args:
      slope: factor of negative inputs.
    """

    def __init__(self, slope: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.slope = slope

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training and inputs.dtype.size < 4:  # in float32 TensorFlow's own is as fast
            return _activate(tf.nn.leaky_relu, _leaky_backward, inputs, self.slope)
        return tf.nn.leaky_relu(inputs, self.slope)


@compiled
def _leaky_backward(x: tf.Tensor, upstream: tf.Tensor, slope: float) -> tf.Tensor:
    wide = widen(upstream)
    return tf.cast(tf.where(x > 0, wide, wide * slope), x.dtype)
