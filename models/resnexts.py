"""ResNeXts for 32x32 images: bottleneck blocks whose 3x3 convolution is in groups.

Xie et al. 2016 (arXiv 1611.05431, section 5.3): a stem of 64, stages of 256, 512, 1024.
"""

from functools import partial

import tensorflow as tf

from . import blocks, factories


def build(
    *,
    depth,
    cardinality,
    base_width,
    synchronized=False,
    num_classes=10,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """A CIFAR ResNeXt, images to logits: ResNeXt-`depth`, `cardinality` x `base_width`d.

    Args:
      depth: 9n+2.
      cardinality: groups of each 3x3 convolution.
      base_width: filters of a group in the first stage; they double with each stage.
      synchronized, num_classes, input_shape, data_format, dtype, name: as in `cifar_resnets`.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    units = blocks.units_per_stage(depth, 9, 2, "in ResNeXts")
    if min(cardinality, base_width) < 1:
        raise ValueError(
            "`cardinality` and `base_width` should be at least 1. "
            f"Received: cardinality={cardinality}, base_width={base_width}"
        )
    make = factories.layers(data_format=data_format, dtype=dtype, synchronized=synchronized)
    inner = cardinality * base_width / 256
    block = partial(blocks.bottleneck, inner=inner, groups=cardinality)
    net = blocks.Residual(block, "projection_bn")
    stages = blocks.three_stages((256, 512, 1024), units)
    images = blocks.images(input_shape, data_format, native=32, smallest=4)
    logits = blocks.cifar(images, stages, net, num_classes, make, stem=64)
    return blocks.network(images, logits, name)
