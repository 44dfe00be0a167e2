"""AmoebaNet-D: two cells that evolution found, stacked as NASNet's are.

Real et al. 2018 (arXiv 1802.01548); as in Google's code of its DAWNBench entries (tensorflow/tpu,
models/official/amoeba_net), whose normal cell joins other states than the paper's figure.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from . import checks
from .factories import Layers
from .layers.image import WithAuxiliary
from .networks import Arguments, Family


class Cell(NamedTuple):
    """Operations on states: 0 is the last cell's output, 1 that of the one before it."""

    pairs: tuple[tuple[tuple[int, str], tuple[int, str]], ...]  # (state, operation): their sum
    joined: tuple[int, ...]  # states that are the cell's output, concatenated


NORMAL = Cell(
    pairs=(
        ((1, "1x1"), (1, "max_pool_3x3")),
        ((1, "identity"), (0, "1x7_7x1")),
        ((0, "1x1"), (0, "1x7_7x1")),
        ((2, "max_pool_3x3"), (2, "identity")),
        ((1, "average_pool_3x3"), (5, "1x1")),
    ),
    joined=(0, 3, 4, 6),
)
REDUCTION = Cell(
    pairs=(
        ((0, "max_pool_2x2"), (0, "max_pool_3x3")),
        ((2, "identity"), (1, "3x3")),
        ((2, "1x7_7x1"), (2, "max_pool_3x3")),
        ((3, "identity"), (1, "max_pool_2x2")),
        ((2, "average_pool_3x3"), (3, "1x1")),
    ),
    joined=(4, 5, 6),
)


