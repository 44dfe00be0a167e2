"""Wide ResNets for 32x32 images: pre-activation, basic blocks, `widen` times the filters.

Zagoruyko & Komodakis 2016 (arXiv 1605.07146), without dropout, as in DAWNBench's PyTorch seeds.
"""

from collections.abc import Callable

import tensorflow as tf

from . import blocks, checks
from .factories import Layers
from .networks import Family


def body(images: tf.Tensor, layers: Callable[..., Layers], *, depth: int, widen: int) -> tf.Tensor:
    """Builds a wide ResNet, WRN-`depth`-`widen`, up to the last feature map.

    Args:
      depth: 6n+4, for n units per stage; counts the first and three shortcut convolutions.
      widen: widening factor k; the stages have 16 k, 32 k and 64 k filters.
    """
    units = checks.units_per_stage(depth, 6, 4, "in wide ResNets")
    if widen < 1:
        raise ValueError(f"`widen` should be at least 1. Received: widen={widen}")
    net = blocks.Residual(blocks.basic, "projection", preactivation=True, active_stem=False)
    stages = blocks.three_stages((16 * widen, 32 * widen, 64 * widen), units)
    return blocks.cifar(images, stages, net, layers())


FAMILY = Family(body)
