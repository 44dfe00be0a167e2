"""Average: exponential moving average of the weights, for evaluation or lookahead."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, documented, flag_name, setting, setting_fields


@documented
@dataclass(frozen=True)
class Average:
    """Exponential moving average of weights and BN statistics. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "averages"
    decay: float = setting(
        0.0,
        "decay of an exponential moving average of weights and BN statistics, per step; the "
        "average is evaluated in place of the weights; 0: no average",
        low=0,
        high=0.99999,
        flag="average",
    )
    every: int = setting(
        1,
        "N steps between updates of the moving average, whose decay then is average^N",
        low=1,
        flag="average_every",
    )
    ramp: bool = setting(
        False,
        "limit the decay per step to (1 + step) / (10 + step), so that the average forgets the "
        "initial weights soon",
        flag="average_ramp",
    )
    lookahead: bool = setting(
        False,
        "lookahead optimizer: each update also sets the weights to their average, whose decay is "
        "multiplied by (step / total steps)^3",
    )

    def __post_init__(self) -> None:
        check(self)
        for item in setting_fields(self):
            value = getattr(self, item.name)
            if value != item.default and not self.decay:
                refuse(flag_name(item), value, "requires --average")
