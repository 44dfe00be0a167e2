"""Recipe: everything that moves the accuracy curve. Where and on what it runs: RunOptions.

Each field that has a help is a flag of the same name (`flags.py`).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting
from dawnbench_tf.tasks import TASKS, Task


class Published(NamedTuple):
    """A published entry that the recipe reproduces."""

    entry: str  # path in the tree of published entries
    hours: float  # to the threshold
    best: float  # score of its best row
    hardware: str


class Measured(NamedTuple):
    """Our own measurement of the recipe: a distribution, not a lucky run."""

    date: str
    machine: str
    runs: int
    reached: int  # runs that reached the threshold
    mean: float  # score of the row that ended the run
    sd: float
    seconds: float  # median on the clock
    command: str


@dataclass(frozen=True)
class Recipe:
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
    optimizer: str = setting("sgd", "optimizer", choices=("sgd", "adam", "adadelta"))
    learning_rate: float = setting(0.1, "learning rate that the schedule scales", above=0)
    scale_learning_rate_from: int = setting(
        0,
        "linear scaling: multiply learning_rate by batch_size / this many examples; 0: don't",
        low=0,
    )
    momentum: float = setting(0.9, "momentum of sgd", low=0, high=1)
    epsilon: float = setting(
        1e-7, "added to the root of squared gradients' mean, in adam and adadelta", above=0
    )
    nesterov: bool = setting(False, "Nesterov momentum in sgd")
    rate_in_velocity: bool = setting(
        False,
        "momentum gathers steps, gradients times the rate of their time (Keras; Page), in place of "
        "gradients (TensorFlow 1, PyTorch)",
    )
    schedule: str = setting(
        "constant",
        "how learning_rate is scaled: steps (each of schedule_factors until its epoch in "
        "schedule_epochs), linear (between points (epoch, factor)), cosine (to 0, after a warmup "
        "of schedule_epochs[0])",
        choices=("constant", "steps", "linear", "cosine"),
    )
    schedule_epochs: tuple[float, ...] = setting(
        (), "epochs of the schedule, comma-separated", low=0
    )
    schedule_factors: tuple[float, ...] = setting(
        (), "factors of the schedule, comma-separated", low=0
    )
    weight_decay: float = setting(
        0.0,
        "L2: adds this x (sum of squares) / 2 of the weights that decay to the loss",
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
    lookahead: bool = setting(
        False,
        "at each update the weights become their average, whose share grows with the third power "
        "of the part of training that is done",
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
    pad: int = setting(
        0, "training images: pad by so many pixels a side, then crop at random", low=0, high=31
    )
    pad_mode: str = setting(
        "zeros", "what pad adds: zeros, or the image reflected", choices=("zeros", "reflection")
    )
    flip: bool = setting(False, "training images: mirror half of them")
    alternating_flip: bool = setting(
        False, "with flip: an image that is mirrored in one epoch is not in the next"
    )
    cutout: int = setting(
        0,
        "training images: a square of this side, at random, becomes the mean color",
        low=0,
        high=31,
    )
    standardize: str = setting(
        "image",
        "images to mean 0, deviation 1: by each image's own figures, or by channel_mean and "
        "channel_deviation",
        choices=("image", "channel"),
    )
    channel_mean: tuple[float, ...] = setting(
        (), "mean of each channel, of pixels in 0..1", low=0, high=1
    )
    channel_deviation: tuple[float, ...] = setting(
        (), "standard deviation of each channel", low=0.001, high=1
    )
    test_views: str = setting(
        "image",
        "test images are seen as they are; with their mirror; or with it and, each with its "
        "mirror, moved by a pixel up and left, and down and right: mean logits, the image and its "
        "mirror counting half",
        choices=("image", "mirror", "mirror_and_shifts"),
    )
    bucket_boundaries: tuple[int, ...] = setting(
        (),
        "questions come in batches with passages of like length, filled up to these numbers of "
        "words, comma-separated; in training longer ones than the last are cut there, and "
        "questions whose answer lies beyond are left out",
        low=1,
    )
    synthetic: bool = setting(False, "generated examples in place of the data set: never an entry")
    evidence: tuple[Published | Measured, ...] = field(default=(), compare=False)

    def __post_init__(self):
        check(self)
        if self.epochs == int(self.epochs):  # a flag's 30.0 is the row's 30
            object.__setattr__(self, "epochs", int(self.epochs))
        if self.task:
            _check_against_task(self, self.task_row)
        _check_schedule(self)
        if self.optimizer != "sgd" and (self.shift_rate != 1 or self.whitening_bias_epochs):
            refuse("optimizer", self.optimizer, "has no shift_rate and no whitening_bias_epochs")
        if self.alternating_flip and not self.flip:
            refuse("alternating_flip", True, "should have --flip as well")
        if not self.average and (self.lookahead or self.average_every != 1):
            name = "lookahead" if self.lookahead else "average_every"
            refuse(name, getattr(self, name), "should have --average as well")
        if list(self.bucket_boundaries) != sorted(set(self.bucket_boundaries)):
            refuse("bucket_boundaries", self.bucket_boundaries, "should rise")
        if (
            self.standardize == "channel"
            and not len(self.channel_mean) == len(self.channel_deviation) == 3
        ):
            refuse(
                "standardize",
                "channel",
                "takes three figures each in channel_mean and channel_deviation",
            )

    def steps(self, steps_per_epoch: int) -> int:
        """Steps of all epochs; a fraction of an epoch is rounded up to a whole step."""
        return math.ceil(round(self.epochs * steps_per_epoch, 6))

    @property
    def task_row(self) -> Task:
        """The row of its task."""
        return TASKS[self.task]

    @property
    def goal(self) -> float:
        """What the metric is to reach: its own threshold, else its task's."""
        return self.task_row.threshold if self.threshold is None else self.threshold

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
        if fields.get("optimizer") == "adadelta":
            fields.setdefault("epsilon", 1e-6)  # 0.1.0's own
        fields.setdefault("rate_in_velocity", True)  # as in Keras's SGD, which was used
        return cls(**fields)


