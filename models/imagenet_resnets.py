"""ResNets of four stages, for 224x224 images or, with another stem, for 32x32.

He et al. 2015 (v1, arXiv 1512.03385); Gross & Wilber 2016 (v1.5: strides in the 3x3); He et al.
2016 (v2: pre-activation, arXiv 1603.05027); He et al. 2018 (-D, arXiv 1812.01187); TF-slim's
resnet_v1 and keras.applications' ResNetV2, with the strides in each stage's last unit; networks of
DAWNBench entries: Chen Wang's KervResNet, with a kervolution as its stem (wang-chen/KervNets), and
Intel's ResNet-56 (branch DAWN_Bench of intel/caffe).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from . import blocks, checks
from .factories import Layers
from .layers.initializers import pytorch_uniform
from .networks import Family

STEMS = ("imagenet", "cifar", "kervolution")
DEPTHS = {
    18: ("basic", (2, 2, 2, 2)),
    26: ("bottleneck", (2, 2, 2, 2)),
    34: ("basic", (3, 4, 6, 3)),
    50: ("bottleneck", (3, 4, 6, 3)),
    56: ("bottleneck", (3, 4, 8, 3)),
    101: ("bottleneck", (3, 4, 23, 3)),
    152: ("bottleneck", (3, 8, 36, 3)),
}


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    depth: int,
    version: str = "v1.5",
    stem: str = "imagenet",
    width: int = 64,
    norm_epsilon: float = 1e-5,
    zero_last_norm: bool = False,
) -> tf.Tensor:
    """Builds a four-stage ResNet up to the last feature map.

    Args:
      depth: 18 or 34 (basic blocks), 26, 50, 56, 101 or 152 (bottleneck blocks).
      version: "v1" (a bottleneck's strides in its first 1x1), "v1.5" (in its 3x3; equal to v1 with
        basic blocks), "v1.5d" (-D: a stem of three 3x3, average pools in shortcuts), "v2"
        (pre-activation), "v2_keras" (keras.applications': BN after the stem's pool, biases where
        no BN follows, strides in a stage's last unit) or "v1_slim" (TF-slim's resnet_v1: v1.5 with
        the strides in a stage's last unit, and TensorFlow's padding in the max pool).
      stem: "imagenet" (7x7 and max pool: a quarter of the sides), "cifar" (3x3: all of them) or
        "kervolution" (3x3 without padding, cubed: two pixels less; all layers then have the
        initializers of PyTorch 0.3).
      width: filters of the stem and of the first stage's 3x3; each stage doubles them.
      norm_epsilon: BN's epsilon.
      zero_last_norm: whether the last BN of each branch has an initial scale of 0, so that units
        start as the identity (Goyal et al. 2017, arXiv 1706.02677, section 5.1).

    Raises:
      ValueError: an argument has none of these values, or `zero_last_norm` is set for a
        pre-activation network, whose branches do not end in a BN.
    """
    checks.one_of(DEPTHS, depth=depth)
    checks.one_of(VERSIONS, version=version)
    checks.one_of(STEMS, stem=stem)
    make = _as_in_pytorch_0_3(layers()) if stem == "kervolution" else layers()
    if version == "v1_slim":  # its convolutions have symmetric padding, slim's `conv2d_same`
        make = make._replace(max_pool=layers(padding="same").max_pool)
    make = make._replace(norm=partial(make.norm, epsilon=norm_epsilon))
    block, units = DEPTHS[depth]
    net = VERSIONS[version](block)._replace(zero_last_norm=zero_last_norm)
    if zero_last_norm and net.preactivation:
        raise ValueError(f"`zero_last_norm` should be False in v2. Received: version={version!r}")
    widths = [width * factor * (1 if block == "basic" else 4) for factor in (1, 2, 4, 8)]
    strides = (2, 2, 2, 1) if net.strides_last else (1, 2, 2, 2)
    stages = [*zip(widths, units, strides, strict=True)]
    x = blocks.residual_stages(_stem(images, stem, version, width, make), stages, net, make)
    return make.act()(make.norm()(x)) if net.preactivation else x


def _residual(
    block: str,
    strided: str = "3x3",
    shortcut: str = "projection_bn",
    bias: bool = False,
    **residual: Any,
) -> blocks.Residual:
    bottleneck = partial(blocks.bottleneck, strided=strided, bias=bias)
    return blocks.Residual(blocks.basic if block == "basic" else bottleneck, shortcut, **residual)


VERSIONS: dict[str, Callable[[str], blocks.Residual]] = {  # from "basic" or "bottleneck"
    "v1": partial(_residual, strided="1x1"),
    "v1.5": _residual,
    "v1.5d": partial(_residual, shortcut="pool_projection_bn"),
    "v2": partial(_residual, shortcut="projection", preactivation=True),
    "v2_keras": partial(
        _residual,
        shortcut="projection_bias",
        bias=True,
        preactivation=True,
        active_stem=False,
        strides_last=True,
    ),
    "v1_slim": partial(_residual, strides_last=True),
}


def _stem(x: tf.Tensor, stem: str, version: str, width: int, make: Layers) -> tf.Tensor:
    if stem == "kervolution":
        limit = (9 * x.shape[make.axis]) ** -0.5
        bias = tf.keras.initializers.RandomUniform(-limit, limit)
        x = make.conv(width, 3, padding="valid", use_bias=True, bias_initializer=bias)(x)
        return make.act()(make.norm()(make.polynomial(power=3, balance=2.0)(x)))
    if stem == "cifar":
        return make.act()(make.norm()(make.conv(width, 3)(x)))
    if version == "v2_keras":
        return make.max_pool(3, 2)(make.conv(width, 7, 2, use_bias=True)(x))
    if version == "v1.5d":
        for strides in (2, 1):
            x = make.act()(make.norm()(make.conv(width // 2, 3, strides)(x)))
        x = make.conv(width, 3)(x)
    else:
        x = make.conv(width, 7, 2)(x)
    return make.max_pool(3, 2)(make.act()(make.norm()(x)))


def _as_in_pytorch_0_3(make: Layers) -> Layers:
    """Returns factories with PyTorch 0.3's initializers; its BN scales are uniform in [0, 1)."""

    def norm(gamma_initializer: str = "ones", **kwargs: Any) -> Callable:
        uniform = tf.keras.initializers.RandomUniform(0.0, 1.0)
        scale = uniform if gamma_initializer == "ones" else gamma_initializer
        return make.norm(gamma_initializer=scale, **kwargs)

    return make._replace(conv=partial(make.conv, initializer=pytorch_uniform), norm=norm)


FAMILY = Family(
    body, smallest_side=lambda args: 32 if args.get("stem", "imagenet") == "imagenet" else 8
)
