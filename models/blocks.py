"""Building blocks of residual networks: blocks, shortcuts, residual units, stages.

`make` is the network's layer factories, `factories.Layers`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from .factories import Layers


def basic(x: tf.Tensor, filters: int, strides: int, make: Layers) -> tf.Tensor:
    """Applies a basic block: 3x3 convolution with `strides`, BN, activation, 3x3 convolution."""
    x = make.conv(filters, 3, strides)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 3)(x)


def bottleneck(
    x: tf.Tensor,
    filters: int,
    strides: int,
    make: Layers,
    *,
    strided: str = "3x3",
    inner: float = 0.25,
    groups: int = 1,
    bias: bool = False,
) -> tf.Tensor:
    """Applies a bottleneck block: convolutions 1x1, 3x3, 1x1; BN and activation between them."""
    # `strided`: the first "1x1" (He et al. 2015) or the "3x3" has the stride. `inner`: filters of
    # the first two, as a share of `filters`. `bias`: the last has one, as no BN follows.
    width = round(filters * inner)
    x = make.conv(width, 1, strides if strided == "1x1" else 1)(x)
    x = make.act()(make.norm()(x))
    x = make.conv(width, 3, strides if strided == "3x3" else 1, groups=groups)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 1, use_bias=bias)(x)


BLOCKS = {"basic": basic, "bottleneck": bottleneck}


def _subsample(x: tf.Tensor, size: int, strides: int, make: Layers) -> tf.Tensor:
    return make.average_pool(size, strides)(x) if strides > 1 else x


# Each is a function of (x, filters, strides, make).
SHORTCUTS: dict[str, Callable[..., tf.Tensor]] = {
    "projection": lambda x, n, strides, make: make.conv(n, 1, strides)(x),
    "projection_bias": lambda x, n, strides, make: make.conv(n, 1, strides, use_bias=True)(x),
    "projection_bn": lambda x, n, strides, make: make.norm()(make.conv(n, 1, strides)(x)),
    # ResNet-D: every pixel counts
    "pool_projection_bn": lambda x, n, strides, make: make.norm()(
        make.conv(n, 1)(_subsample(x, strides, strides, make))
    ),
    "pool_pad": lambda x, n, strides, make: make.pad_channels(n)(
        _subsample(x, strides, strides, make)
    ),
    # He et al.'s option A: keep every other pixel
    "stride_pad": lambda x, n, strides, make: make.pad_channels(n)(_subsample(x, 1, strides, make)),
}


class Residual(NamedTuple):
    """Settings that all residual units of a network share."""

    block: Callable  # (x, filters, strides, make), e.g. `basic`
    shortcut: str  # name in SHORTCUTS, for units that change the width
    preactivation: bool = False  # whether BN and activation come before the convolutions
    shortcut_sees_activation: bool = True  # preactivation: a widening unit's shortcut starts after
    active_stem: bool = True  # whether the stem ends with BN and activation
    strides_last: bool = False  # whether a stage's last unit has the strides, not its first
    zero_last_norm: bool = False  # whether the last BN of each branch has an initial scale of 0
    final_survival: float = 1.0  # stochastic depth: survival of the last unit; falls linearly


def residual_stages(
    x: tf.Tensor, stages: Sequence[tuple[int, int, int]], net: Residual, make: Layers
) -> tf.Tensor:
    """Applies all units of all stages; the last layer of stage n, from 1, is named `stage{n}`."""
    # A stage is (filters, units, strides): units of one width, one of which has the strides.
    x._keras_history[0].ends_stem = True  # `parts` reads it; a name would change saved files
    total, index = sum(units for _, units, _ in stages), 0
    for number, (filters, units, stage_strides) in enumerate(stages, 1):
        for position in range(units):
            index += 1
            strides = stage_strides if position == (units - 1 if net.strides_last else 0) else 1
            end = f"stage{number}" if position == units - 1 else None
            # Whether the unit's input has been through BN and activation.
            active = not net.preactivation or (net.active_stem and index == 1)
            widens = x.shape[make.axis] != filters
            if widens and net.shortcut_sees_activation and not active:
                # Branch and shortcut share this unit's BN and activation.
                x, active = make.act()(make.norm()(x)), True
            if widens:
                shortcut = SHORTCUTS[net.shortcut](x, filters, strides, make)
            else:
                shortcut = _subsample(x, 1, strides, make)
            name = end if net.preactivation else None  # else the activation is the last layer
            survival = 1 - index / total * (1 - net.final_survival)
            if survival == 1:
                branch = _branch(x, filters, strides, active, net, make)
                x = make.add(name=name)([shortcut, branch])
            else:  # the branch is a model of its own, so that a step can skip it
                inner = tf.keras.Input(x.shape[1:], dtype=x.dtype)
                branch = tf.keras.Model(inner, _branch(inner, filters, strides, active, net, make))
                x = make.stochastic(branch, survival, name=name)([x, shortcut])
            x = x if net.preactivation else make.act(name=end)(x)
    return x


def _branch(
    x: tf.Tensor, filters: int, strides: int, active: bool, net: Residual, make: Layers
) -> tf.Tensor:
    x = x if active else make.act()(make.norm()(x))
    x = net.block(x, filters, strides, make)
    if net.preactivation:
        return x
    return make.norm(gamma_initializer="zeros" if net.zero_last_norm else "ones")(x)
