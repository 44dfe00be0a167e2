"""David Page's ResNet-9 for CIFAR-10, in both published versions.

"How to train your ResNet", 2018-2019: the network of the 24-epoch DAWNBench entry, and that of the
10-epoch recipe with whitened input, ghost BN without scale, CELU, and pools before the BN.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from .factories import Layers
from .layers.initializers import pytorch_uniform
from .networks import Arguments, Family


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    whitened: bool = False,
    ghost_group: int = 32,
) -> tf.Tensor:
    """Builds a ResNet-9 up to the last feature map.

    Args:
      images: (batch, height, width, channels), or (batch, channels, height, width) with NCHW.
      layers: function that returns layer factories.
      whitened: whether to build the 10-epoch recipe's network. Before training, set its first
        layer from training images: `model.get_layer("whitening").adapt(images)`.
      ghost_group: examples per group of that network's ghost BN; `synchronized` has no effect on
        it.
    """
    make = layers()
    make = make._replace(conv=partial(make.conv, initializer=pytorch_uniform))
    x = images
    if whitened:
        ghost = partial(make.ghost_norm, group=ghost_group, scale=False)
        make = make._replace(norm=ghost, act=partial(make.celu, 0.3))
        x = make.whitening(name="whitening")(x)
    x = make.act()(make.norm()(make.conv(64, 1 if whitened else 3)(x)))
    for filters, has_residual in ((128, True), (256, False), (512, True)):
        x = _halve(x, filters, whitened, make)
        if has_residual:
            x = make.add()([x, _unit(_unit(x, filters, make), filters, make)])
    return x


def _unit(x: tf.Tensor, filters: int, make: Layers) -> tf.Tensor:
    return make.act()(make.norm()(make.conv(filters, 3)(x)))


def _halve(x: tf.Tensor, filters: int, pool_first: bool, make: Layers) -> tf.Tensor:
    x = make.conv(filters, 3)(x)
    if pool_first:
        return make.act()(make.norm()(make.max_pool(2, 2)(x)))
    return make.max_pool(2, 2)(make.act()(make.norm()(x)))


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    x = make.global_max(name="features")(x)
    x = make.dense(num_classes, use_bias=False)(x)
    return make.to_float32(1 / 16 if args.get("whitened") else 1 / 8, name="logits")(x)


def _describe(args: Arguments) -> tuple[str, str, str]:
    activation = "CELU 0.3, ghost BN" if args.get("whitened") else "ReLU"
    return "two 3x3", "none: pools between", activation


FAMILY = Family(
    body,
    smallest=lambda args: {},
    describe=_describe,
    head=_head,
    smallest_side=lambda args: 8,
)
