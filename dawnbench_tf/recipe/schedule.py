"""Schedule: the learning rate's factor as a function of the epoch."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting


@dataclass(frozen=True)
class Schedule:
    """Learning-rate schedule: factors of `learning_rate` by epoch. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "optimizer and schedule"
    form: str = setting(
        "constant",
        "learning-rate schedule, a factor of learning_rate: constant (1), steps (each of "
        "schedule_factors until its epoch in schedule_epochs), linear (interpolated between the "
        "points (epoch, factor)), cosine or quadratic (from 1 down to 0, after a linear warmup of "
        "schedule_epochs[0] epochs)",
        choices=("constant", "steps", "linear", "cosine", "quadratic"),
        flag="schedule",
    )
    epochs: tuple[float, ...] = setting(
        (),
        "epochs at which the schedule's factor changes (see --schedule), comma-separated; may be "
        "fractions",
        low=0,
        flag="schedule_epochs",
    )
    factors: tuple[float, ...] = setting(
        (),
        "factors of the learning rate (see --schedule), comma-separated",
        low=0,
        flag="schedule_factors",
    )

    def __post_init__(self) -> None:
        check(self)
        epochs, factors = self.epochs, self.factors
        if list(epochs) != sorted(set(epochs)):
            refuse("schedule_epochs", epochs, "should increase")
        # For each form: whether the counts are valid, and the rule that an error states.
        decay = (len(epochs) <= 1 and not factors, "takes at most one of schedule_epochs")
        fits, rule = {
            "constant": (not epochs and not factors, "takes neither schedule_epochs nor _factors"),
            "steps": (
                len(factors) == len(epochs) + 1,
                "takes one factor more than schedule_epochs",
            ),
            "linear": (
                0 < len(factors) == len(epochs),
                "takes a factor for each of schedule_epochs",
            ),
            "cosine": decay,
            "quadratic": decay,
        }[self.form]
        if factors and not any(factors):
            refuse("schedule_factors", factors, "one of them should be over 0")
        if not fits:
            counts = f"{len(epochs)} schedule_epochs and {len(factors)} schedule_factors"
            refuse("schedule", self.form, f"{rule}; found {counts}")
