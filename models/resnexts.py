"""ResNeXts for 32x32 images: bottleneck blocks whose 3x3 convolution is in groups.

Xie et al. 2016 (arXiv 1611.05431, section 5.3): a stem of 64, stages of 256, 512, 1024.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import blocks, checks
from .factories import Layers
from .networks import Family


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    depth: int,
    cardinality: int,
    base_width: int,
) -> tf.Tensor:
    """A CIFAR ResNeXt, images to the last feature map.

    Args:
      images: (batch, height, width, channels), or as the layout has it.
      layers: makes layer factories.
      depth: 9n+2.
      cardinality: groups of each 3x3 convolution.
      base_width: filters of a group in the first stage; they double with each stage.

    Raises:
      ValueError: an argument is none of these.
    """
    units = checks.units_per_stage(depth, 9, 2, "in ResNeXts")
    if min(cardinality, base_width) < 1:
        raise ValueError(
            "`cardinality` and `base_width` should be at least 1. "
            f"Received: cardinality={cardinality}, base_width={base_width}"
        )
    inner = cardinality * base_width / 256
    block = partial(blocks.bottleneck, inner=inner, groups=cardinality)
    net = blocks.Residual(block, "projection_bn")
    stages = blocks.three_stages((256, 512, 1024), units)
    return blocks.cifar(images, stages, net, layers(), stem=64)


FAMILY = Family(
    body,
    smallest=lambda args: {"depth": 11, "cardinality": 2, "base_width": 16},
    describe=lambda args: (
        "bottleneck, 3x3 in groups",
        blocks.SHORTCUTS_IN_WORDS["projection_bn"],
        "ReLU",
    ),
)
