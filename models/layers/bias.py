"""Addition and multiplication of weights that are broadcast, with exact gradients in 16 bits.

The gradient of a broadcast weight is a sum over the batch, and over pixels or tokens: up to a
million terms. TensorFlow 2.20 adds them up in 16 bits in these operations:

    BiasAddGrad          bfloat16 on CPUs (58 % off for 490,000 terms); on GPUs both, between blocks
    Sum                  float16, on CPUs and GPUs; bfloat16's sums are in float32
    UnsortedSegmentSum   both, everywhere: the gradient of a gather

In float32 and float64 the functions here are TensorFlow's operations.
"""

from collections.abc import Callable

import tensorflow as tf


def _total(terms: tf.Tensor, like: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Sums 16-bit terms in float32, over all axes but those of `like`, to its shape and dtype.

    `like` has the last axes of `terms` (a scalar has none), or only axis `axis`.
    """
    rank = terms.shape.rank
    kept = {axis % rank} if like.shape.rank == 1 else {*range(rank - like.shape.rank, rank)}
    if terms.dtype == tf.float16:  # its Sum has no wider accumulator
        terms = tf.cast(terms, tf.float32)
    return tf.cast(tf.reduce_sum(terms, [i for i in range(rank) if i not in kept]), like.dtype)


def add(x: tf.Tensor, bias: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Returns x + bias.

    Args:
      x: (batch, ...).
      bias: a vector for axis `axis` of x, or of x's last axes; any floating dtype.
      axis: axis of the channels if `bias` is a vector, 1 or -1.
    """
    vector = bias.shape.rank == 1
    layout = "NHWC" if axis == -1 else "NCHW"

    def forward(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        bias = tf.cast(bias, x.dtype)
        return tf.nn.bias_add(x, bias, layout) if vector else x + bias

    @tf.custom_gradient
    def exact(x: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(x, bias), lambda upstream: (upstream, _total(upstream, bias, axis))

    return exact(x, bias) if x.dtype.size < 4 else forward(x, bias)


def multiply(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """Returns x * scale; `scale` has the last axes of x and any floating dtype."""

    def forward(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        return x * tf.cast(scale, x.dtype)

    @tf.custom_gradient
    def exact(x: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(x, scale), lambda up: (forward(up, scale), _total(up * x, scale))

    return exact(x, scale) if x.dtype.size < 4 else forward(x, scale)
