"""What residual networks are made of: units, shortcuts, stages, the head; and checks of arguments.

Axis names: batch, height, width, channels; `make` is the network's `factories.Layers`.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from .factories import Layers


def basic(x, filters, strides, make: Layers):
    """Two 3x3 convolutions, BN and activation between them."""
    x = make.conv(filters, 3, strides)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 3)(x)


def bottleneck(
    x, filters, strides, make: Layers, *, strided="3x3", inner=0.25, groups=1, bias=False
):
    """1x1 to `inner` x filters, 3x3 in `groups`, 1x1 back, BN and activation between them.

    `strided` says which of the convolutions has the stride: "1x1" (He et al. 2015) or "3x3".
    `bias`: of the last one, which BN need not follow.
    """
    width = int(filters * inner)
    x = make.conv(width, 1, strides if strided == "1x1" else 1)(x)
    x = make.act()(make.norm()(x))
    x = make.conv(width, 3, strides if strided == "3x3" else 1, groups)(x)
    x = make.act()(make.norm()(x))
    return make.conv(filters, 1, use_bias=bias)(x)


BLOCKS = {"basic": basic, "bottleneck": bottleneck}


def _projection(x, filters, strides, make, bias=False):
    return make.conv(filters, 1, strides, use_bias=bias)(x)


def _projection_bn(x, filters, strides, make):
    return make.norm()(make.conv(filters, 1, strides)(x))


def _pool_projection_bn(x, filters, strides, make):  # ResNet-D: no pixel is left out
    x = make.average_pool(strides, strides)(x) if strides > 1 else x
    return make.norm()(make.conv(filters, 1)(x))


def _pool_pad(x, filters, strides, make):
    x = make.average_pool(strides, strides)(x) if strides > 1 else x
    return make.pad_channels(filters)(x)


def _stride_pad(x, filters, strides, make):  # He et al.'s option A: keep every other pixel
    return make.pad_channels(filters)(_every(strides, make)(x) if strides > 1 else x)


def _every(strides, make):
    return make.average_pool(1, strides)


SHORTCUTS = {
    "projection": _projection,
    "projection_bias": partial(_projection, bias=True),
    "projection_bn": _projection_bn,
    "pool_projection_bn": _pool_projection_bn,
    "pool_pad": _pool_pad,
    "stride_pad": _stride_pad,
}


class Stage(NamedTuple):
    """Units of one width; one of them strides."""

    filters: int
    units: int
    strides: int


class Residual(NamedTuple):
    """What all residual units of one network have in common."""

    block: Callable  # (x, filters, strides, make), e.g. `basic`
    shortcut: str  # where the width changes: a name of SHORTCUTS
    preactivation: bool = False  # BN and activation before the convolutions, not after
    shared: bool = True  # where the width changes, pre-activation is for the shortcut as well
    active_stem: bool = True  # the stem activates: the first unit need not
    strides_last: bool = False  # a stage's last unit strides, not its first
    final_survival: float = 1.0  # of stochastic depth: falls linearly, unit by unit, to this


class Unit(NamedTuple):
    """One residual unit's place in the network."""

    filters: int
    strides: int
    survival: float
    active: bool  # its input is activated already
    name: str | None  # of its last layer: `stage{n}` at the end of stage n


def residual_stages(x, stages, net: Residual, make: Layers):
    """All units of all stages; the last layer of stage n is called `stage{n}`."""
    total, index = sum(stage.units for stage in stages), 0
    for number, (filters, units, strides) in enumerate(stages, 1):
        for position in range(units):
            strides_here = position == (units - 1 if net.strides_last else 0)
            unit = Unit(
                filters,
                strides if strides_here else 1,
                survival=1 - (index + 1) / total * (1 - net.final_survival),
                active=not net.preactivation or (net.active_stem and index == 0),
                name=f"stage{number}" if position == units - 1 else None,
            )
            x = _residual_unit(x, unit, net, make)
            index += 1
    return x


