"""basenet for CIFAR-10: a pre-activation ResNet-18 with narrow last stages and two pools.

bkj/basenet, examples/cifar10.py, the network of a DAWNBench entry of 2018.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import blocks
from .factories import Layers
from .layers.initializers import pytorch_uniform
from .networks import Arguments, Family


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    widths: tuple[int, ...] = (64, 64, 128, 256, 256),
    units: int = 2,
) -> tf.Tensor:
    """Builds a basenet up to the last feature map: 4x4 pixels for 32x32 images.

    Each stage's first unit with strides has a 1x1 convolution as its shortcut, also where the width
    does not change. No BN follows the last unit.

    Args:
      widths: filters of the first convolution and of the four stages.
      units: residual units of each stage.
    """
    make = layers()
    make = make._replace(conv=partial(make.conv, initializer=pytorch_uniform))
    x = make.act()(make.norm()(make.conv(widths[0], 3)(images)))
    for filters, strides in zip(widths[1:], (1, 2, 2, 2), strict=True):
        for unit in range(units):
            x = _unit(x, filters, 1 if unit else strides, make)
    return x


def _unit(x: tf.Tensor, filters: int, strides: int, make: Layers) -> tf.Tensor:
    active = make.act()(make.norm()(x))
    branch = blocks.basic(active, filters, strides, make)
    shortcut = make.conv(filters, 1, strides)(active) if strides > 1 else x
    return make.add()([branch, shortcut])


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    pools = [make.global_average()(x), make.global_max()(x)]
    x = tf.keras.layers.Concatenate(name="features", dtype=pools[0].dtype)(pools)
    return make.to_float32(1.0, name="logits")(make.dense(num_classes)(x))


FAMILY = Family(body, head=_head, smallest_side=lambda args: 8)
