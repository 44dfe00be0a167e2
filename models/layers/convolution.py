"""Keras's convolution, with the kernel's gradient in its fastest form on CPUs."""

import tensorflow as tf

_CHANNELS, _SIDE = 256, 8  # at least so many, at most so long: where matrix products are faster


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class Conv2D(tf.keras.layers.Conv2D):
    """A convolution; in bfloat16 on CPUs, on small maps of many channels, with a gradient of ours.

    oneDNN's gradient of a 3x3 kernel takes 1.5 (maps of 7x7) to 3 times (3x3) as long there as one
    matrix product for each of the kernel's places, over the pixels that it meets.
    """

    def convolution_op(self, inputs, kernel):
        """Convolves; Keras calls it."""
        if _by_products(self, inputs, kernel):
            return _convolve(inputs, tf.convert_to_tensor(kernel))
        return super().convolution_op(inputs, kernel)


def _by_products(layer, inputs, kernel):
    channels, filters = kernel.shape[2:]
    return (
        inputs.dtype == tf.bfloat16
        and layer.data_format == "channels_last"
        and layer.padding == "same"
        and tuple(layer.kernel_size) == (3, 3)
        and set((*layer.strides, *layer.dilation_rate, layer.groups)) == {1}
        and min(channels, filters) >= _CHANNELS
        and all(side is not None and side <= _SIDE for side in inputs.shape[1:3])
        and all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
    )


@tf.custom_gradient
def _convolve(x, kernel):
    """3x3 convolution with zeros around: (batch, height, width, channels)."""

    def gradients(upstream):
        of_x = tf.nn.conv2d_transpose(upstream, kernel, tf.shape(x), 1, "SAME")
        return of_x, _of_kernel(x, upstream)

    return tf.nn.conv2d(x, kernel, 1, "SAME"), gradients


def _of_kernel(x, upstream):
    """The kernel's gradient (3, 3, channels, filters)."""
    places = [
        tf.matmul(_pixels(x, row, column), _pixels(upstream, -row, -column), transpose_a=True)
        for row in (-1, 0, 1)
        for column in (-1, 0, 1)
    ]
    return tf.reshape(tf.stack(places), [3, 3, x.shape[-1], upstream.shape[-1]])


def _pixels(maps, row, column):
    """The vectors of the pixels that lie `row`, `column` from one inside: (pixels, channels)."""
    height, width, channels = maps.shape[1:]
    rows = slice(max(row, 0), height + min(row, 0))
    columns = slice(max(column, 0), width + min(column, 0))
    return tf.reshape(maps[:, rows, columns], [-1, channels])
