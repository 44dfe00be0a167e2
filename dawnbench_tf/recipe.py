"""Recipe: everything that moves the accuracy curve. Where and on what it runs: RunOptions.

Each field that has a help is a flag of the same name (`flags.py`).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dawnbench_tf import recipe_checks
from dawnbench_tf.evidence import Measured, Published, Reported
from dawnbench_tf.recipe_fields import OfImages, OfJpegs, OfOneSize, OfQuestions
from dawnbench_tf.settings import check, setting
from dawnbench_tf.tasks import TASKS, Task

_OPTIMIZERS = ("sgd", "lars", "rmsprop", "adam", "adamw", "adamax", "adadelta")


@dataclass(frozen=True)
class Recipe(OfImages, OfOneSize, OfJpegs, OfQuestions):
    """What is trained, and how. Checked when made: raises Refusal."""

    name: str = ""
    task: str = ""
    model: str = setting("", "model to train, a name of the catalogue")
    threshold: float | None = setting(
        None, "stop when the metric reaches this; default: the task's own", low=0
    )
    epochs: float = setting(1, "most epochs to train for; may be a fraction", above=0)
    batch_size: int = setting(128, "global batch size, in examples, over all replicas", low=1)
    drop_remainder: bool = setting(
        False,
        "an epoch leaves out the examples that fill no batch; if not, it fills its last one up",
    )
    eval_every: float = setting(1.0, "epochs between evaluations; may be a fraction", low=0.001)
    seed: int = setting(
        0,
        "seed of initial weights, data order, augmentation, dropped blocks",
        low=0,
        high=2**31 - 1,
    )
    optimizer: str = setting("sgd", "optimizer", choices=_OPTIMIZERS)
    learning_rate: float = setting(0.1, "learning rate that the schedule scales", above=0)
    scale_learning_rate_from: int = setting(
        0,
        "linear scaling: multiply learning_rate by batch_size / this many examples; 0: don't",
        low=0,
    )
    momentum: float = setting(0.9, "momentum of sgd, lars and rmsprop", low=0, high=1)
    trust: float = setting(
        0.001,
        "in lars a kernel's rate is multiplied by this, its norm over its gradient's",
        above=0,
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
        "momentum gathers steps, gradients times the rate of their time (Keras; Page), in place of "
        "gradients (TensorFlow 1, PyTorch); in lars always",
    )
    schedule: str = setting(
        "constant",
        "how learning_rate is scaled: steps (each of schedule_factors until its epoch in "
        "schedule_epochs), linear (between points (epoch, factor)), cosine (to 0, after a warmup "
        "of schedule_epochs[0]), quadratic (the square of the part that is left, likewise)",
        choices=("constant", "steps", "linear", "cosine", "quadratic"),
    )
    schedule_epochs: tuple[float, ...] = setting(
        (), "epochs of the schedule, comma-separated", low=0
    )
    schedule_factors: tuple[float, ...] = setting(
        (), "factors of the schedule, comma-separated", low=0
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
        "shifts of BN learn at learning_rate times this, and decay by weight_decay over it; in sgd",
        above=0,
    )
    whitening_bias_epochs: float = setting(
        0.0, "epochs after which a whitening layer's bias stays as it is; 0: never; in sgd", low=0
    )
    label_smoothing: float = setting(
        0.0, "share of each label that is spread evenly over all classes", low=0, high=0.99
    )
    average: float = setting(
        0.0,
        "evaluate a moving average of weights and BN statistics that keeps this share at each "
        "step; 0: them as they are",
        low=0,
        high=0.99999,
    )
    average_every: int = setting(
        1, "steps between updates of the average, which then keeps average to this power", low=1
    )
    average_ramp: bool = setting(
        False, "the average keeps (1 + step) / (10 + step) while that is less: it forgets the start"
    )
    lookahead: bool = setting(
        False,
        "at each update the weights become their average, whose share grows with the third power "
        "of the part of training that is done",
    )
    zero_last_norm: bool = setting(
        False, "the scale of each residual branch's last BN starts at 0, in ResNets for ImageNet"
    )
    auxiliary_weight: float = setting(
        0.0, "weight of an auxiliary head's loss beside the head's own, in AmoebaNets", low=0
    )
    precision: str = setting(
        "float32",
        "precision of the layers; float64 tells rounding from mistakes",
        choices=("float32", "mixed_bfloat16", "mixed_float16", "float64"),
    )
    synchronized_batch_norm: bool = setting(
        True,
        "BN statistics over the global batch, as on one device; if not, over each replica's share",
    )
    skip_blacklisted: bool = setting(
        False,
        "ImageNet: leave out the 1,762 validation images that ILSVRC's development kit blacklists",
    )
    synthetic: str | None = setting(
        None,
        "generated examples in place of the data set, as arrays or as JPEGs: never an entry",
        choices=("decoded", "jpeg"),
    )
    evidence: tuple[Published | Reported | Measured, ...] = field(default=(), compare=False)

    def __post_init__(self):
        check(self)
        if self.epochs == int(self.epochs):  # a flag's 30.0 is the row's 30
            object.__setattr__(self, "epochs", int(self.epochs))
        recipe_checks.check(self)

    def steps(self, steps_per_epoch: int) -> int:
        """Steps of all epochs; a fraction of an epoch is rounded up to a whole step."""
        return math.ceil(round(self.epochs * steps_per_epoch, 6))

    @property
    def scaled_learning_rate(self) -> float:
        """The learning rate that the schedule scales, after linear scaling with the batch size."""
        if not self.scale_learning_rate_from:
            return self.learning_rate
        return self.learning_rate * (self.batch_size / self.scale_learning_rate_from)

    @property
    def task_row(self) -> Task:
        """The row of its task, with the test examples that the recipe has."""
        row = TASKS[self.task]
        if not self.skip_blacklisted:
            return row
        return replace(row, test_examples=row.test_examples - row.blacklisted)

    @property
    def goal(self) -> float:
        """What the metric is to reach: its own threshold, else its task's."""
        return self.task_row.threshold if self.threshold is None else self.threshold

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sides of training images, in pixels, by phase of training."""
        return self.image_sizes or (self.task_row.image_size,)

    @property
    def test_side(self) -> int:
        """Side of a test image, in pixels."""
        return self.test_image_size or self.sizes[-1]

    def values(self) -> dict[str, Any]:
        """All that moves the curve, as plain values: what a run's folder and its entry record."""
        return {name: value for name, value in asdict(self).items() if name != "evidence"}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Recipe":
        """The recipe that `values()`, perhaps through JSON, came from.

        Fields that an earlier version did not have yet take their defaults: these keep the curve
        as it was.

        Raises:
          TypeError: there are fields that this version does not know.
          Refusal: a value is out of its bounds.
        """
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        if isinstance(fields.get("synthetic"), bool):
            fields["synthetic"] = "decoded" if fields["synthetic"] else None
        if fields.get("optimizer") == "adadelta":
            fields.setdefault("epsilon", 1e-6)  # 0.1.0's own
        fields.setdefault("rate_in_velocity", True)  # as in Keras's SGD, which was used
        return cls(**fields)
