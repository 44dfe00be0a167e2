"""Activations whose training costs little more than to read their map and write it.

TensorFlow's own take most of the time of a bfloat16 step on CPUs (GELU a quarter of airbench94's,
leaky ReLU's gradient 70 of 160 ms of resnet20_tf's), as these are several passes, or one that goes
number by number. In training each is one loop that XLA compiles; at inference it is TensorFlow's
operation, which every runtime knows, in float32.
"""

import math
from functools import partial

import tensorflow as tf

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
_compiled = partial(tf.function, jit_compile=True)


def _wide(x):
    """At least float32, in which the loops calculate."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def _activate(forward, backward, x, *args):
    """forward(x, *args), whose gradient is backward(x, upstream, *args)."""

    @tf.custom_gradient
    def activate(x):
        return forward(x, *args), lambda upstream: backward(x, upstream, *args)

    return activate(x)


@_register
class GELU(tf.keras.layers.Layer):
    """Gaussian error linear unit: x times the normal distribution's share below x.

    (Hendrycks & Gimpel 2016, arXiv 1606.08415; by erf, not by its approximation.)
    """

    def call(self, inputs, training=False):
        if training:
            return _activate(_gelu_forward, _gelu_backward, inputs)
        return tf.cast(tf.nn.gelu(_wide(inputs)), inputs.dtype)


def _normal_share(x):
    return 0.5 * (1 + tf.math.erf(x * math.sqrt(0.5)))


@_compiled
def _gelu_forward(x):
    wide = _wide(x)
    return tf.cast(wide * _normal_share(wide), x.dtype)


@_compiled
def _gelu_backward(x, upstream):
    wide = _wide(x)
    density = tf.exp(-0.5 * wide * wide) / math.sqrt(2 * math.pi)
    return tf.cast(_wide(upstream) * (_normal_share(wide) + wide * density), x.dtype)


@_register
class CELU(tf.keras.layers.Layer):
    """Continuously differentiable ELU: x, and alpha (exp(x / alpha) - 1) below 0 (Barron 2017)."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs, training=False):
        if training:
            return _activate(_celu_forward, _celu_backward, inputs, self.alpha)
        wide = _wide(inputs)
        return tf.cast(tf.nn.elu(wide / self.alpha) * self.alpha, inputs.dtype)

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha}


@_compiled
def _celu_forward(x, alpha):
    wide = _wide(x)
    below = alpha * tf.math.expm1(tf.minimum(wide, 0) / alpha)
    return tf.cast(tf.where(wide > 0, wide, below), x.dtype)


@_compiled
def _celu_backward(x, upstream, alpha):
    return tf.cast(_wide(upstream) * tf.exp(tf.minimum(_wide(x), 0) / alpha), x.dtype)


@_register
class LeakyReLU(tf.keras.layers.Layer):
    """x, and `slope` x below 0 (Maas et al. 2013)."""

    def __init__(self, slope=0.1, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope

    def call(self, inputs, training=False):
        if training and inputs.dtype.size < 4:  # TensorFlow's own is as fast in float32
            return _activate(tf.nn.leaky_relu, _leaky_backward, inputs, self.slope)
        return tf.nn.leaky_relu(inputs, self.slope)

    def get_config(self):
        return {**super().get_config(), "slope": self.slope}


@_compiled
def _leaky_backward(x, upstream, slope):
    wide = _wide(upstream)
    return tf.cast(tf.where(x > 0, wide, wide * slope), x.dtype)
