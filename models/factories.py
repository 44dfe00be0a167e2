"""Layer factories: layout, precision, padding, normalization and activation, chosen once per model.

Blocks and networks call `make.conv(filters, 3, strides)` without repeating these.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from . import checks
from .layers import activations, broadcast, convolution, dropout, image
from .layers.initializers import he_normal

LAYOUTS = {"NHWC": "channels_last", "NCHW": "channels_first"}


class LayerClasses(NamedTuple):
    """Classes of the layers that exist in Keras and in this package; default: Keras's."""

    conv: Callable = tf.keras.layers.Conv2D
    norm: Callable = tf.keras.layers.BatchNormalization
    dropout: Callable = tf.keras.layers.Dropout
    gelu: Callable = partial(tf.keras.layers.Activation, "gelu")
    leaky_relu: Callable = tf.keras.layers.LeakyReLU  # (slope)
    mish: Callable = partial(tf.keras.layers.Activation, "mish")
    silu: Callable = partial(tf.keras.layers.Activation, "silu")
    dense: Callable = tf.keras.layers.Dense
    max_pool: Callable = tf.keras.layers.MaxPooling2D


KERAS = LayerClasses()
# For training: faster on CPUs, gradients of biases summed in float32, unbiased moving variances,
# random states in checkpoints.
TRAINING = LayerClasses(
    convolution.Conv2D,
    image.BatchNormalization,
    dropout.Dropout,
    activations.GELU,
    activations.LeakyReLU,
    activations.Mish,
    activations.SiLU,
    broadcast.Dense,
    image.MaxPooling2D,
)


class Layers(NamedTuple):
    """Layer factories of one network; families replace some, `make._replace(norm=...)`.

    Comments show arguments. Each factory returns a layer, or a function of a feature map.
    """

    conv: Callable  # (filters, size, strides=1, *, groups=1, use_bias=False, initializer, padding)
    norm: Callable  # (epsilon=1e-5, momentum=0.9, scale=True, gamma_initializer="ones")
    ghost_norm: Callable  # as norm; (group=32)
    act: Callable  # (name=None); ReLU unless the family replaces it
    celu: Callable  # (alpha, name=None)
    gelu: Callable  # (name=None)
    leaky_relu: Callable  # (slope, name=None)
    mish: Callable  # (name=None)
    silu: Callable  # (name=None)
    polynomial: Callable  # (power=3, balance=1.0); (x + balance) ** power
    add: Callable  # ()
    concatenate: Callable  # ()
    max_pool: Callable  # (pool_size, strides); symmetric padding consists of zeros
    average_pool: Callable  # (pool_size, strides); the mean excludes padding
    pad_channels: Callable  # (channels)
    shift: Callable  # (); moves a map up and left by a pixel, adds a row and a column of zeros
    global_average: Callable  # (name=None)
    global_max: Callable  # (name=None)
    dense: Callable  # (units, use_bias=True, kernel_scale=1 / 3)
    dropout: Callable  # (rate)
    to_float32: Callable  # (scale=1.0, name=None); float64 stays
    stochastic: Callable  # (branch, survival)
    whitening: Callable  # (name=None)
    axis: int  # axis of the channels, -1 or 1
    dtype: str | None  # dtype or policy of the layers; None: Keras's global policy


