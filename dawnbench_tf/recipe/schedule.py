"""Schedule: the factor of the learning rate over the epochs."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting


@dataclass(frozen=True)
class Schedule:
    """How the learning rate is scaled in the course of training. Raises Refusal."""

    GROUP: ClassVar[str] = "optimizer and schedule"
    form: str = setting(
        "constant",
        "how learning_rate is scaled: steps (each of schedule_factors until its epoch in "
        "schedule_epochs), linear (between points (epoch, factor)), cosine or quadratic (to 0, "
        "after a linear warmup of schedule_epochs[0])",
        choices=("constant", "steps", "linear", "cosine", "quadratic"),
        flag="schedule",
    )
    epochs: tuple[float, ...] = setting(
        (), "epochs of the schedule, comma-separated", low=0, flag="schedule_epochs"
    )
    factors: tuple[float, ...] = setting(
        (), "factors of the schedule, comma-separated", low=0, flag="schedule_factors"
    )

    def __post_init__(self):
        check(self)
        epochs, factors = self.epochs, self.factors
        if list(epochs) != sorted(set(epochs)):
            refuse("schedule_epochs", epochs, "should rise")
        falling = (len(epochs) <= 1 and not factors, "takes one of schedule_epochs at most")
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
            "cosine": falling,
            "quadratic": falling,
        }[self.form]
        if factors and not any(factors):
            refuse("schedule_factors", factors, "one of them should be over 0")
        if not fits:
            counts = f"{len(epochs)} schedule_epochs and {len(factors)} schedule_factors"
            refuse("schedule", self.form, f"{rule}; found {counts}")
