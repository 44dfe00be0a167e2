"""Average: a moving average of the weights, beside or in place of them."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, flag_name, setting, setting_fields


@dataclass(frozen=True)
class Average:
    """The moving average that is evaluated. Raises Refusal."""

    GROUP: ClassVar[str] = "averages"
    decay: float = setting(
        0.0,
        "evaluate a moving average of weights and BN statistics that keeps this share at each "
        "step; 0: them as they are",
        low=0,
        high=0.99999,
        flag="average",
    )
    every: int = setting(
        1,
        "steps between updates of the average, which then keeps average to this power",
        low=1,
        flag="average_every",
    )
    ramp: bool = setting(
        False,
        "the average keeps (1 + step) / (10 + step) while that is less: it forgets the start",
        flag="average_ramp",
    )
    lookahead: bool = setting(
        False,
        "lookahead: at each update the weights become their average, whose weight is average x "
        "(step / steps)^3",
    )

    def __post_init__(self):
        check(self)
        for item in setting_fields(self):
            value = getattr(self, item.name)
            if value != item.default and not self.decay:
                refuse(flag_name(item), value, "should have --average as well")
