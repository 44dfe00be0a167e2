"""AmoebaNet-D for ImageNet: two cells found by evolutionary search, stacked as in NASNet.

Real et al. 2018 (arXiv 1802.01548), as in the code of Google's DAWNBench entries (tensorflow/tpu,
models/official/amoeba_net). That code's normal cell joins other states than the paper's figure.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from . import checks
from .factories import Layers
from .layers import broadcast
from .layers.image import WithAuxiliary
from .networks import Arguments, Family


class Cell(NamedTuple):
    """A cell: each pair of operations adds a state, the sum of both operations' outputs.

    State 0 is the previous cell's output, state 1 that of the cell before it; pair i makes state
    i + 2.
    """

    pairs: tuple[tuple[tuple[int, str], tuple[int, str]], ...]  # of (state, operation)
    joined: tuple[int, ...]  # states whose concatenation is the cell's output


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
    """Builds an AmoebaNet-D up to its feature maps: the last one and the auxiliary head's.

    Args:
      cells: number of normal cells, a multiple of 3. Three stacks have cells / 3 each, and a
        reduction cell between them. (The paper's N is cells / 3.)
      filters: filters of the first stack (the paper's F), a multiple of 16; doubled in each
        following stack.
      stem_filters: filters of the first convolution.
      dropout: share of the features that training drops, in [0, 1).
      auxiliary: whether to train a second head on the second stack's last map. In training the
        model's output then is (batch, 2, classes), the auxiliary logits last.

    Returns:
      Two feature maps: that of the last cell, and that of the second stack's last cell.
    """
    for name, value, unit in (("cells", cells, 3), ("filters", filters, 16)):
        if value < unit or value % unit:
            raise ValueError(f"`{name}` should be a multiple of {unit}. Received: {name}={value}")
    checks.below_one(dropout=dropout)
    make = layers(padding="same")
    per_stack = cells // 3
    plan = [(REDUCTION, filters // 4), (REDUCTION, filters // 2)]
    for stack in range(3):
        plan += [(REDUCTION, 2**stack * filters)] if stack else []
        plan += [(NORMAL, 2**stack * filters)] * per_stack
    stem = make.norm()(make.conv(stem_filters, 3, 2, padding="valid")(images))
    # Every cell reads the outputs of the two cells before it; the stem is the first output.
    outputs, last = [None, stem], NORMAL
    for cell, width in plan:
        outputs.append(_apply(cell, outputs[-1], outputs[-2], last is REDUCTION, width, make))
        last = cell
    # Index of the second stack's last cell: behind None, the stem, three reductions, two stacks.
    middle = 4 + 2 * per_stack
    return [make.act()(outputs[index]) for index in (-1, middle)]


def _apply(
    cell: Cell, x: tf.Tensor, previous: tf.Tensor | None, halved: bool, filters: int, make: Layers
) -> tf.Tensor:
    """Returns a cell's output from x, that of the last cell, and `previous`, of the cell before."""
    states = [_convolve(x, filters, 1, 1, make)]
    if previous is None:  # x is the stem
        previous = x
    elif halved:  # the last cell was a reduction: `previous` has twice the sides of x
        previous = _halve(previous, filters, make)
    elif previous.shape[make.axis] != filters:
        previous = _convolve(previous, filters, 1, 1, make)
    states.append(previous)
    for pair in cell.pairs:
        terms = []
        for state, operation in pair:
            strides = 2 if cell is REDUCTION and state < 2 else 1
            terms.append(OPERATIONS[operation](states[state], filters, strides, make))
        states.append(make.add()(terms))
    return make.concatenate()([states[state] for state in cell.joined])


def _halve(x: tf.Tensor, filters: int, make: Layers) -> tf.Tensor:
    """Halves the sides: half of the filters read the even pixels, half the odd ones."""
    x = make.act()(x)
    halves = [make.conv(filters // 2, 1, 2)(pixels) for pixels in (x, make.shift()(x))]
    return make.norm()(make.concatenate()(halves))


def _convolve(
    x: tf.Tensor, filters: int, size: int | tuple[int, int], strides: int, make: Layers
) -> tf.Tensor:
    return make.norm()(make.conv(filters, size, strides)(make.act()(x)))


def _bottleneck(
    x: tf.Tensor, filters: int, strides: int, make: Layers, sizes: Sequence[int | tuple[int, int]]
) -> tf.Tensor:
    x = _convolve(x, filters // 4, 1, 1, make)
    for size in sizes:
        x = _convolve(x, filters // 4, size, strides, make)
    return _convolve(x, filters, 1, 1, make)


def _pool(
    x: tf.Tensor, filters: int, strides: int, make: Layers, pool: str, size: int
) -> tf.Tensor:
    x = getattr(make, pool)(size, strides)(x)
    if x.shape[make.axis] == filters:
        return x
    return make.norm()(make.conv(filters, 1)(x))


OPERATIONS: dict[str, Callable[..., tf.Tensor]] = {  # each: (x, filters, strides, make)
    "identity": lambda x, filters, strides, make: x,
    "1x1": lambda x, filters, strides, make: _convolve(x, filters, 1, strides, make),
    "3x3": partial(_bottleneck, sizes=(3,)),
    "1x7_7x1": partial(_bottleneck, sizes=((1, 7), (7, 1))),  # used with stride 1 only
    "max_pool_2x2": partial(_pool, pool="max_pool", size=2),
    "max_pool_3x3": partial(_pool, pool="max_pool", size=3),
    "average_pool_3x3": partial(_pool, pool="average_pool", size=3),
}


def head(maps: list[tf.Tensor], num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    """Builds the head on the maps of `body`, and the auxiliary head if `args` ask for it."""
    last, middle = maps
    features = make.global_average(name="features")(last)
    # Dense kernels, as convolutions', have a variance of 2 by fan-out: network_arg_scope.
    dense = make.dense(num_classes, kernel_scale=2 * features.shape[-1] / num_classes)
    logits = dense(make.dropout(args.get("dropout", 0.5))(features))
    if not args.get("auxiliary"):
        return make.to_float32(1.0, name="logits")(logits)
    both = [make.to_float32(1.0)(x) for x in (logits, _auxiliary(middle, num_classes, make))]
    return WithAuxiliary(dtype=broadcast.widest(make.dtype), name="logits")(both)


def _auxiliary(x: tf.Tensor, num_classes: int, make: Layers) -> tf.Tensor:
    """Builds an auxiliary head as in Inception, with 0.4 of its filters: 51 and 307."""
    sides = _sides(x, make)
    if any(side is None or side < 5 for side in sides):
        raise ValueError(
            "`auxiliary` should be False unless the sides of `input_shape` are known and at least "
            f"80 pixels. Received: auxiliary=True, and a map of {sides}"
        )
    x = make.average_pool(5, 3, padding="valid")(x)
    x = make.act()(make.norm()(make.conv(51, 1)(x)))
    x = make.act()(make.norm()(make.conv(307, _sides(x, make), padding="valid")(x)))
    return make.dense(num_classes, kernel_scale=2 * 307 / num_classes)(make.global_average()(x))


def _sides(x: tf.Tensor, make: Layers) -> tuple[int | None, ...]:
    return tuple(x.shape[axis] for axis in (1, 2, 3) if axis != make.axis % 4)


FAMILY = Family(body, head=head, smallest_side=lambda args: 80 if args.get("auxiliary") else 32)