def body(
    images: tf.Tensor,
    layers: Callable[..., Layers],
    *,
    cells: int,
    filters: int,
    stem_filters: int = 32,
    dropout: float = 0.5,
    auxiliary: bool = False,
) -> list[tf.Tensor]:
    """An AmoebaNet-D, images to the last feature map, and to the one that an auxiliary head sees.

    Args:
      images: (batch, height, width, channels), or as the layout has it.
      layers: makes layer factories.
      cells: normal cells of the network, a multiple of 3: as many in each of three stacks, in
        front of each but the first a reduction. (The paper's N is of one stack.)
      filters: of the first stack (F), a multiple of 16; twice as many in each that follows.
      stem_filters: of the first convolution.
      dropout: share of the features that training drops, in [0, 1).
      auxiliary: whether a second head, on the second stack's last map, learns beside the first: in
        training the network's output then is (batch, 2, classes), the auxiliary logits last.

    Raises:
      ValueError: an argument is none of these, or an auxiliary head's map is unknown or too small.
    """
    _check(cells, filters, dropout)
    make = layers(padding="same")
    per_stack = cells // 3
    plan = [(REDUCTION, filters // 4), (REDUCTION, filters // 2)]
    for stack in range(3):
        plan += [(REDUCTION, 2**stack * filters)] if stack else []
        plan += [(NORMAL, 2**stack * filters)] * per_stack
    stem = make.norm()(make.conv(stem_filters, 3, 2, padding="valid")(images))
    outputs, last = [None, stem], NORMAL
    for cell, width in plan:
        outputs.append(_run(cell, outputs[-1], outputs[-2], last is REDUCTION, width, make))
        last = cell
    middle = 4 + 2 * per_stack  # the second stack's last, behind the stem and three reductions
    return [make.act()(outputs[place]) for place in (-1, middle)]


def _check(cells, filters, dropout):
    for name, value, unit in (("cells", cells, 3), ("filters", filters, 16)):
        if value < unit or value % unit:
            raise ValueError(f"`{name}` should be a multiple of {unit}. Received: {name}={value}")
    checks.below_one(dropout=dropout)


def _run(cell, x, before, halved, filters, make):
    """A cell's output, on the last one's and that of the one `before`, `halved` since or not."""
    states = [_convolved(x, filters, 1, 1, make), _fitted(x, before, halved, filters, make)]
    for pair in cell.pairs:
        terms = []
        for state, operation in pair:
            strides = 2 if cell is REDUCTION and state < 2 else 1
            terms.append(OPERATIONS[operation](states[state], filters, strides, make))
        states.append(make.add()(terms))
    return make.concatenate()([states[state] for state in cell.joined])


def _fitted(x, before, halved, filters, make):
    if before is None:
        return x
    if halved:
        return _halved(before, filters, make)
    if before.shape[make.axis] != filters:
        return _convolved(before, filters, 1, 1, make)
    return before


def _halved(x, filters, make):
    """Half the sides: one half of the filters sees the even pixels, one the odd ones."""
    x = make.act()(x)
    halves = [make.conv(filters // 2, 1, 2)(pixels) for pixels in (x, make.shift()(x))]
    return make.norm()(make.concatenate()(halves))


def _convolved(x, filters, size, strides, make):
    return make.norm()(make.conv(filters, size, strides)(make.act()(x)))


def _bottleneck(x, filters, strides, make, sizes):
    x = _convolved(x, filters // 4, 1, 1, make)
    for size in sizes:
        x = _convolved(x, filters // 4, size, strides, make)
    return _convolved(x, filters, 1, 1, make)


def _pooled(x, filters, strides, make, pool, size):
    x = getattr(make, pool)(size, strides)(x)
    if x.shape[make.axis] == filters:
        return x
    return make.norm()(make.conv(filters, 1)(x))


OPERATIONS: dict[str, Callable[..., tf.Tensor]] = {  # each: (x, filters, strides, make)
    "identity": lambda x, filters, strides, make: x,
    "1x1": lambda x, filters, strides, make: _convolved(x, filters, 1, strides, make),
    "3x3": partial(_bottleneck, sizes=(3,)),
    "1x7_7x1": partial(_bottleneck, sizes=((1, 7), (7, 1))),  # strides nowhere
    "max_pool_2x2": partial(_pooled, pool="max_pool", size=2),
    "max_pool_3x3": partial(_pooled, pool="max_pool", size=3),
    "average_pool_3x3": partial(_pooled, pool="average_pool", size=3),
}


def head(maps: list[tf.Tensor], num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    """Logits of the last map; in training, where `args` ask for it, and of the middle one.

    Args:
      maps: what `body` returns.
      num_classes: length of the logits.
      make: layer factories.
      args: of `body`; its defaults where they say nothing.

    Returns:
      float32 logits (batch, num_classes), or in training (batch, 2, num_classes).
    """
    last, middle = maps
    features = make.global_average(name="features")(last)
    logits = make.dense(num_classes)(make.dropout(args.get("dropout", 0.5))(features))
    if not args.get("auxiliary"):
        return make.to_float32(1.0, name="logits")(logits)
    both = [make.to_float32(1.0)(x) for x in (logits, _auxiliary(middle, num_classes, make))]
    return WithAuxiliary(dtype="float32", name="logits")(both)


def _auxiliary(x, num_classes, make):
    """Inception's head: 51 and 307 filters are 0.4 of its 128 and 768."""
    sides = _sides(x, make)
    if any(side is None or side < 5 for side in sides):
        raise ValueError(
            "`auxiliary` should be False unless the sides of `input_shape` are known and 80 pixels "
            f"at least. Received: auxiliary=True, and a map of {sides}"
        )
    x = make.average_pool(5, 3, padding="valid")(x)
    x = make.act()(make.norm()(make.conv(51, 1)(x)))
    x = make.act()(make.norm()(make.conv(307, _sides(x, make), padding="valid")(x)))
    return make.dense(num_classes)(make.global_average()(x))


def _sides(x, make):
    return tuple(x.shape[axis] for axis in (1, 2, 3) if axis != make.axis % 4)


FAMILY = Family(
    body,
    smallest=lambda args: {"cells": 3, "filters": 16, "dropout": 0.0},
    describe=lambda args: ("evolved cells", "the cell before", "ReLU, before"),
    head=head,
    smallest_side=lambda args: 80 if args.get("auxiliary") else 32,
)
