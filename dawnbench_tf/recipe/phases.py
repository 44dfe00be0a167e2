"""Phase: the epochs of one batch size."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from dawnbench_tf.refusals import refuse


class Phase(NamedTuple):
    """A part of training with one batch size.

    Attributes:
      start: its first epoch, from 0 on.
      end: the epoch after its last.
      batch_size: global batch size.
    """

    start: int
    end: int
    batch_size: int


def check_changes(later_batch_sizes: Sequence[int], batch_size_epochs: Sequence[int]) -> None:
    """Refuses epochs that do not increase, or that are not one for each later batch size."""
    if list(batch_size_epochs) != sorted(set(batch_size_epochs)):
        refuse("batch_size_epochs", batch_size_epochs, "should increase")
    if len(batch_size_epochs) != len(later_batch_sizes):
        expected = f"should be {len(later_batch_sizes)} epochs, one for each of later_batch_sizes"
        refuse("batch_size_epochs", batch_size_epochs, expected)


def split(
    batch_sizes: Sequence[int], changes: Sequence[int], epochs: float, first_epoch: int
) -> list[Phase]:
    """Returns the phases from an epoch on.

    Args:
      batch_sizes: all batch sizes, in order.
      changes: epochs of the changes, one fewer.
      epochs: number of epochs of the training; may be a fraction.
      first_epoch: index from 0.

    >>> split([128, 256, 512], [3, 5], epochs=4.5, first_epoch=1)
    [Phase(start=1, end=3, batch_size=128), Phase(start=3, end=5, batch_size=256)]
    """
    last = math.ceil(epochs)
    bounds = zip((0, *changes), (*changes, last), batch_sizes, strict=True)
    phases = (Phase(max(a, first_epoch), min(b, last), size) for a, b, size in bounds)
    return [phase for phase in phases if phase.start < phase.end]
