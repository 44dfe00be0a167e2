"""Activations that are fast in training on CPUs: each is one loop that XLA compiles.

TensorFlow's own activations are several passes over a map, or one that is not vectorized. They take
a large part of a bfloat16 step on CPUs: GELU a quarter of airbench94's step, the gradient of leaky
ReLU 70 of 160 ms of resnet20_tf's. At inference the layers here are TensorFlow's operations, which
every runtime supports, in float32.
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .broadcast import widen
from .registration import register
from .xla import compiled


@compiled
def _forward(formula: Callable[..., tf.Tensor], x: tf.Tensor, *args: float) -> tf.Tensor:
    return tf.cast(formula(widen(x), *args), x.dtype)


@compiled
def _backward(
    formula: Callable[..., tf.Tensor], x: tf.Tensor, upstream: tf.Tensor, *args: float
) -> tf.Tensor:
    wide = widen(x)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        y = formula(wide, *args)
    return tf.cast(tape.gradient(y, wide, widen(upstream)), x.dtype)


def _activate(formula: Callable[..., tf.Tensor], x: tf.Tensor, *args: float) -> tf.Tensor:
    """Returns formula(x, *args), computed in float32 at least; a network's layers share a trace."""

    @tf.custom_gradient
    def activate(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return _forward(formula, x, *args), lambda dy: _backward(formula, x, dy, *args)

    return activate(x)


class _Fused(tf.keras.layers.Layer):
    formula: Callable[[tf.Tensor], tf.Tensor]  # in training
    plain: Callable[[tf.Tensor], tf.Tensor]  # the same in TensorFlow's operations

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(self.formula, inputs)
        return tf.cast(self.plain(widen(inputs)), inputs.dtype)


@register
class GELU(_Fused):
    """Gaussian error linear unit: x times the standard normal CDF of x, computed with erf.

    Source: Hendrycks & Gimpel 2016, arXiv 1606.08415; without the tanh approximation.
    """

    formula = staticmethod(lambda x: x * (0.5 * (1 + tf.math.erf(x * math.sqrt(0.5)))))
    plain = staticmethod(tf.nn.gelu)


@register
class SiLU(_Fused):
    """Sigmoid linear unit: x sigmoid(x), or swish (Elfwing et al. 2017, arXiv 1702.03118)."""

    formula = staticmethod(lambda x: x * tf.sigmoid(x))
    plain = staticmethod(tf.nn.silu)


@register
class Mish(_Fused):
    """Mish: x tanh(softplus(x)) (Misra 2019, arXiv 1908.08681)."""

    formula = staticmethod(lambda x: x * tf.tanh(tf.nn.softplus(x)))

    @staticmethod
    def plain(x: tf.Tensor) -> tf.Tensor:
        # tanh(s) is computed as -m / (m + 2), with m = exp(-2 s) - 1. On CPUs with oneDNN,
        # TensorFlow 2.20 fuses convolution, BN and tanh(softplus), but has no kernel for it.
        m = tf.math.expm1(-2 * tf.nn.softplus(x))
        return x * (-m / (m + 2))


@register
class CELU(tf.keras.layers.Layer):
    """Continuously differentiable ELU: x if x > 0, else alpha (exp(x / alpha) - 1) (Barron 2017).

    Args:
      alpha: negative of the limit for x -> -infinity, over 0.
    """

    formula = staticmethod(
        lambda x, alpha: tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0) / alpha))
    )

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if training:
            return _activate(self.formula, inputs, self.alpha)
        wide = widen(inputs)
        return tf.cast(tf.nn.elu(wide / self.alpha) * self.alpha, inputs.dtype)


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
            return _activate(tf.nn.leaky_relu, inputs, self.slope)
        return tf.cast(tf.nn.leaky_relu(widen(inputs), self.slope), inputs.dtype)


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class PolynomialKernel(tf.keras.layers.Layer):
    """Polynomial kernel (x + balance) ** power, element by element; the balance is trained.

    Behind a convolution it makes a polynomial kervolution (Wang et al. 2019, arXiv 1904.03955,
    section 3.3). One balance serves all channels. float16 and bfloat16 inputs are computed in
    float32, as the power multiplies their rounding errors.

    Args:
      power: the exponent, a whole number of at least 1.
      balance: initial balance.

    Raises:
      ValueError: `power` is not a whole number of at least 1.
    """

    def __init__(self, power: int = 3, balance: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if power != int(power) or power < 1:
            raise ValueError(f"`power` should be a whole number from 1 on. Received: power={power}")
        self.power, self.initial_balance = int(power), float(balance)

    def build(self, input_shape: Any) -> None:
        initializer = tf.keras.initializers.Constant(self.initial_balance)
        self.balance = self.add_weight(name="balance", shape=(), initializer=initializer)
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        wide = widen(inputs)
        base = wide + tf.cast(self.balance, wide.dtype)
        outputs = base
        for _ in range(self.power - 1):  # tf.pow's gradient also takes a logarithm
            outputs *= base
        return tf.cast(outputs, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "power": self.power, "balance": self.initial_balance}
