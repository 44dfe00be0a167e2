"""Building blocks of DrQA and FastFusionNet, with PyTorch's initializers.

Axis names: batch; context, tokens of the passage; question; width.
"""

import tensorflow as tf

from .layers.attention import AlignedQuestion
from .layers.broadcast import Dense
from .layers.initializers import pytorch_uniform


def uniform(width: int) -> tf.keras.initializers.Initializer:
    """Returns PyTorch's default initializer of biases and recurrent weights: +-1 / sqrt(width)."""
    return tf.keras.initializers.RandomUniform(-(width**-0.5), width**-0.5)


def dense(
    name: str, width: int, units: int, dtype: str | None, activation: str | None = None
) -> tf.keras.layers.Layer:
    """Returns a dense layer for inputs of a width, initialized as in PyTorch."""
    initializers = {"kernel_initializer": pytorch_uniform(), "bias_initializer": uniform(width)}
    return Dense(units, activation, dtype=dtype, name=name, **initializers)


def align(c: tf.Tensor, q: tf.Tensor, q_mask: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """Returns the aligned question embedding of each context token, (batch, context, width of q).

    c and q are word vectors, (batch, context or question, width).
    """
    project = dense("align", c.shape[-1], c.shape[-1], dtype, "relu")
    return AlignedQuestion(dtype=dtype)([project(c), project(q), q, q_mask])


def bilinear(name: str, c: tf.Tensor, q: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """Returns the bilinear score c W q of each token, (batch, context, 1); q is (batch, width)."""
    q = dense(name, q.shape[-1], c.shape[-1], dtype)(q)
    row = tf.keras.layers.Reshape((1, c.shape[-1]), dtype=dtype)(q)
    return tf.keras.layers.Dot(2, dtype=dtype)([c, row])
