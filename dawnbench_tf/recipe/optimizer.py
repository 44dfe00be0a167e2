"""Optimizer: algorithm, rates, momentum, clipping, weight decay; Average: of the weights."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import Checked, check, documented, setting

_NAMES = ("sgd", "lars", "muon", "rmsprop", "adam", "adamw", "adamax", "adadelta")
_OWN_RATES = ("sgd", "lars", "muon")  # optimizers with learning rates of single weights
_RATED = f"optimizer={','.join(_OWN_RATES)}"
# Optimizers that use a setting, where not all do: a change of it for another is refused. A row's
# own value is not, so that `--optimizer` alone can be changed.
USED_BY = {
    "momentum": (*_OWN_RATES, "rmsprop"),
    "trust": ("lars",),
    "beta_2": ("adam", "adamw"),
    "epsilon": ("rmsprop", "adam", "adamw", "adamax", "adadelta"),
    "nesterov": _OWN_RATES,
    "rate_in_velocity": ("sgd", "muon"),
}


@documented
@dataclass(frozen=True)
class Optimizer:
    """Optimizer and its settings. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "optimizer and schedule"
    name: str = setting("sgd", "optimization algorithm", choices=_NAMES, flag="optimizer")
    learning_rate: float = setting(
        0.1, "base learning rate, which the schedule's factors multiply", above=0
    )
    scale_learning_rate_from: int = setting(
        0, "linear scaling rule: multiply learning_rate by batch_size / N; 0: do not scale"
    )
    momentum: float = setting(0.9, "momentum m of sgd, lars, muon and rmsprop", high=1)
    trust: float = setting(
        0.001,
        "LARS trust coefficient: each kernel's learning rate is multiplied by this x "
        "|w| / (|g| + d |w|), d the weight decay",
        above=0,
    )
    beta_2: float = setting(
        0.999, "decay per step of the running mean of squared gradients, of adam and adamw", high=1
    )
    epsilon: float = setting(
        1e-7,
        "small constant in the update's denominator, for numerical stability; added to the mean "
        "squared gradient (rmsprop, adadelta), to its root (adam, adamw) or to the largest "
        "gradient (adamax)",
        above=0,
    )
    clip_norm: float = setting(
        0.0,
        "gradient clipping: maximum L2 norm of all gradients together, including sgd's weight "
        "decay; 0: no clipping",
    )
    nesterov: bool = setting(False, "Nesterov momentum; for sgd, lars and muon")
    rate_in_velocity: bool = setting(
        False,
        "form of momentum: v = m v - lr g, w += v (Keras, Page); if not, v = m v + g, w -= lr v "
        "(TensorFlow 1, PyTorch); lars always uses the first, muon's kernels the "
        "second. They differ when lr changes",
    )
    weight_decay: float = setting(
        0.0,
        "weight decay d: adds the L2 penalty d / 2 x (sum of squared weights) to the loss; adamw "
        "instead subtracts lr x d x w at each step (decoupled), lars adds d x w to the gradient; "
        "with muon d is that of the weights that SGD trains",
    )
    decays: str = setting(
        "kernels",
        "weights that decay: kernels and tables of vectors (kernels), also biases (all_but_norms), "
        "or also BN's scales and shifts, as with PyTorch's weight_decay (all)",
        choices=("kernels", "all_but_norms", "all"),
    )
    shift_rate: float = setting(
        1.0,
        "learning-rate multiplier of BN's shifts (beta), whose weight decay is divided by it",
        above=0,
        needs=_RATED,
    )
    whitening_bias_epochs: float = setting(
        0.0, "epochs after which a whitening layer's bias is frozen; 0: never", needs=_RATED
    )
    whitening_bias_rate: float = setting(
        1.0,
        "learning-rate multiplier of a whitening layer's bias, whose weight decay is divided by it",
        above=0,
        needs=_RATED,
    )
    whitening_bias_falls: bool = setting(
        False,
        "the rate of a whitening layer's bias falls linearly, to 0 at whitening_bias_epochs, in "
        "place of the schedule",
        needs="whitening_bias_epochs",
    )
    sgd_rate: float = setting(
        1.0,
        "learning-rate multiplier of the weights that SGD trains: all but kernels before the head",
        above=0,
        needs="optimizer=muon",
    )
    sgd_momentum: float = setting(
        0.9, "momentum of the weights that SGD trains", high=1, needs="optimizer=muon"
    )
    kernel_decay: float = setting(
        0.0,
        "decay d of the kernels that Muon trains: each step subtracts lr x d x w from a kernel w",
        needs="optimizer=muon",
    )
    kernel_norm_steps: tuple[int, ...] = setting(
        (),
        "steps from one normalization of a kernel to the next, at the start and at the end of "
        "training, comma-separated; linear between; a normalized kernel has the L2 norm "
        "sqrt(filters); 1,1: at each step; default: never",
        low=1,
        needs="optimizer=muon",
    )
    newton_schulz_steps: int = setting(
        5, "Newton-Schulz iterations of a kernel's update", low=1, high=20, needs="optimizer=muon"
    )
    newton_schulz: tuple[float, ...] = setting(
        (3.4445, -4.7750, 2.0315),
        "coefficients a, b, c of a Newton-Schulz iteration, X <- a X + b X X'X + c X X'X X'X; "
        "comma-separated",
        low=-math.inf,
        needs="optimizer=muon",
    )
    backbone_rate: float = setting(
        1.0,
        "learning-rate multiplier of all pretrained parts, against the head's 1",
        above=0,
        group="fine-tuning",
    )
    layer_rate_decay: float = setting(
        1.0,
        "layer-wise learning-rate decay d: the multiplier of the part N before the head is "
        "backbone_rate x d^N; parts as in --frozen_parts",
        above=0,
        high=1,
        group="fine-tuning",
    )

    @property
    def penalty(self) -> float:
        """The weight decay d that the loss includes: 0 with lars and adamw, which decay weights."""
        return 0.0 if self.name in ("lars", "adamw") else self.weight_decay

    def __post_init__(self) -> None:
        check(self)
        for name, counts in (("kernel_norm_steps", (0, 2)), ("newton_schulz", (3,))):
            value = getattr(self, name)
            if len(value) not in counts:
                refuse(name, value, f"should be {counts[-1]} numbers")


@documented
@dataclass(frozen=True)
class Average(Checked):
    """Exponential moving average of weights and BN statistics. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "averages"
    decay: float = setting(
        0.0,
        "decay of an exponential moving average of weights and BN statistics, per step; the "
        "average is evaluated in place of the weights; 0: no average",
        high=0.99999,
        flag="average",
    )
    every: int = setting(
        1,
        "N steps between updates of the moving average, whose decay then is average^N",
        low=1,
        flag="average_every",
        needs="average",
    )
    ramp: bool = setting(
        False,
        "limit the decay per step to (1 + step) / (10 + step), so that the average forgets the "
        "initial weights soon",
        flag="average_ramp",
        needs="average",
    )
    lookahead: bool = setting(
        False,
        "lookahead optimizer: each update also sets the weights to their average, whose decay is "
        "multiplied by (step / total steps)^3",
        needs="average",
    )
