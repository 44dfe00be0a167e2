"""ResNeXts for 32x32 images: bottleneck blocks with grouped 3x3 convolutions.

Xie et al. 2016 (arXiv 1611.05431, section 5.3): a stem of 64 filters, stages of 256, 512, 1024.
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
    """Builds a CIFAR ResNeXt up to the last feature map.

    Args:
      depth: 9n+2, for n units per stage.
      cardinality: groups of each 3x3 convolution.
      base_width: filters per group in the first stage; doubled in each following stage.
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


FAMILY = Family(body)
