"""airbench networks for CIFAR-10: plain convolutional networks that train fastest to 94 and 96 %.

Jordan 2024 (arXiv 2404.00498, "94% on CIFAR-10 in 3.29 seconds on a single GPU"): whitening of 2x2
patches, three groups of 3x3 convolutions initialized as the identity, BN without scale behind the
pools, GELU. His airbench94_muon.py starts head and whitening's bias otherwise (`muon`); Hiverge's
cifar10_speedrun.py has SiLU in the groups too.
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
    widths: tuple[int, ...] = (64, 256, 256),
    convolutions: int = 2,
    norm_momentum: float = 0.6,
    activation: str = "gelu",
    whitening_examples: int = 5000,
    whitening_bias: bool = True,
    muon: bool = False,
) -> tf.Tensor:
    """Builds an airbench network up to the last feature map: 3x3 pixels for 32x32 images.

    Args:
      widths: filters of the three groups.
      convolutions: convolutions of each group: 2, or 3 with a residual branch around the last two.
      norm_momentum: momentum of BN's moving statistics: share of the old value that a step keeps.
      activation: activation of the groups, "gelu" or "silu"; whitening is followed by GELU.
      whitening_examples: number of training images that the network's authors whitened by; 0: in
        place of whitening there is a trained convolution with as many filters and a bias.
      whitening_bias: whether whitening has a trained bias.
      muon: the version for Muon: whitening's bias is initialized at random, the head's weights have
        the standard deviation 1, and logits are divided by the number of features, not by 9.
    """
    checks.one_of((2, 3), convolutions=convolutions)
    checks.one_of(("gelu", "silu"), activation=activation)
    plain = layers()
    make = plain._replace(
        conv=partial(plain.conv, initializer=PartialIdentity),
        norm=partial(plain.norm, scale=False, momentum=norm_momentum, epsilon=1e-12),
        act=plain.silu if activation == "silu" else plain.gelu,
    )
    if whitening_examples:
        whitening = {"patch": 2, "epsilon": 5e-4, "negated": True, "examples": whitening_examples}
        first = plain.whitening(
            name="whitening", use_bias=whitening_bias, random_bias=muon, **whitening
        )
    else:
        first = plain.conv(8 * images.shape[plain.axis], 2, padding="valid", use_bias=True)
    x = make.gelu()(first(images))
    for filters in widths:
        x = make.max_pool(2, 2)(make.conv(filters, 3)(x))
        x = make.act()(make.norm()(x))
        branch = make.norm()(make.conv(filters, 3)(x))
        if convolutions == 3:
            branch = make.norm()(make.conv(filters, 3)(make.act()(branch)))
            branch = make.add()([x, branch])
        x = make.act()(branch)
    return x


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    x = make.global_max(name="features")(x)
    features = x.shape[-1]
    # Uniform in +-1 / sqrt(fan-in), or of variance 1.
    spread = features if args.get("muon") else 1 / 3
    x = make.dense(num_classes, use_bias=False, kernel_scale=spread)(x)
    return make.to_float32(1 / features if args.get("muon") else 1 / 9, name="logits")(x)


FAMILY = Family(
    body, head=_head, smallest_side=lambda args: 2 ** len(args.get("widths", (64, 256, 256))) + 1
)
