"""ResNets for 32x32 images: three stages of 16, 32, 64 filters (bottleneck: 64, 128, 256).

He et al. 2015 (arXiv 1512.03385, section 4.2), He et al. 2016 (pre-activation, arXiv 1603.05027),
Huang et al. 2016 (stochastic depth, arXiv 1603.09382), DAWNBench's TensorFlow and PyTorch seeds.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import blocks, checks
from .factories import Layers
from .networks import Arguments, Family, classifier

PREACTIVATION = (None, "first", "widening")


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    depth: int,
    block: str = "basic",
    preactivation: str | None = None,
    shortcut: str = "projection_bn",
    strided: str = "3x3",
    padding: str = "symmetric",
    leaky_slope: float = 0.0,
    final_survival: float = 1.0,
    norm_scale: bool = True,
    norm_epsilon: float = 1e-5,
) -> tf.Tensor:
    """Builds a CIFAR ResNet up to the last feature map.

    Args:
      depth: 6n+2 with basic blocks, 9n+2 with bottleneck blocks, for n units per stage.
      block: "basic" or "bottleneck".
      preactivation: None: post-activation (He et al. 2015). "first": pre-activation; the stem's
        BN-ReLU serves the first unit's branch *and* shortcut (TensorFlow seeds). "widening":
        pre-activation without BN-ReLU after the stem; the BN-ReLU of a unit that widens serves its
        branch and its shortcut (He et al. 2016).
      shortcut: shortcut where the width changes: "projection" (1x1 convolution), "projection_bn"
        (with BN), "pool_pad" (average pool, zero channels), "stride_pad" (every other pixel, zero
        channels).
      strided: convolution of a bottleneck that has the stride, "1x1" or "3x3".
      padding: padding of layers with strides, "symmetric" (Caffe, Torch) or "same" (TensorFlow).
      leaky_slope: slope of leaky ReLU; 0 is ReLU.
      final_survival: stochastic depth's survival probability of the last unit, in (0, 1]; unit l of
        L survives with probability 1 - l / L * (1 - final_survival). 1: no stochastic depth.
      norm_scale: whether BN has a trained scale (gamma).
      norm_epsilon: BN's epsilon.
    """
    checks.one_of(blocks.BLOCKS, block=block)
    checks.one_of(("1x1", "3x3"), strided=strided)
    basic = block == "basic"
    units = checks.units_per_stage(depth, 6 if basic else 9, 2, f"with {block} blocks")
    stages = blocks.three_stages((16, 32, 64) if basic else (64, 128, 256), units)
    checks.one_of(PREACTIVATION, preactivation=preactivation)
    checks.one_of(blocks.SHORTCUTS, shortcut=shortcut)
    checks.in_unit_interval(final_survival=final_survival)
    make = layers(padding=padding)
    make = make._replace(norm=partial(make.norm, scale=norm_scale, epsilon=norm_epsilon))
    if leaky_slope:
        make = make._replace(act=partial(make.leaky_relu, leaky_slope))
    net = blocks.Residual(
        blocks.basic if basic else partial(blocks.bottleneck, strided=strided),
        shortcut,
        preactivation=preactivation is not None,
        shortcut_sees_activation=preactivation == "widening",
        active_stem=preactivation != "widening",
        final_survival=final_survival,
    )
    return blocks.cifar(images, stages, net, make)


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    # TensorFlow's uniform_unit_scaling: the initializer of the TensorFlow seeds, and ours for
    # networks of papers that state none.
    if args.get("preactivation") == "first" or args.get("shortcut") == "stride_pad":
        make = make._replace(dense=partial(make.dense, kernel_scale=1.0))
    return classifier(x, num_classes, make, args)


FAMILY = Family(body, head=_head)
