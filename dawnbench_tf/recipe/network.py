"""Network: arguments of the model that a recipe sets."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.settings import check, setting


@dataclass(frozen=True)
class Network:
    """Model arguments that a recipe sets. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "images"
    final_survival: float = setting(
        0.0,
        "stochastic depth, for CIFAR ResNets: survival probability of the last residual unit; it "
        "falls linearly from 1 at the input; 0: the model's own value",
        low=0,
        high=1,
    )
    zero_last_norm: bool = setting(
        False,
        "initialize the scale (gamma) of the last BN of each residual branch to 0; for ResNets "
        "for ImageNet",
    )
    auxiliary_weight: float = setting(
        0.0,
        "weight of an auxiliary head's loss, which is added to the main loss; for AmoebaNets; 0: "
        "no auxiliary head",
        low=0,
    )
    synchronized_batch_norm: bool = setting(
        True,
        "compute BN statistics over the global batch, as on one device; if not, over each "
        "replica's part of it, which needs less communication",
    )

    def __post_init__(self) -> None:
        check(self)