def layers(
    *,
    data_format: str,
    dtype: str | None,
    synchronized: bool,
    classes: LayerClasses,
    padding: str = "symmetric",
) -> Layers:
    """Returns layer factories; convolutions have no bias and He's initializer, `act` is ReLU.

    `padding` is that of convolutions and max pools with strides: "symmetric" (Caffe, Torch,
    PyTorch), or "same" (TensorFlow), which pads even sizes more at the end than at the start.
    """
    checks.one_of(LAYOUTS, data_format=data_format)
    checks.one_of(("symmetric", "same"), padding=padding)
    keras, axis = tf.keras.layers, -1 if data_format == "NHWC" else 1
    layout = {"data_format": LAYOUTS[data_format], "dtype": dtype}
    norm: dict[str, Any] = {"axis": axis, "momentum": 0.9, "epsilon": 1e-5, "dtype": dtype}
    shared = {**norm, "synchronized": True} if synchronized else norm  # ghost BN's never is
    return Layers(
        conv=partial(_conv, classes.conv, padding=padding, layout=layout),
        norm=partial(classes.norm, **shared),
        ghost_norm=partial(image.GhostBatchNormalization, **norm),
        act=partial(keras.Activation, "relu", dtype=dtype),
        celu=partial(activations.CELU, dtype=dtype),
        gelu=partial(classes.gelu, dtype=dtype),
        leaky_relu=partial(classes.leaky_relu, dtype=dtype),
        mish=partial(classes.mish, dtype=dtype),
        silu=partial(classes.silu, dtype=dtype),
        polynomial=partial(activations.PolynomialKernel, dtype=dtype),
        add=partial(keras.Add, dtype=dtype),
        concatenate=partial(keras.Concatenate, axis=axis, dtype=dtype),
        max_pool=partial(_padded, partial(classes.max_pool, **layout), padding, layout),
        average_pool=partial(keras.AveragePooling2D, padding="same", **layout),
        pad_channels=partial(image.PadChannels, axis=axis, dtype=dtype),
        shift=partial(_shift, layout),
        global_average=partial(keras.GlobalAveragePooling2D, **layout),
        global_max=partial(keras.GlobalMaxPooling2D, **layout),
        dense=partial(_dense, classes.dense, dtype=dtype),
        dropout=partial(classes.dropout, dtype=dtype),
        to_float32=partial(keras.Rescaling, dtype=broadcast.widest(dtype)),
        stochastic=partial(image.StochasticDepth, dtype=dtype),
        whitening=partial(image.Whitening, axis=axis, dtype=dtype),
        axis=axis,
        dtype=dtype,
    )


_Layout = Mapping[str, str | None]  # `data_format` and `dtype` of a layer


# Every layer gets an initializer of its own: a shared one gives equal values under tf-keras.


def _conv(
    cls: Callable,
    filters: int,
    size: int | tuple[int, int],
    strides: int = 1,
    *,
    padding: str,
    layout: _Layout,
    initializer: Callable = he_normal,
    **kwargs: Any,
) -> Callable:
    layer = partial(
        cls, filters, kernel_initializer=initializer(), **{"use_bias": False, **kwargs, **layout}
    )
    return _padded(layer, padding, layout, size, strides)


def _padded(
    layer: Callable, padding: str, layout: _Layout, size: int | tuple[int, int], strides: int
) -> Callable:
    """Returns `layer(size, strides)` with its padding, as a function of a feature map."""
    # "symmetric" and "same" differ only for strides over 1.
    if padding == "same" or (padding == "symmetric" and strides == 1):
        return layer(size, strides=strides, padding="same")
    # A tuple, of a kernel that is not square, has stride 1 or padding "valid".
    if padding == "valid" or size <= strides:  # type: ignore[operator]
        return layer(size, strides=strides, padding="valid")
    pad = tf.keras.layers.ZeroPadding2D(size // 2, **layout)  # type: ignore[operator]
    inner = layer(size, strides=strides, padding="valid")
    return lambda x: inner(pad(x))


def _shift(layout: _Layout) -> Callable[[tf.Tensor], tf.Tensor]:
    pad = tf.keras.layers.ZeroPadding2D(((0, 1), (0, 1)), **layout)
    crop = tf.keras.layers.Cropping2D(((1, 0), (1, 0)), **layout)
    return lambda x: crop(pad(x))


def _dense(
    cls: Callable, units: int, use_bias: bool = True, kernel_scale: float = 1 / 3, **kwargs: Any
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a dense layer, as a function, whose kernel is uniform with variance scale / fan-in.

    The default scale, 1/3, is PyTorch's: kernel and bias are uniform in +-1 / sqrt(fan-in). With
    another scale the bias is initialized to 0.
    """
    kernel = tf.keras.initializers.VarianceScaling(kernel_scale, "fan_in", "uniform")

    def apply(x: tf.Tensor) -> tf.Tensor:
        limit = x.shape[-1] ** -0.5 if kernel_scale == 1 / 3 else 0.0
        bias = tf.keras.initializers.RandomUniform(-limit, limit) if limit else "zeros"
        initializers = {"kernel_initializer": kernel, "bias_initializer": bias}
        return cls(units, use_bias=use_bias, **initializers, **kwargs)(x)

    return apply