_OF_INPUTS = {  # fields that mean nothing to the other kind
    "images": ("pad", "flip", "cutout", "channel_mean", "channel_deviation", "test_views"),
    "questions": ("bucket_boundaries",),
}


def _check_against_task(recipe, task):
    for inputs, names in _OF_INPUTS.items():
        for name in names if inputs != task.inputs else ():
            value = getattr(recipe, name)
            if value != Recipe.__dataclass_fields__[name].default:
                refuse(name, value, f"is for {inputs}; {task.name} has {task.inputs}")
    for name in task.required:
        if not getattr(recipe, name):
            refuse(name, "", f"{task.name} needs it; --help says what it is")
    if recipe.batch_size > task.train_examples:
        refuse(
            "batch_size",
            recipe.batch_size,
            f"should be at most {task.name}'s {task.train_examples} examples",
        )
    if recipe.threshold is not None and not 0 < recipe.threshold <= task.highest:
        refuse(
            "threshold",
            recipe.threshold,
            f"{task.metric} should be over 0, at most {task.highest:g}",
        )


def _check_schedule(recipe):
    epochs, factors = recipe.schedule_epochs, recipe.schedule_factors
    if list(epochs) != sorted(set(epochs)):
        refuse("schedule_epochs", epochs, "should rise")
    fits, rule = {
        "constant": (not epochs and not factors, "takes neither schedule_epochs nor _factors"),
        "steps": (len(factors) == len(epochs) + 1, "takes one factor more than schedule_epochs"),
        "linear": (0 < len(factors) == len(epochs), "takes a factor for each of schedule_epochs"),
        "cosine": (len(epochs) <= 1 and not factors, "takes one of schedule_epochs at most"),
    }[recipe.schedule]
    if factors and not any(factors):
        refuse("schedule_factors", factors, "one of them should be over 0")
    if not fits:
        counts = f"{len(epochs)} schedule_epochs and {len(factors)} schedule_factors"
        refuse("schedule", recipe.schedule, f"{rule}; found {counts}")
