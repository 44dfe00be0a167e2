"""The plain convolutional networks of the fastest CIFAR-10 trainings (Jordan 2024).

arXiv 2404.00498, "94% on CIFAR-10 in 3.29 seconds on a single GPU": whitened 2x2 patches, three
groups of 3x3 convolutions that begin as the identity, BN without scale behind the pools, GELU.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import checks
from .factories import Layers
from .layers.initializers import PartialIdentity
from .networks import Arguments, Family


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    widths: tuple[int, int, int] = (64, 256, 256),
    convolutions: int = 2,
    norm_momentum: float = 0.6,
) -> tf.Tensor:
    """Images to the last feature map, 3x3 of images of 32x32.

    Args:
      images: (batch, height, width, channels), or as the layout has it.
      layers: makes layer factories.
      widths: filters of the three groups.
      convolutions: of each group: 2, or 3, the last two of which are a residual branch.
      norm_momentum: share that BN's moving statistics keep at each step.

    Raises:
      ValueError: `convolutions` is neither.
    """
    checks.one_of((2, 3), convolutions=convolutions)
    make = layers()
    make = make._replace(
        conv=partial(make.conv, initializer=PartialIdentity),
        norm=partial(make.norm, scale=False, momentum=norm_momentum, epsilon=1e-12),
        act=make.gelu,
    )
    x = make.act()(make.whitening(name="whitening", **_WHITENING)(images))
    for filters in widths:
        x = make.max_pool(2, 2)(make.conv(filters, 3)(x))
        x = make.act()(make.norm()(x))
        branch = make.norm()(make.conv(filters, 3)(x))
        if convolutions == 3:
            branch = make.norm()(make.conv(filters, 3)(make.act()(branch)))
            branch = make.add()([x, branch])
        x = make.act()(branch)
    return x


_WHITENING = {
    "patch": 2,
    "epsilon": 5e-4,
    "negated": True,
    "use_bias": True,
    "examples": 5000,
}


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    x = make.global_max(name="features")(x)
    return make.to_float32(1 / 9, name="logits")(make.dense(num_classes, use_bias=False)(x))


def _describe(args: Arguments) -> tuple[str, str, str]:
    residual = args.get("convolutions", 2) == 3
    block = "three 3x3" if residual else "two 3x3"
    return block, "identity" if residual else "none: pools between", "GELU"


FAMILY = Family(
    body,
    smallest=lambda args: {"widths": (32, 64, 64)},
    describe=_describe,
    head=_head,
    smallest_side=lambda args: 9,
)
