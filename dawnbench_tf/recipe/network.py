"""Network: arguments of the model that a recipe sets."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.settings import check, setting


@dataclass(frozen=True)
class Network:
    """Arguments of the model. Raises Refusal."""

    GROUP: ClassVar[str] = "images"
    final_survival: float = setting(
        0.0,
        "stochastic depth, in CIFAR ResNets: survival probability of the last unit, from 1 at the "
        "first; 0: the network's own",
        low=0,
        high=1,
    )
    zero_last_norm: bool = setting(
        False, "the scale of each residual branch's last BN starts at 0, in ResNets for ImageNet"
    )
    auxiliary_weight: float = setting(
        0.0, "weight of an auxiliary head's loss beside the head's own, in AmoebaNets", low=0
    )
    synchronized_batch_norm: bool = setting(
        True,
        "BN statistics over the global batch, as on one device; if not, over each replica's share",
    )

    def __post_init__(self):
        check(self)
