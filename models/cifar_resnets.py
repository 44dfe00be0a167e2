"""ResNets for 32x32 images: three stages of 16, 32, 64 filters (bottleneck: 64, 128, 256).

He et al. 2015 (arXiv 1512.03385, section 4.2), He et al. 2016 (pre-activation, arXiv 1603.05027),
Huang et al. 2016 (stochastic depth, arXiv 1603.09382), DAWNBench's TensorFlow and PyTorch seeds;
wide ResNets (Zagoruyko & Komodakis 2016, arXiv 1605.07146, without dropout); ResNeXts (Xie et al.
2016, arXiv 1611.05431, section 5.3).
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
    widen: int = 1,
    stem: int = 16,
    cardinality: int = 1,
    base_width: int = 16,
) -> tf.Tensor:
    """Builds a CIFAR ResNet up to the last feature map.

    Args:
      depth: 6n+2 with basic blocks (6n+4 if `widen` is over 1), 9n+2 with bottleneck blocks, for n
        units per stage.
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
      widen: factor of all stages' filters.
      stem: filters of the first convolution.
      cardinality: groups of a bottleneck's 3x3 convolution.
      base_width: filters of each group in the first stage; doubled in each following stage.
    """
    checks.one_of(blocks.BLOCKS, block=block)
    checks.one_of(("1x1", "3x3"), strided=strided)
    checks.at_least(1, widen=widen, cardinality=cardinality, base_width=base_width)
    basic = block == "basic"
    # In wide ResNets three shortcuts' convolutions count, and the head does not.
    extra = 4 if basic and widen > 1 else 2
    units = checks.units_per_stage(depth, 6 if basic else 9, extra, f"with {block} blocks")
    widths = [widen * filters * (1 if basic else 4) for filters in (16, 32, 64)]
    checks.one_of(PREACTIVATION, preactivation=preactivation)
    checks.one_of(blocks.SHORTCUTS, shortcut=shortcut)
    checks.in_unit_interval(final_survival=final_survival)
    make = layers(padding=padding)
    make = make._replace(norm=partial(make.norm, scale=norm_scale, epsilon=norm_epsilon))
    if leaky_slope:
        make = make._replace(act=partial(make.leaky_relu, leaky_slope))
    inner = cardinality * base_width / widths[0]
    bottleneck = partial(blocks.bottleneck, strided=strided, inner=inner, groups=cardinality)
    net = blocks.Residual(
        blocks.basic if basic else bottleneck,
        shortcut,
        preactivation=preactivation is not None,
        shortcut_sees_activation=preactivation == "widening",
        active_stem=preactivation != "widening",
        final_survival=final_survival,
    )
    x = make.conv(stem, 3)(images)
    x = make.act()(make.norm()(x)) if net.active_stem else x
    stages = [(n, units, s) for n, s in zip(widths, (1, 2, 2), strict=True)]
    x = blocks.residual_stages(x, stages, net, make)
    return make.act()(make.norm()(x)) if net.preactivation else x


def _head(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    # TensorFlow's uniform_unit_scaling: the initializer of the TensorFlow seeds, and ours for
    # networks of papers that state none.
    if args.get("preactivation") == "first" or args.get("shortcut") == "stride_pad":
        make = make._replace(dense=partial(make.dense, kernel_scale=1.0))
    return classifier(x, num_classes, make, args)


FAMILY = Family(body, head=_head)
