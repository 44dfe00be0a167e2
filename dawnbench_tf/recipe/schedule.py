"""Schedule: the learning rate's factor, and the momentum, by epoch; the phases of training."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, NamedTuple

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, documented, setting


def steps_before(epochs: float, epoch_steps: Sequence[int]) -> float:
    """Returns the number of steps in the first `epochs` epochs, which may end inside one.

    `epoch_steps` has the steps of each epoch, at least of one; later epochs have the last number.

    >>> steps_before(2.5, [10]), steps_before(2.5, [10, 10, 20])
    (25.0, 30.0)
    """
    whole = int(epochs)
    missing = whole + 1 - len(epoch_steps)
    *before, last = [*epoch_steps, *[epoch_steps[-1]] * missing][: whole + 1]
    return sum(before) + (epochs - whole) * last


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


@documented
@dataclass(frozen=True)
class Schedule:
    """Schedule of the learning rate and the momentum, by epoch. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "optimizer and schedule"
    form: str = setting(
        "constant",
        "learning-rate schedule, a factor of learning_rate: constant (1), steps (each of "
        "schedule_factors until its epoch in schedule_epochs), linear (interpolated by steps "
        "between the points (epoch, factor)), cosine_points (the same, joined by half periods of "
        "a cosine, as in fastai's one-cycle policy), cosine or quadratic (from 1 down to 0, after "
        "a linear warmup of schedule_epochs[0] epochs)",
        choices=("constant", "steps", "linear", "cosine_points", "cosine", "quadratic"),
        flag="schedule",
    )
    epochs: tuple[float, ...] = setting(
        (),
        "epochs at which the schedule's factor changes (see --schedule), comma-separated; may be "
        "fractions",
        flag="schedule_epochs",
        needs="schedule",
    )
    factors: tuple[float, ...] = setting(
        (),
        "factors of the learning rate (see --schedule), comma-separated",
        flag="schedule_factors",
        needs="schedule",
    )
    momenta: tuple[float, ...] = setting(
        (),
        "momentum schedule (one-cycle policy): momentum of sgd, lars and muon's kernels, or beta_1 "
        "of adam and adamw, at each of schedule_epochs, comma-separated; interpolated like the "
        "factors; default: constant, --momentum, or 0.9 for beta_1",
        high=1,
        flag="schedule_momenta",
        needs="schedule=linear,cosine_points",
    )

    def __post_init__(self) -> None:
        check(self)
        epochs, factors = self.epochs, self.factors
        if list(epochs) != sorted(set(epochs)):
            refuse("schedule_epochs", epochs, "should increase")
        # For each form: whether the counts are valid, and the rule that an error states.
        rule = "takes at most one of schedule_epochs (--schedule_factors= leaves a recipe's out)"
        decay = (len(epochs) <= 1 and not factors, rule)
        fits_points = 0 < len(factors) == len(epochs)
        between = (fits_points, "takes a factor for each of schedule_epochs")
        after = (len(factors) == len(epochs) + 1, "takes one factor more than schedule_epochs")
        fits, rule = {
            "constant": (True, ""),
            "steps": after,
            "linear": between,
            "cosine_points": between,
            "cosine": decay,
            "quadratic": decay,
        }[self.form]
        if self.momenta and len(self.momenta) != len(epochs):
            refuse("schedule_momenta", self.momenta, "should be one for each of schedule_epochs")
        if factors and not any(factors):
            refuse("schedule_factors", factors, "one of them should be over 0")
        if not fits:
            counts = f"{len(epochs)} schedule_epochs and {len(factors)} schedule_factors"
            refuse("schedule", self.form, f"{rule}; found {counts}")

    @property
    def idle(self) -> list[tuple[float, float]]:
        """The spans of epochs in which an interpolated schedule is 0 before it rises again."""
        if self.form not in ("linear", "cosine_points"):
            return []
        points = (0.0, self.factors[0]), *zip(self.epochs, self.factors, strict=True)
        alike = groupby(points, lambda point: point[1] == 0)
        zeros = [[epoch for epoch, _ in group] for is_zero, group in alike if is_zero]
        return [(own[0], own[-1]) for own in zeros if own[-1] <= self.zero_from]

    @property
    def zero_from(self) -> float:
        """The epoch from which an interpolated schedule stays at 0; infinity if it does not."""
        if self.form not in ("linear", "cosine_points"):
            return math.inf
        last = max(number for number, factor in enumerate(self.factors) if factor)
        return self.epochs[last + 1] if last + 1 < len(self.epochs) else math.inf

    def zero_at(self, epoch: float) -> "Schedule":
        """Returns the schedule stretched so that it stays at 0 from `epoch` on."""
        return replace(self, epochs=tuple(each * epoch / self.zero_from for each in self.epochs))
