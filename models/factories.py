"""Layer factories, with layout, precision, padding, normalisation and activation chosen once.

Blocks and networks only say `make.conv(filters, 3, strides)`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from .activations import GELU
from .convolutions import Conv2D
from .dropouts import Dropout
from .layers import BatchNormalization, PadChannels, StochasticDepth, Whitening

LAYOUTS = {"NHWC": "channels_last", "NCHW": "channels_first"}
relu = partial(tf.keras.layers.Activation, "relu")
gelu = GELU
he_normal = partial(tf.keras.initializers.VarianceScaling, 2.0, "fan_out", "untruncated_normal")
pytorch_uniform = partial(tf.keras.initializers.VarianceScaling, 1 / 3, "fan_in", "uniform")


class Layers(NamedTuple):
    """Layer factories of one network."""

    conv: Callable  # (filters, size, strides=1, *, groups=1, use_bias=False, initializer, padding)
    norm: Callable  # ()
    act: Callable  # (name=None)
    add: Callable  # ()
    concatenate: Callable  # ()
    max_pool: Callable  # (pool_size, strides); symmetric padding counts as zeros
    average_pool: Callable  # (pool_size, strides); padding is left out of the mean
    pad_channels: Callable  # (channels)
    shift: Callable  # (): up and left by a pixel, zeros behind
    global_average: Callable  # (name=None)
    global_max: Callable  # (name=None)
    dense: Callable  # (units, use_bias=True, kernel_scale=1 / 3)
    dropout: Callable  # (rate)
    to_float32: Callable  # (scale=1.0, name=None)
    stochastic: Callable  # (branch, survival)
    whitening: Callable  # (name=None)
    axis: int  # of the channels


def layers(
    *,
    data_format: str,
    dtype: str | None,
    synchronized: bool,
    padding: str = "symmetric",
    norm_epsilon: float = 1e-5,
    norm: Callable[..., tf.keras.layers.Layer] = BatchNormalization,
    act: Callable[..., tf.keras.layers.Layer] = relu,
) -> Layers:
    """Makes the factories: convolutions without bias, initialised as He et al. do.

    Args:
      data_format: "NHWC" or "NCHW".
      dtype: precision of the layers as Keras has it; None: Keras's global policy.
      synchronized: BN statistics over the global batch, not over each replica's own.
      padding: of convolutions and max pools that stride: "symmetric", as in Caffe, Torch and
        PyTorch, or "same", TensorFlow's, which at even sizes pads behind more than before.
      norm_epsilon, norm: of the normalisation; `norm` takes `epsilon`, `momentum`, `axis`. What a
        partial has set already stays.
      act: makes activations.

    Raises:
      ValueError: layout or padding is none of these.
    """
    if data_format not in LAYOUTS:
        raise ValueError(
            f"`data_format` should be one of {list(LAYOUTS)}. Received: data_format={data_format!r}"
        )
    if padding not in ("symmetric", "same"):
        raise ValueError(
            f'`padding` should be "symmetric" or "same". Received: padding={padding!r}'
        )
    keras, axis = tf.keras.layers, -1 if data_format == "NHWC" else 1
    layout = {"data_format": LAYOUTS[data_format], "dtype": dtype}
    keywords = {"axis": axis, "momentum": 0.9, "epsilon": norm_epsilon, "dtype": dtype}
    norm = partial(norm, **{**keywords, **getattr(norm, "keywords", {})})
    return Layers(
        conv=partial(_conv, padding=padding, layout=layout),
        norm=partial(norm, synchronized=True) if synchronized else norm,
        act=partial(act, dtype=dtype),
        add=partial(keras.Add, dtype=dtype),
        concatenate=partial(keras.Concatenate, axis=axis, dtype=dtype),
        max_pool=partial(_padded, partial(keras.MaxPooling2D, **layout), padding, layout),
        average_pool=partial(keras.AveragePooling2D, padding="same", **layout),
        pad_channels=partial(PadChannels, axis=axis, dtype=dtype),
        shift=partial(_shift, layout),
        global_average=partial(keras.GlobalAveragePooling2D, **layout),
        global_max=partial(keras.GlobalMaxPooling2D, **layout),
        dense=partial(_dense, dtype=dtype),
        dropout=partial(Dropout, dtype=dtype),
        to_float32=partial(keras.Rescaling, dtype="float32"),
        stochastic=partial(StochasticDepth, dtype=dtype),
        whitening=partial(Whitening, axis=axis, dtype=dtype),
        axis=axis,
    )


# An initializer for each layer: tf-keras's, when shared, gives every layer the same values.


def _conv(filters, kernel_size, strides=1, *, padding, layout, initializer=he_normal, **kwargs):
    layer = partial(
        Conv2D,
        filters,
        kernel_initializer=initializer(),
        **{"use_bias": False, **kwargs, **layout},
    )
    return _padded(layer, padding, layout, kernel_size, strides)


def _padded(layer, padding, layout, size, strides):
    """A layer whose windows of `size` are padded; padding differs only where it strides."""
    if padding == "same" or (padding == "symmetric" and strides == 1):
        return layer(size, strides=strides, padding="same")
    if padding == "valid" or size <= strides:
        return layer(size, strides=strides, padding="valid")
    pad = tf.keras.layers.ZeroPadding2D(size // 2, **layout)
    inner = layer(size, strides=strides, padding="valid")
    return lambda x: inner(pad(x))


def _shift(layout):
    pad = tf.keras.layers.ZeroPadding2D(((0, 1), (0, 1)), **layout)
    crop = tf.keras.layers.Cropping2D(((1, 0), (1, 0)), **layout)
    return lambda x: crop(pad(x))


def _dense(units, use_bias=True, kernel_scale=1 / 3, **kwargs):
    """A dense layer that starts as PyTorch's: weights and biases uniform, to 1 / sqrt(fan-in).

    With another `kernel_scale`, a uniform kernel's variance times fan-in, biases start at 0.
    """
    kernel = tf.keras.initializers.VarianceScaling(kernel_scale, "fan_in", "uniform")

    def apply(x):
        limit = x.shape[-1] ** -0.5 if kernel_scale == 1 / 3 else 0.0
        bias = tf.keras.initializers.RandomUniform(-limit, limit) if limit else "zeros"
        starts = {"kernel_initializer": kernel, "bias_initializer": bias}
        return tf.keras.layers.Dense(units, use_bias=use_bias, **starts, **kwargs)(x)

    return apply
