"""Phase: the epochs of one batch size, of one size of images in memory, of one set of weights."""

import math
from collections.abc import Iterable
from typing import NamedTuple


class Phase(NamedTuple):
    """A part of training with one batch size, one set of trained weights and, in memory, one size.

    Attributes:
      start: its first epoch, from 0 on.
      end: the epoch after its last.
      batch_size: global batch size.
    """

    start: int
    end: int
    batch_size: int


def split(changes: Iterable[int], epochs: float, first_epoch: int) -> list[tuple[int, int]]:
    """Returns first epoch, and epoch after the last, of each phase from an epoch on.

    Args:
      changes: epochs at which a phase begins, besides 0.
      epochs: number of epochs of the training; may be a fraction.
      first_epoch: index from 0.

    >>> split([3, 5], epochs=4.5, first_epoch=1)
    [(1, 3), (3, 5)]
    """
    last = math.ceil(epochs)
    later = sorted({change for change in changes if first_epoch < change < last})
    starts = [first_epoch, *later] if first_epoch < last else []
    return list(zip(starts, [*later, last], strict=False))
