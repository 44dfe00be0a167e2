"""Wide ResNets for 32x32 images: pre-activation, basic blocks, `widen` times the filters.

Zagoruyko & Komodakis 2016 (arXiv 1605.07146), without dropout, as in DAWNBench's PyTorch seeds.
"""

import tensorflow as tf

from . import blocks, factories


def build(
    *,
    depth,
    widen,
    synchronized=False,
    num_classes=10,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """A wide ResNet, images to logits: WRN-`depth`-`widen`.

    Args:
      depth: 6n+4: the paper counts the three shortcut convolutions and the first.
      widen: stages have 16, 32, 64 times as many filters.
      synchronized, num_classes, input_shape, data_format, dtype, name: as in `cifar_resnets`.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    units = blocks.units_per_stage(depth, 6, 4, "in wide ResNets")
    if widen < 1:
        raise ValueError(f"`widen` should be at least 1. Received: widen={widen}")
    make = factories.layers(data_format=data_format, dtype=dtype, synchronized=synchronized)
    net = blocks.Residual(blocks.basic, "projection", preactivation=True, active_stem=False)
    stages = blocks.three_stages((16 * widen, 32 * widen, 64 * widen), units)
    images = blocks.images(input_shape, data_format, native=32, smallest=4)
    return blocks.network(images, blocks.cifar(images, stages, net, num_classes, make), name)