def _residual_unit(x, unit, net, make):
    widens = x.shape[make.axis] != unit.filters
    if widens and net.shared and not unit.active:
        x, unit = make.act()(make.norm()(x)), unit._replace(active=True)
    if widens:
        shortcut = SHORTCUTS[net.shortcut](x, unit.filters, unit.strides, make)
    else:
        shortcut = _every(unit.strides, make)(x) if unit.strides > 1 else x
    name = unit.name if net.preactivation else None
    if unit.survival == 1:
        x = make.add(name=name)([shortcut, _branch(x, unit, net, make)])
    else:
        inner = tf.keras.Input(x.shape[1:], dtype=x.dtype)
        branch = tf.keras.Model(inner, _branch(inner, unit, net, make))
        x = make.stochastic(branch, unit.survival, name=name)([x, shortcut])
    return x if net.preactivation else make.act(name=unit.name)(x)


def _branch(x, unit, net, make):
    x = x if unit.active else make.act()(make.norm()(x))
    x = net.block(x, unit.filters, unit.strides, make)
    return x if net.preactivation else make.norm()(x)


def three_stages(widths, units: int) -> list[Stage]:
    """Stages of as many units each; the second and third halve the sides."""
    return [
        Stage(filters, units, strides) for filters, strides in zip(widths, (1, 2, 2), strict=True)
    ]


def cifar(x, stages, net: Residual, num_classes, make: Layers, stem=16):
    """Images to logits through a 3x3 stem of `stem` filters, the stages and the head."""
    x = make.conv(stem, 3)(x)
    if net.active_stem:
        x = make.act()(make.norm()(x))
    x = residual_stages(x, stages, net, make)
    if net.preactivation:
        x = make.act()(make.norm()(x))
    return classifier(x, num_classes, make)


def classifier(x, num_classes, make: Layers):
    """Global average, called `features`, and dense layer: float32 `logits` (batch, num_classes)."""
    x = make.global_average(name="features")(x)
    return make.to_float32(1.0, name="logits")(make.dense(num_classes)(x))


def images(input_shape, data_format, native: int, smallest: int):
    """The network's input, `native` x `native` x 3 if no shape is given.

    Raises ValueError if a side is under `smallest` pixels, or the shape isn't one of the layout.
    """
    channels_last = data_format == "NHWC"
    native_shape = (native, native, 3) if channels_last else (3, native, native)
    shape = tuple(native_shape if input_shape is None else input_shape)
    sides = shape[:2] if channels_last else shape[1:]
    if len(shape) != 3 or any(side is not None and side < smallest for side in sides):
        order = "(height, width, channels)" if channels_last else "(channels, height, width)"
        raise ValueError(
            f"`input_shape` should be {order} in {data_format}, sides of {smallest} pixels at "
            f"least. Received: input_shape={shape}"
        )
    return tf.keras.Input(shape, name="images")


def network(inputs, outputs, name) -> tf.keras.Model:
    """The Keras model, however deep: tf-keras walks back from the outputs by recursion."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))  # ResNet-1202 takes 5,000
    try:
        return tf.keras.Model(inputs, outputs, name=name)
    finally:
        sys.setrecursionlimit(limit)


def one_of(choices, **argument):
    """Raises ValueError unless the argument is one of the choices."""
    ((name, value),) = argument.items()
    if value not in choices:
        raise ValueError(f"`{name}` should be one of {list(choices)}. Received: {name}={value!r}")


def in_unit_interval(**argument):
    """Raises ValueError unless the argument is in (0, 1]."""
    ((name, value),) = argument.items()
    if not 0 < value <= 1:
        raise ValueError(f"`{name}` should be in (0, 1]. Received: {name}={value}")


def units_per_stage(depth, step: int, beside: int, what: str) -> int:
    """The n of a network of `step` n + `beside` layers. Raises ValueError if there is none."""
    units, rest = divmod(depth - beside, step)
    if units < 1 or rest:
        raise ValueError(
            f"`depth` should be {step}n+{beside} {what}, n >= 1. Received: depth={depth}"
        )
    return units
