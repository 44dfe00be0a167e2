"""Optimizer: how gradients become updates."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting

_NAMES = ("sgd", "lars", "rmsprop", "adam", "adamw", "adamax", "adadelta")


@dataclass(frozen=True)
class Optimizer:
    """The optimizer and its settings. Raises Refusal."""

    GROUP: ClassVar[str] = "optimizer and schedule"
    name: str = setting("sgd", "optimizer", choices=_NAMES, flag="optimizer")
    learning_rate: float = setting(0.1, "learning rate that the schedule scales", above=0)
    scale_learning_rate_from: int = setting(
        0,
        "linear scaling: multiply learning_rate by batch_size / this many examples; 0: don't",
        low=0,
    )
    momentum: float = setting(0.9, "momentum of sgd, lars and rmsprop", low=0, high=1)
    trust: float = setting(
        0.001, "LARS trust coefficient: a kernel's rate is multiplied by this x |w| / |g|", above=0
    )
    epsilon: float = setting(
        1e-7,
        "added to what a step is divided by: squared gradients' mean (rmsprop), its root (adam, "
        "adamw, adadelta), their greatest (adamax)",
        above=0,
    )
    clip_norm: float = setting(
        0.0, "gradients are scaled down to this norm over all weights; 0: they are not", low=0
    )
    nesterov: bool = setting(False, "Nesterov momentum in sgd")
    rate_in_velocity: bool = setting(
        False,
        "momentum v = m v - lr g, w += v (Keras; Page); if not, v = m v + g, w -= lr v "
        "(TensorFlow 1, PyTorch); in lars always",
    )
    weight_decay: float = setting(
        0.0,
        "L2: adds this x (sum of squares) / 2 of the weights that decay to the loss; adamw takes "
        "this x the rate of themselves off them at each step",
        low=0,
    )
    decays: str = setting(
        "kernels",
        "which weights decay: kernels, those of convolutions and dense layers; all, BN's scales "
        "and shifts and biases too, as PyTorch's weight_decay has it",
        choices=("kernels", "all"),
    )
    shift_rate: float = setting(
        1.0,
        "learning-rate multiplier of BN's shifts (beta); their weight decay is divided by it; in "
        "sgd",
        above=0,
    )
    whitening_bias_epochs: float = setting(
        0.0, "epochs after which a whitening layer's bias stays as it is; 0: never; in sgd", low=0
    )

    def __post_init__(self):
        check(self)
        if self.name not in ("sgd", "lars") and (
            self.shift_rate != 1 or self.whitening_bias_epochs
        ):
            refuse("optimizer", self.name, "has no shift_rate and no whitening_bias_epochs")
