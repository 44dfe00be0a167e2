"""What DrQA and FastFusionNet are made of; weights start as PyTorch's.

Axis names: batch, context (tokens of the passage), question, width.
"""

import tensorflow as tf

from .layers.attention import AlignedQuestion
from .layers.initializers import pytorch_uniform


def uniform(width: int) -> tf.keras.initializers.Initializer:
    """PyTorch's default for recurrent weights, and for biases, of layers that read some width."""
    return tf.keras.initializers.RandomUniform(-(width**-0.5), width**-0.5)


def dense(
    name: str, width: int, units: int, dtype: str | None, activation: str | None = None
) -> tf.keras.layers.Layer:
    """A dense layer over x of some width."""
    starts = {"kernel_initializer": pytorch_uniform(), "bias_initializer": uniform(width)}
    return tf.keras.layers.Dense(units, activation, dtype=dtype, name=name, **starts)


def align(c: tf.Tensor, q: tf.Tensor, q_mask: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """What each word of the context sees of the question's: (batch, context, width) as c is."""
    project = dense("align", c.shape[-1], c.shape[-1], dtype, "relu")
    return AlignedQuestion(dtype=dtype)([project(c), project(q), q, q_mask])


def bilinear(name: str, c: tf.Tensor, q: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """How well each token of c (batch, context, width) fits q (batch, width): (.., context, 1)."""
    q = dense(name, q.shape[-1], c.shape[-1], dtype)(q)
    row = tf.keras.layers.Reshape((1, c.shape[-1]), dtype=dtype)(q)
    return tf.keras.layers.Dot(2, dtype=dtype)([c, row])
