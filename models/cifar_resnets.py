"""ResNets for 32x32 images: three stages of 16, 32, 64 filters (bottleneck: 64, 128, 256).

He et al. 2015 (arXiv 1512.03385, section 4.2), He et al. 2016 (pre-activation, arXiv 1603.05027),
Huang et al. 2016 (stochastic depth, arXiv 1603.09382), DAWNBench's TensorFlow and PyTorch seeds.
"""

from functools import partial

import tensorflow as tf

from . import blocks, factories

PREACTIVATION = (None, "first", "widening")


def build(
    *,
    depth,
    block="basic",
    preactivation=None,
    shortcut="projection_bn",
    strided="3x3",
    padding="symmetric",
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
      block: "basic" or "bottleneck".
      preactivation: BN and activation before each convolution, not after (None), in each unit's
        branch alone but for "first": the first unit's shortcut starts there too; "widening":
        the shortcut of each unit that changes the width does.
      shortcut: where the width changes: "projection" (1x1 convolution), "projection_bn" (with
        BN), "pool_pad" (average pool, zero-padded channels), "stride_pad" (every other pixel).
      strided: which convolution of a bottleneck has the stride, "1x1" or "3x3".
      padding: of what strides, "symmetric" (Caffe's, Torch's) or "same" (TensorFlow's).
      leaky_slope: of leaky ReLU; 0 is plain ReLU.
      final_survival: stochastic depth's survival probability of the last unit, in (0, 1];
        unit l of L survives with 1 - l / L * (1 - final_survival). 1 is the plain network.
      norm_scale: whether BN learns a scale (gamma).
      norm_epsilon: BN's epsilon.
      synchronized: BN statistics over the global batch, not over each replica's own.
      num_classes: length of the logits.
      input_shape: (height, width, channels), or (channels, height, width) with NCHW; sides of 4
        pixels at least, or None. Default: 32x32x3.
      data_format: "NHWC" or "NCHW".
      dtype: precision of the layers, e.g. "mixed_bfloat16"; default: Keras's global policy.
      name: of the Keras model.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    stages, unit = _plan(depth, block, strided)
    blocks.one_of(PREACTIVATION, preactivation=preactivation)
    blocks.one_of(blocks.SHORTCUTS, shortcut=shortcut)
    blocks.in_unit_interval(final_survival=final_survival)
    make = factories.layers(
        data_format=data_format,
        dtype=dtype,
        synchronized=synchronized,
        padding=padding,
        norm_epsilon=norm_epsilon,
        norm=partial(tf.keras.layers.BatchNormalization, scale=norm_scale),
        act=partial(tf.keras.layers.LeakyReLU, leaky_slope) if leaky_slope else factories.relu,
    )
    net = blocks.Residual(
        unit,
        shortcut,
        preactivation=preactivation is not None,
        shared=preactivation == "widening",
        active_stem=preactivation != "widening",
        final_survival=final_survival,
    )
    images = blocks.images(input_shape, data_format, native=32, smallest=4)
    return blocks.network(images, blocks.cifar(images, stages, net, num_classes, make), name)


def _plan(depth, block, strided):
    blocks.one_of(blocks.BLOCKS, block=block)
    blocks.one_of(("1x1", "3x3"), strided=strided)
    basic = block == "basic"
    units = blocks.units_per_stage(depth, 6 if basic else 9, 2, f"with {block} blocks")
    widths = (16, 32, 64) if basic else (64, 128, 256)
    unit = blocks.basic if basic else partial(blocks.bottleneck, strided=strided)
    return blocks.three_stages(widths, units), unit
