"""ResNet-9s for CIFAR-10: David Page's, and the networks that later entries made from it.

"How to train your ResNet", 2018-2019: the network of the 24-epoch DAWNBench entry, and that of the
10-epoch recipe with whitened input, ghost BN without scale, CELU, and pools before the BN. Others
have other widths, pairs of residual convolutions in other stages, or another head: Baidu's
BaiduNets, Kakao Brain's, Apple's, Laurent Mazare's.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import checks
from .factories import Layers
from .layers.initializers import kaiming_uniform, pytorch_uniform
from .networks import Arguments, Family

_HALVINGS = ("pool", "none", "stride", "valid")
_INITIALIZERS = {"pytorch": pytorch_uniform, "kaiming": kaiming_uniform}


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    widths: tuple[int, ...] = (64, 128, 256, 512),
    halvings: tuple[str, ...] = ("pool", "pool", "pool"),
    residual: tuple[int, ...] = (1, 3),
    activation: str = "relu",
    initializer: str = "pytorch",
    whitened: bool = False,
    ghost_group: int = 32,
    head: str = "max",
    logit_scale: float = 1 / 8,
) -> tf.Tensor:
    """Builds a ResNet-9 up to the last feature map.

    Args:
      widths: filters of the first convolution and of each stage.
      halvings: how each stage makes its map smaller: "pool" (3x3 convolution, 2x2 max pool), "none"
        (3x3 convolution: not at all), "stride" (5x5 convolution of stride 2), "valid" (3x3
        convolution without padding).
      residual: stages, from 1, that end with a pair of 3x3 convolutions in a residual branch.
      activation: "relu", "mish", or "celu" with alpha 0.3.
      initializer: of convolutions and the dense layer: "pytorch", its default; "kaiming", PyTorch's
        `kaiming_uniform_` with gain 1.
      whitened: whether to build the 10-epoch recipe's network: whitened input, ghost BN without
        scale, pools before BN. Before training, set its first layer from training images:
        `model.get_layer("whitening").adapt(images)`.
      ghost_group: examples per group of that network's ghost BN; `synchronized` has no effect on
        it.
      head: "max": global max pool, dense layer without bias; "max_bias", "average": a pool and a
        dense layer with bias.
      logit_scale: factor of the logits.
    """
    checks.one_of(("relu", "mish", "celu"), activation=activation)
    checks.one_of(_INITIALIZERS, initializer=initializer)
    checks.one_of(("max", "max_bias", "average"), head=head)
    for halving in halvings:
        checks.one_of(_HALVINGS, halvings=halving)
    stages = len(widths) - 1
    if len(halvings) != stages or not {*residual} <= {*range(1, stages + 1)}:
        raise ValueError(
            "`halvings` should have one item fewer than `widths`, and `residual` numbers of such "
            f"stages. Received: widths={widths}, halvings={halvings}, residual={residual}"
        )
    make = layers()
    activations: dict[str, Callable] = {
        "relu": make.act,
        "mish": make.mish,
        "celu": partial(make.celu, 0.3),
    }
    ghost_norm = partial(make.ghost_norm, group=ghost_group, scale=False)
    make = make._replace(
        conv=partial(make.conv, initializer=_INITIALIZERS[initializer]),
        norm=ghost_norm if whitened else make.norm,
        act=activations[activation],
    )
    x = make.whitening(name="whitening")(images) if whitened else images
    x = make.act()(make.norm()(make.conv(widths[0], 1 if whitened else 3)(x)))
    for stage, (filters, halving) in enumerate(zip(widths[1:], halvings, strict=True), 1):
        x = _halve(x, filters, halving, whitened, make)
        if stage in residual:
            x = make.add()([x, _unit(_unit(x, filters, make), filters, make)])
    return x


def _unit(x: tf.Tensor, filters: int, make: Layers) -> tf.Tensor:
    return make.act()(make.norm()(make.conv(filters, 3)(x)))


def _halve(x: tf.Tensor, filters: int, halving: str, pool_first: bool, make: Layers) -> tf.Tensor:
    if halving == "stride":
        x = make.conv(filters, 5, 2)(x)
    else:
        x = make.conv(filters, 3, padding="valid" if halving == "valid" else "symmetric")(x)
    pool = make.max_pool(2, 2) if halving == "pool" else lambda x: x
    if pool_first:
        return make.act()(make.norm()(pool(x)))
    return pool(make.act()(make.norm()(x)))


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    head = args.get("head", "max")
    pool = make.global_average if head == "average" else make.global_max
    scale = 1.0 if args.get("initializer") == "kaiming" else 1 / 3
    x = pool(name="features")(x)
    x = make.dense(num_classes, use_bias=head != "max", kernel_scale=scale)(x)
    return make.to_float32(args.get("logit_scale", 1 / 8), name="logits")(x)


def _smallest_side(args: Arguments) -> int:
    side = 1
    for halving in reversed(args.get("halvings", ("pool", "pool", "pool"))):
        side = {"pool": 2 * side, "none": side, "stride": 2 * side - 1, "valid": side + 2}.get(
            halving, side
        )
    return side


FAMILY = Family(body, head=_head, smallest_side=_smallest_side)
