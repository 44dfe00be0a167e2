"""DenseNets-BC for 32x32 images: each layer sees all before it in its block.

Huang et al. 2017 (arXiv 1608.06993): bottleneck layers and compression, three blocks.
"""

import tensorflow as tf

from . import blocks, factories


def build(
    *,
    depth,
    growth,
    compression=0.5,
    synchronized=False,
    num_classes=10,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """A DenseNet-BC, images to logits: depth L, growth rate k, without dropout.

    Args:
      depth: 6n+4 (n layers of two convolutions a block).
      growth: channels that each layer adds (k); the stem has twice as many.
      compression: share of the channels that a transition keeps, in (0, 1].
      synchronized, num_classes, input_shape, data_format, dtype, name: as in `cifar_resnets`.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    per_block = blocks.units_per_stage(depth, 6, 4, "in DenseNets-BC")
    blocks.in_unit_interval(compression=compression)
    if growth < 1:
        raise ValueError(f"`growth` should be at least 1. Received: growth={growth}")
    make = factories.layers(data_format=data_format, dtype=dtype, synchronized=synchronized)
    images = blocks.images(input_shape, data_format, native=32, smallest=4)
    x = make.conv(2 * growth, 3)(images)
    for number in (1, 2, 3):
        if number > 1:
            x = make.conv(int(x.shape[make.axis] * compression), 1)(x)
            x = make.average_pool(2, 2)(x)
        for _ in range(per_block):
            x = make.concatenate()([x, _layer(x, growth, make)])
        x = make.act(name=f"stage{number}")(make.norm()(x))
    return blocks.network(images, blocks.classifier(x, num_classes, make), name)


def _layer(x, growth, make):
    x = make.conv(4 * growth, 1)(make.act()(make.norm()(x)))
    return make.conv(growth, 3)(make.act()(make.norm()(x)))
