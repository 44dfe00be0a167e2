"""ResNets for 32x32 images: three stages of 16, 32, 64 filters (bottleneck: 64, 128, 256).

He et al. 2015 (arXiv 1512.03385, section 4.2), He et al. 2016 (pre-activation, arXiv 1603.05027),
Huang et al. 2016 (stochastic depth, arXiv 1603.09382), and DAWNBench's TensorFlow seeds.
"""

from functools import partial

import tensorflow as tf

from . import blocks


def build(
    *,
    depth,
    block="basic",
    preactivation=False,
    shortcut="projection_bn",
    leaky_slope=0.0,
    final_survival=1.0,
    norm_scale=True,
    norm_epsilon=1e-5,
    synchronized=False,
    num_classes=10,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """A CIFAR ResNet, images to logits.

    Args:
      depth: 6n+2 with basic blocks, 9n+2 with bottleneck blocks (n units a stage).
      block: "basic" or "bottleneck" (its stride is in the first 1x1 convolution).
      preactivation: BN and activation before each convolution, not after. The first unit
        activates its input for both of its paths, every other unit for its branch alone.
      shortcut: where the shape changes: "projection" (1x1 convolution), "projection_bn" (with
        BN), "pool_pad" (average pool, zero-padded channels), "stride_pad" (every other pixel).
      leaky_slope: of leaky ReLU; 0 is plain ReLU.
      final_survival: stochastic depth's survival probability of the last unit, in (0, 1];
        unit l of L survives with 1 - l / L * (1 - final_survival). 1 is the plain network.
      norm_scale: whether BN learns a scale (gamma).
      norm_epsilon: BN's epsilon.
      synchronized: BN statistics over the global batch, not over each replica's own.
      num_classes: length of the logits.
      input_shape: (height, width, channels), or (channels, height, width) with NCHW; 4 pixels
        a side at least. Default: 32x32x3.
      data_format: "NHWC" or "NCHW".
      dtype: precision of the layers, e.g. "mixed_bfloat16"; default: Keras's global policy.
      name: of the Keras model.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    per_stage = _units_per_stage(depth, block, shortcut, final_survival)
    make = blocks.layers(
        data_format=data_format,
        dtype=dtype,
        leaky_slope=leaky_slope,
        norm_scale=norm_scale,
        norm_epsilon=norm_epsilon,
        synchronized=synchronized,
    )
    shape = _checked_shape(input_shape, data_format)
    images = tf.keras.Input(shape, name="images")
    x = make.conv(16, 3)(images)
    if not preactivation:
        x = make.act()(make.norm()(x))
    x = _stages(x, per_stage, block, preactivation, shortcut, final_survival, make)
    if preactivation:
        x = make.act()(make.norm()(x))
    logits = make.to_float32()(make.dense(num_classes)(make.global_pool()(x)))
    return tf.keras.Model(images, logits, name=name)


def _units_per_stage(depth, block, shortcut, final_survival):
    if block not in blocks.UNITS:
        raise ValueError(
            f"`block` should be one of {list(blocks.UNITS)}. Received: block={block!r}"
        )
    if shortcut not in blocks.SHORTCUTS:
        raise ValueError(
            f"`shortcut` should be one of {list(blocks.SHORTCUTS)}. Received: shortcut={shortcut!r}"
        )
    if not 0 < final_survival <= 1:
        raise ValueError(
            f"`final_survival` should be in (0, 1]. Received: final_survival={final_survival}"
        )
    step = 6 if block == "basic" else 9
    if depth < step + 2 or (depth - 2) % step:
        raise ValueError(
            f"`depth` should be {step}n+2 with {block} blocks. Received: depth={depth}"
        )
    return (depth - 2) // step


def _checked_shape(input_shape, data_format):
    channels_last = data_format == "NHWC"
    shape = tuple(input_shape or ((32, 32, 3) if channels_last else (3, 32, 32)))
    if len(shape) != 3 or min(shape[:2] if channels_last else shape[1:]) < 4:
        order = "(height, width, channels)" if channels_last else "(channels, height, width)"
        raise ValueError(
            f"`input_shape` should be {order}, 4 pixels a side at least. "
            f"Received: input_shape={shape}"
        )
    return shape


def _stages(x, per_stage, block, preactivation, shortcut, final_survival, make):
    widths = (16, 32, 64) if block == "basic" else (64, 128, 256)
    total, width_in = 3 * per_stage, 16
    for index in range(total):
        stage, unit = divmod(index, per_stage)
        filters, strides = widths[stage], 2 if stage and not unit else 1
        if preactivation and index == 0:
            x = make.act()(make.norm()(x))
        skip = blocks.SHORTCUTS[shortcut](x, filters, strides, make) if filters != width_in else x
        branch = partial(
            blocks.residual,
            unit=block,
            filters=filters,
            strides=strides,
            make=make,
            preactivation=preactivation,
            activate=preactivation and index > 0,
        )
        survival = 1 - (index + 1) / total * (1 - final_survival)
        x = make.add()([skip, branch(x) if survival == 1 else _survivor(branch, x, survival, make)])
        if not preactivation:
            x = make.act()(x)
        width_in = filters
    return x


def _survivor(branch, x, survival, make):
    inner = tf.keras.Input(x.shape[1:], dtype=x.dtype)
    return make.stochastic(tf.keras.Model(inner, branch(inner)), survival)(x)
