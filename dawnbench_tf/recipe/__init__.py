"""Recipe: everything that moves the accuracy curve. Where and on what it runs: RunOptions.

It is composed of parts, a module each, which check themselves. Each setting, in whichever part, is
a flag, and a key of run.json, of its flat name.

May import: the shared modules. Never: TensorFlow, models, recipes, data, training, inference,
submission, ranking.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dawnbench_tf.recipe.average import Average
from dawnbench_tf.recipe.evidence import Measured, Published, Reported
from dawnbench_tf.recipe.images import Images, Jpegs
from dawnbench_tf.recipe.network import Network
from dawnbench_tf.recipe.optimizer import Optimizer
from dawnbench_tf.recipe.questions import Questions
from dawnbench_tf.recipe.schedule import Schedule
from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, flat, parts, replaced, setting
from dawnbench_tf.tasks import TASKS, Task

__all__ = ["Recipe", "Network", "Optimizer", "Schedule", "Average", "Images", "Jpegs", "Questions"]

_EXAMPLES = {Images: "images of one size", Jpegs: "JPEGs", Questions: "questions"}


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how. Checked when made: raises Refusal."""

    GROUP: ClassVar[str] = "what to train"
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
    precision: str = setting(
        "float32",
        "precision of the layers; float64 tells rounding from mistakes",
        choices=("float32", "mixed_bfloat16", "mixed_float16", "float64"),
    )
    label_smoothing: float = setting(
        0.0, "share of each label that is spread evenly over all classes", low=0, high=0.99
    )
    held_out: int = setting(
        0,
        "size of a held-out set: the last N training examples, on which the finished model is "
        "tested once; images of one size",
        low=0,
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
    network: Network = Network()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    average: Average = Average()
    data: Any = field(default=Images(), metadata={"parts": tuple(_EXAMPLES)})  # by the task
    evidence: tuple[Published | Reported | Measured, ...] = field(default=(), compare=False)

    def __post_init__(self):
        check(self)
        if self.epochs == int(self.epochs):  # a flag's 30.0 is the row's 30
            object.__setattr__(self, "epochs", int(self.epochs))
        if self.task:
            self._check_data()
            self._check_counts()

    def _check_data(self):
        task, kind, right = self.task_row, type(self.data), _kind(self.task_row)
        if kind is not right:
            refuse(
                "recipe", self.name, f"{task.name} has {_EXAMPLES[right]}, not {_EXAMPLES[kind]}"
            )
        of_one_size = {"held_out": self.held_out, "final_survival": self.network.final_survival}
        for name, value in of_one_size.items():
            if value and kind is not Images:
                refuse(name, value, f"is for images of one size; {task.name} has {_EXAMPLES[kind]}")
        if self.skip_blacklisted and not task.blacklisted:
            refuse("skip_blacklisted", True, f"is for ImageNet; {task.name} has no such images")
        for name in task.required:
            if not getattr(self.data, name):
                refuse(name, "", f"{task.name} needs it; --helpfull says what it is")

    def _check_counts(self):
        task = self.task_row
        examples = task.train_examples - self.held_out
        if examples < 1:
            right = f"should be fewer than {task.name}'s {task.train_examples} examples"
            refuse("held_out", self.held_out, right)
        if self.batch_size > examples:
            right = f"should be at most {task.name}'s {examples} examples"
            refuse("batch_size", self.batch_size, right)
        if self.threshold is not None and not 0 < self.threshold <= task.highest:
            right = f"{task.metric} should be over 0, at most {task.highest:g}"
            refuse("threshold", self.threshold, right)

    def steps(self, steps_per_epoch: int) -> int:
        """Steps of all epochs; a fraction of an epoch is rounded up to a whole step."""
        return math.ceil(round(self.epochs * steps_per_epoch, 6))

    @property
    def scaled_learning_rate(self) -> float:
        """The learning rate that the schedule scales, after linear scaling with the batch size."""
        rate, examples = self.optimizer.learning_rate, self.optimizer.scale_learning_rate_from
        return rate * (self.batch_size / examples) if examples else rate

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
        own = self.data.image_sizes if isinstance(self.data, Jpegs) else ()
        return own or (self.task_row.image_size,)

    @property
    def test_side(self) -> int:
        """Side of a test image, in pixels."""
        own = self.data.test_image_size if isinstance(self.data, Jpegs) else 0
        return own or self.sizes[-1]

    def values(self) -> dict[str, Any]:
        """All that moves the curve, flat: what a run's folder and its entry record.

        Settings of other kinds of examples are there as well, with their defaults.
        """
        others = (flat(kind()) for kind in _EXAMPLES)
        values = [flat(self), *others, *(flat(part) for part in parts(self).values())]
        names = {"name": self.name, "task": self.task}
        return names | {name: value for item in values for name, value in item.items()}

    def with_values(self, **values: Any) -> "Recipe":
        """The recipe with other values of some settings, by flat name, in whichever part.

        Raises:
          TypeError: there is no setting of such a name.
          Refusal: a value is out of its bounds, or of another kind of examples than the task's.
        """
        own = {"name", "task"}.union(flat(self), *map(flat, parts(self).values()))
        for name in values:
            if name not in own:
                self._check_foreign(name, values[name])
        names = {name: values[name] for name in ("name", "task") if name in values}
        changed = {name: replaced(part, values) for name, part in parts(self).items()}
        return replaced(self, values, **names, **changed)

    def _check_foreign(self, name, value):
        """Refuses a setting of another kind of examples, unless the value is the default."""
        owners = [kind for kind in _EXAMPLES if name in flat(kind())]
        if not owners:
            raise TypeError(f"{name}: no setting of a recipe")
        if value != flat(owners[0]())[name]:
            examples = "images" if owners[1:] else _EXAMPLES[owners[0]]
            refuse(name, value, f"is for {examples}; {self.task} has {_EXAMPLES[type(self.data)]}")

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Recipe":
        """Inverse of `values()`, perhaps through JSON.

        Settings that an earlier version did not have yet take their defaults: these keep the curve
        as it was.

        Raises:
          TypeError: there are settings that this version does not know.
          KeyError: there is no such task.
          Refusal: a value is out of its bounds.
        """
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        if isinstance(settings.get("synthetic"), bool):
            settings["synthetic"] = "decoded" if settings["synthetic"] else None
        if settings.get("optimizer") == "adadelta":
            settings.setdefault("epsilon", 1e-6)  # 0.1.0's own
        settings.setdefault("rate_in_velocity", True)  # as in Keras's SGD, which was used
        task = settings.get("task")
        return cls(data=_kind(TASKS[task])() if task else Images()).with_values(**settings)


def _kind(task):
    """The class of the settings of a task's examples."""
    if task.inputs == "questions":
        return Questions
    return Jpegs if task.jpegs else Images
