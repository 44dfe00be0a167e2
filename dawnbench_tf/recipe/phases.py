"""Phase: the epochs of one batch size, of one size of images in memory, of one set of weights."""

import math
from collections.abc import Iterable
from typing import NamedTuple


class Phase(NamedTuple):
    """A part of training with one batch size, one set of weights and, in memory, one image size."""

    start: int  # first epoch, from 0 on
    end: int  # the epoch after its last
    batch_size: int  # global


def split(changes: Iterable[int], epochs: float, first_epoch: int) -> list[tuple[int, int]]:
    """Returns (first epoch, epoch after the last) of each phase from `first_epoch` on.

    `changes` are the epochs at which a phase begins, besides 0; `epochs` may be a fraction.

    >>> split([3, 5], epochs=4.5, first_epoch=1)
    [(1, 3), (3, 5)]
    """
    last = math.ceil(epochs)
    later = sorted({change for change in changes if first_epoch < change < last})
    starts = [first_epoch, *later] if first_epoch < last else []
    return list(zip(starts, [*later, last], strict=False))
