"""Weights that are broadcast over pixels or tokens, with gradients summed in float32.

The gradient of a bias, or of a scale, is a sum over the batch, and over pixels or tokens: up to a
million terms. TensorFlow 2.20 adds up 16-bit terms in 16 bits in these operations:

    BiasAddGrad          bfloat16 on CPUs (49 % off for 490,000 terms); on GPUs both, between blocks
    Sum                  float16, on CPUs and GPUs; bfloat16's sums are in float32
    UnsortedSegmentSum   both, everywhere: the gradient of a gather

The functions and layers here sum in float32; the sum is rounded to the terms' dtype. In float32 and
float64 they are TensorFlow's and Keras's own.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .registration import register
from .xla import compiled


def widen(x: tf.Tensor) -> tf.Tensor:
    """Casts to float32 if the precision is lower; float32 and float64 stay."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def widest(dtype: Any) -> str:
    """Returns the dtype of logits for a dtype or policy of layers: float32, or float64 if it is."""
    computes = tf.keras.layers.Layer(dtype=dtype).compute_dtype
    return "float64" if computes == "float64" else "float32"


def _total(terms: tf.Tensor, weight: tf.Tensor, axis: int | None = None) -> tf.Tensor:
    """Returns a broadcast weight's gradient, from the gradient `terms` of what it was added to."""
    rank = terms.shape.rank
    if axis is None:
        sizes = [1] * (rank - weight.shape.rank) + weight.shape.as_list()
        axes = [i for i, size in enumerate(sizes) if size == 1]
    else:
        axes = [i for i in range(rank) if i != axis % rank]
    if (weight.shape.num_elements() or 64) < 64 and tf.config.list_logical_devices("GPU"):
        total = _sum(terms, axes)  # TensorFlow's kernel sums 24 columns at 130 GB/s on an H200
    else:
        # bfloat16's Sum accumulates in float32; on CPUs a cast would take two thirds of the time.
        terms = tf.cast(terms, tf.float32) if terms.dtype == tf.float16 else terms
        total = tf.reduce_sum(terms, axes)
    return tf.reshape(tf.cast(total, weight.dtype), tf.shape(weight))


@compiled
def _sum(terms: tf.Tensor, axes: list[int]) -> tf.Tensor:
    return tf.reduce_sum(widen(terms), axes)


def add(x: tf.Tensor, bias: tf.Tensor, axis: int | None = None) -> tf.Tensor:
    """Returns x + bias; the bias has x's last axes, or with `axis`, 1 or -1, is of the channels."""
    # With `axis` it is TensorFlow's BiasAdd in place of its addition: both give equal sums, their
    # float32 gradients differ by rounding.

    def forward(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        narrow = tf.cast(bias, x.dtype)
        if axis is None:
            return x + narrow
        return tf.nn.bias_add(x, narrow, "NHWC" if axis == -1 else "NCHW")

    @tf.custom_gradient
    def exact(x: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(x, bias), lambda upstream: (upstream, _total(upstream, bias, axis))

    return exact(x, tf.convert_to_tensor(bias)) if x.dtype.size < 4 else forward(x, bias)


def multiply(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """Returns x * scale; `scale` has x's last axes, or 1 in their place, and any floating dtype."""

    def forward(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        return x * tf.cast(scale, x.dtype)

    @tf.custom_gradient
    def exact(x: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return forward(x, scale), lambda upstream: (
            forward(upstream, scale),
            _total(upstream * x, scale),
        )

    return exact(x, tf.convert_to_tensor(scale)) if x.dtype.size < 4 else forward(x, scale)


@register
class Dense(tf.keras.layers.Dense):
    """Keras's dense layer; in 16 bits its bias's gradient is summed in float32."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        if not self.use_bias or inputs.dtype.size >= 4:
            return super().call(inputs)
        outputs = tf.tensordot(inputs, tf.convert_to_tensor(self.kernel), 1)
        return self.activation(add(outputs, self.bias, -1))


@register
class SeparableConv1D(tf.keras.layers.SeparableConv1D):
    """Keras's layer; in 16 bits bias and depthwise kernel have gradients summed in float32.

    TensorFlow's GPU kernel adds up the depthwise kernel's gradient in 16 bits. With a dilation,
    causal padding or channels first, all is Keras's.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        plain = self.data_format == "channels_last" and tuple(self.dilation_rate) == (1,)
        if inputs.dtype.size >= 4 or not plain or self.padding == "causal":
            return super().call(inputs)
        depthwise = tf.convert_to_tensor(self.depthwise_kernel)
        pointwise = tf.convert_to_tensor(self.pointwise_kernel)
        strides, padding = [1, *self.strides, *self.strides, 1], self.padding.upper()
        x = tf.nn.depthwise_conv2d(widen(inputs)[:, None], widen(depthwise)[None], strides, padding)
        outputs = tf.tensordot(tf.cast(x[:, 0], inputs.dtype), pointwise[0], 1)
        return self.activation(add(outputs, self.bias, -1) if self.use_bias else outputs)
