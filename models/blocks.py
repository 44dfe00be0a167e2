"""What residual networks are made of: layers with the layout and precision already chosen, the
two units, the four shortcuts, stochastic depth.

`layers()` is the one place where NHWC/NCHW, precision and the kind of normalisation are decided;
units and shortcuts only say `conv(filters, 3, strides)`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import tensorflow as tf

LAYOUTS = {"NHWC": "channels_last", "NCHW": "channels_first"}


class Layers(NamedTuple):
    """Layer factories of one network."""

    conv: Callable  # (filters, kernel_size, strides=1)
    norm: Callable  # ()
    act: Callable  # ()
    add: Callable  # ()
    pool: Callable  # (pool_size, strides)
    pad: Callable  # (channels)
    global_pool: Callable  # ()
    dense: Callable  # (units)
    to_float32: Callable  # ()
    stochastic: Callable  # (branch, survival)


def layers(*, data_format, dtype, leaky_slope, norm_scale, norm_epsilon, synchronized) -> Layers:
    """Makes the factories: convolutions without bias, initialised as He et al. do."""
    if data_format not in LAYOUTS:
        raise ValueError(
            f"`data_format` should be one of {list(LAYOUTS)}. Received: {data_format!r}"
        )
    keras, layout = tf.keras.layers, LAYOUTS[data_format]
    norm = partial(
        keras.BatchNormalization,
        axis=-1 if data_format == "NHWC" else 1,
        momentum=0.9,
        epsilon=norm_epsilon,
        scale=norm_scale,
        dtype=dtype,
    )
    return Layers(
        conv=partial(_conv, data_format=layout, dtype=dtype),
        norm=partial(norm, synchronized=True) if synchronized else norm,
        act=partial(keras.LeakyReLU, leaky_slope, dtype=dtype)
        if leaky_slope
        else partial(keras.Activation, "relu", dtype=dtype),
        add=partial(keras.Add, dtype=dtype),
        pool=partial(keras.AveragePooling2D, padding="same", data_format=layout, dtype=dtype),
        pad=partial(PadChannels, data_format=data_format, dtype=dtype),
        global_pool=partial(keras.GlobalAveragePooling2D, data_format=layout, dtype=dtype),
        dense=partial(_dense, dtype=dtype),
        to_float32=partial(keras.Activation, "linear", dtype="float32", name="logits"),
        stochastic=partial(StochasticDepth, dtype=dtype),
    )


# An initializer for each layer: tf-keras's, when shared, gives every layer the same values.


def _conv(filters, kernel_size, strides=1, **kwargs):
    initializer = tf.keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
    return tf.keras.layers.Conv2D(
        filters,
        kernel_size,
        strides,
        padding="same",
        use_bias=False,
        kernel_initializer=initializer,
        **kwargs,
    )


def _dense(units, **kwargs):
    initializer = tf.keras.initializers.VarianceScaling(1.0, "fan_in", "uniform")
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, **kwargs)


def _basic(x, filters, strides, make):
    """Two 3x3 convolutions."""
    x = make.conv(filters, 3, strides)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 3)(x)


def _bottleneck(x, filters, strides, make):
    """1x1 to a quarter of the filters (with the stride), 3x3, 1x1 back."""
    x = make.conv(filters // 4, 1, strides)(x)
    x = make.act()(make.norm()(x))
    x = make.conv(filters // 4, 3)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 1)(x)


UNITS = {"basic": _basic, "bottleneck": _bottleneck}


def residual(x, unit, filters, strides, make: Layers, preactivation, activate):
    """A unit's residual branch; `activate`: BN and activation before it, too."""
    x = make.act()(make.norm()(x)) if activate else x
    x = UNITS[unit](x, filters, strides, make)
    return x if preactivation else make.norm()(x)


def _projection(x, filters, strides, make):
    return make.conv(filters, 1, strides)(x)


def _projection_bn(x, filters, strides, make):
    return make.norm()(make.conv(filters, 1, strides)(x))


def _pool_pad(x, filters, strides, make):
    return make.pad(filters)(make.pool(strides, strides)(x) if strides > 1 else x)


def _stride_pad(x, filters, strides, make):  # He et al.'s option A: keep every other pixel
    return make.pad(filters)(make.pool(1, strides)(x) if strides > 1 else x)


SHORTCUTS = {
    "projection": _projection,
    "projection_bn": _projection_bn,
    "pool_pad": _pool_pad,
    "stride_pad": _stride_pad,
}


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class PadChannels(tf.keras.layers.Layer):
    """Zero-pads the channels to `channels`, on both sides equally (the odd one behind)."""

    def __init__(self, channels, data_format="NHWC", **kwargs):
        super().__init__(**kwargs)
        self.channels, self.data_format = channels, data_format

    def call(self, inputs):
        axis = 3 if self.data_format == "NHWC" else 1
        missing = self.channels - inputs.shape[axis]
        paddings = [[0, 0]] * 4
        paddings[axis] = [missing // 2, missing - missing // 2]
        return tf.pad(inputs, paddings)

    def get_config(self):
        return {**super().get_config(), "channels": self.channels, "data_format": self.data_format}


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class StochasticDepth(tf.keras.layers.Layer):
    """Runs a residual branch with probability `survival` in training; always at inference.

    One draw per mini-batch. A kept branch is divided by `survival`, a dropped one is zero and
    **its work is not done**, forward or backward (Huang et al. 2016; inverted scaling as in
    DAWNBench's reference). The stream of draws is a variable, so it travels with checkpoints,
    and every replica draws alike.

    Args:
      branch: a `tf.keras.Model` of one input and one output.
      survival: probability that the branch is kept, in (0, 1].
    """

    def __init__(self, branch, survival, **kwargs):
        super().__init__(**kwargs)
        self.branch, self.survival = branch, survival
        self.draws = tf.Variable(
            lambda: tf.random.uniform([], maxval=2**31, dtype=tf.int64),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="draws",
        )

    def call(self, inputs, training=False):
        if not training:
            return self.branch(inputs, training=False)
        draw = tf.random.stateless_uniform([], seed=tf.stack([self.draws, 0]))
        self.draws.assign_add(1)

        def keep():
            outputs = self.branch(inputs, training=True)
            return outputs / tf.cast(self.survival, outputs.dtype)

        def drop():
            batch = inputs.shape[0] or tf.shape(inputs)[0]  # static where it can be: XLA needs it
            return tf.zeros([batch, *self.branch.output.shape[1:]], self.compute_dtype)

        return tf.cond(draw < self.survival, keep, drop)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *self.branch.output.shape[1:])

    def get_config(self):
        branch = tf.keras.layers.serialize(self.branch)
        return {**super().get_config(), "branch": branch, "survival": self.survival}

    @classmethod
    def from_config(cls, config):
        return cls(tf.keras.layers.deserialize(config.pop("branch")), **config)
