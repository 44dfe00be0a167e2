"""Keras's convolution with faster and more exact gradients in 16 bits."""

import itertools
from collections.abc import Callable

import tensorflow as tf

from . import broadcast

# Matrix products are faster from this number of channels on, up to this height and width in pixels.
_CHANNELS, _SIDE = 256, 8


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class Conv2D(tf.keras.layers.Conv2D):
    """Convolution whose kernel gradient is computed by matrix products where these are faster.

    That is the case in bfloat16 on CPUs, for 3x3 kernels on small maps with many channels. oneDNN's
    gradient takes 1.5 (maps of 7x7) to 3 times (3x3) as long as nine matrix products, one for each
    element (row, column) of the kernel. In 16 bits the bias's gradient is summed in float32, unless
    there are groups.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        if not self.use_bias or inputs.dtype.size >= 4 or self.groups > 1:
            return super().call(inputs)
        outputs = self.convolution_op(inputs, self.kernel)
        axis = -1 if self.data_format == "channels_last" else 1
        return self.activation(broadcast.add(outputs, self.bias, axis))

    def convolution_op(self, inputs: tf.Tensor, kernel: tf.Variable) -> tf.Tensor:
        if _uses_matrix_products(self, inputs, kernel):
            return _convolve(inputs, tf.convert_to_tensor(kernel))
        return super().convolution_op(inputs, kernel)


def _uses_matrix_products(
    layer: tf.keras.layers.Conv2D, inputs: tf.Tensor, kernel: tf.Variable
) -> bool:
    """Whether the kernel's gradient is computed by matrix products."""
    channels, filters = kernel.shape[2:]
    return (
        inputs.dtype == tf.bfloat16
        and layer.data_format == "channels_last"
        and layer.padding == "same"
        and tuple(layer.kernel_size) == (3, 3)
        and {*layer.strides, *layer.dilation_rate, layer.groups} == {1}
        and min(channels, filters) >= _CHANNELS
        and all(side is not None and side <= _SIDE for side in inputs.shape[1:3])
        and all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
    )


@tf.custom_gradient
def _convolve(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """3x3 convolution, stride 1, zero padding: (batch, height, width, channels)."""

    def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inputs_gradient = tf.nn.conv2d_transpose(upstream, kernel, tf.shape(x), 1, "SAME")
        return inputs_gradient, _kernel_gradient(x, upstream)

    return tf.nn.conv2d(x, kernel, 1, "SAME"), gradients


def _kernel_gradient(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Gradient of the kernel, (3, 3, channels, filters)."""
    # The kernel's element (row, column) multiplies pixel (i + row, j + column) of x for output
    # (i, j). Its gradient is the sum of x[i + row, j + column]^T upstream[i, j] over all (i, j) for
    # which both exist: a matrix product of the two maps, each cropped on the opposite side.
    # One product after the other: crops of x would else be made in the forward pass, and be kept.
    elements: list[tf.Tensor] = []
    for row, column in itertools.product((-1, 0, 1), repeat=2):
        with tf.control_dependencies(elements[-1:] or [upstream]):
            crops = _crop(x, row, column), _crop(upstream, -row, -column)
            elements.append(tf.matmul(*crops, transpose_a=True))
    return tf.reshape(tf.stack(elements), [3, 3, x.shape[-1], upstream.shape[-1]])


def _crop(maps: tf.Tensor, row: int, column: int) -> tf.Tensor:
    """Crops a row and a column off: the first if 1, the last if -1, none if 0."""
    # Returns the remaining pixels' vectors, (pixels, channels).
    height, width, channels = maps.shape[1:]
    rows = slice(max(row, 0), height + min(row, 0))
    columns = slice(max(column, 0), width + min(column, 0))
    return tf.reshape(maps[:, rows, columns], [-1, channels])
