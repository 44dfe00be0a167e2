"""DenseNets-BC for 32x32 images: each layer's input is all earlier maps of its block.

Huang et al. 2017 (arXiv 1608.06993): three blocks, with bottleneck layers and compression.
"""

from collections.abc import Callable

import tensorflow as tf

from . import checks
from .factories import Layers
from .networks import Family


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    depth: int,
    growth: int,
    compression: float = 0.5,
) -> tf.Tensor:
    """Builds a DenseNet-BC up to the last feature map; no dropout.

    Args:
      depth: the paper's L, 6n+4 for n layers of two convolutions per block.
      growth: growth rate, the paper's k: channels that each layer adds; the stem has 2 k.
      compression: share of the channels that a transition keeps, in (0, 1].
    """
    per_block = checks.units_per_stage(depth, 6, 4, "in DenseNets-BC")
    checks.in_unit_interval(compression=compression)
    checks.at_least(1, growth=growth)
    make = layers()
    x = make.conv(2 * growth, 3)(images)
    for number in (1, 2, 3):
        if number > 1:
            x = make.conv(int(x.shape[make.axis] * compression), 1)(x)
            x = make.average_pool(2, 2)(x)
        for _ in range(per_block):
            added = make.conv(4 * growth, 1)(make.act()(make.norm()(x)))
            added = make.conv(growth, 3)(make.act()(make.norm()(added)))
            x = make.concatenate()([x, added])
        x = make.act(name=f"stage{number}")(make.norm()(x))
    return x


FAMILY = Family(body)
