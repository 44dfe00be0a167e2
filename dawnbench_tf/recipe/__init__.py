"""Recipe: every setting that can change the accuracy curve. `options.RunOptions` has the others.

A recipe is composed of parts, one module each; every part checks its own settings. A setting's
flat name is its flag and its key in run.json.

May import: the shared modules. Never: TensorFlow, models, recipes, data, training, inference,
submission, ranking.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dawnbench_tf.recipe.evidence import Measured, Published, Reported
from dawnbench_tf.recipe.images import JPEGS, ONE_SIZE, ONLY_FOR, Images
from dawnbench_tf.recipe.network import BERTS, Network
from dawnbench_tf.recipe.optimizer import Average, Optimizer
from dawnbench_tf.recipe.questions import Questions
from dawnbench_tf.recipe.schedule import Phase, Schedule, split, steps_before
from dawnbench_tf.refusals import refuse, suggestion
from dawnbench_tf.settings import check, documented, flat, parts, replaced, setting
from dawnbench_tf.tasks import TASKS, Task
from dawnbench_tf.tasks import check as check_task

__all__ = ["Recipe", "Network", "Optimizer", "Schedule", "Average", "Images", "Questions"]

_CYCLING = ("sgd", "lars", "muon", "adam", "adamw")  # optimizers that schedule_momenta applies to
QUESTIONS = "questions"
_DEFAULTS = {**flat(Images()), **flat(Questions())}
_FOR_IMAGES = "drop_remainder label_smoothing later_batch_sizes zero_last_norm auxiliary_weight"
_KINDS = {  # of the examples that a setting is for
    **dict.fromkeys((*flat(Images()), *_FOR_IMAGES.split()), "images"),
    **ONLY_FOR,
    **dict.fromkeys(("held_out", "final_survival"), ONE_SIZE),
    **dict.fromkeys(flat(Questions()), QUESTIONS),
}


@documented
@dataclass(frozen=True, repr=False)
class Recipe:
    """Model, data settings, optimizer and schedule of a training run.

    To change settings use `recipe.with_values(...)` with flat names, or `dataclasses.replace` with
    fields and parts.

    Args:
      name: TASK/NAME, as in `dawnbench recipes`; default for a task of your own: TASK/MODEL.
      task: name of a row of `tasks.TASKS`, or a `tasks.Task` of your own.
      network: arguments of the model; its settings, like those of all parts, are flags too.
      optimizer: the optimizer and its hyperparameters.
      schedule: the learning rate over the epochs.
      average: the moving average of the weights.
      data: `Images` or `Questions`, as the task's examples are.
      evidence: entries and measurements of this recipe; not compared.

    Every other argument is a setting: `dawnbench train --helpfull` describes it.

    Raises:
      Refusal: a setting is out of its range, or does not fit the task or another setting.
    """

    GROUP: ClassVar[str] = "what to train"
    name: str = ""
    task: str | Task = ""
    model: str = setting(
        "",
        "name of the model to train; `dawnbench models` lists all; or a network of others: "
        "keras.applications:ConvNeXtTiny or MODULE:FUNCTION",
    )
    threshold: float | None = setting(
        None, "stop when the metric reaches this; default: the task's"
    )
    epochs: float = setting(
        1, "maximum number of training epochs; may be a fraction", above=0, high=1e6
    )
    batch_size: int = setting(128, "global batch size: examples per step of all replicas", low=1)
    later_batch_sizes: tuple[int, ...] = setting(
        (),
        "global batch sizes that follow batch_size within a run, comma-separated; the learning "
        "rate does not change with them unless --scale_learning_rate_from is set; for images",
        low=1,
    )
    batch_size_epochs: tuple[int, ...] = setting(
        (),
        "epochs at which training moves on to the next of later_batch_sizes, comma-separated; as "
        "many as later_batch_sizes",
        low=1,
        needs="later_batch_sizes",
    )
    drop_remainder: bool = setting(
        False,
        "drop the examples that do not fill an epoch's last batch; if not, that batch is filled "
        "up with examples from the start of the epoch",
    )
    eval_every: float = setting(1.0, "evaluation interval, in epochs; may be a fraction", low=0.001)
    eval_from: float = setting(
        0.0,
        "epochs before the first evaluation; a run may not be seen to reach its threshold earlier",
    )
    seed: int = setting(
        0, "seed of initial weights, order, augmentation and dropout", high=2**31 - 1
    )
    precision: str = setting(
        "float32",
        "Keras dtype policy of the layers; float64 shows effects of rounding",
        choices=("float32", "mixed_bfloat16", "mixed_float16", "float64"),
    )
    label_smoothing: float = setting(
        0.0,
        "label smoothing: share of each label's probability that is spread evenly over all classes",
        high=0.99,
    )
    held_out: int = setting(
        0,
        "size N of a held-out set: the last N training examples are not trained on, and the "
        "finished model is scored on them once; for images of one size",
    )
    train_examples: int = setting(
        0,
        "train on N examples only, the first of an order that the seed decides; the run is "
        "labelled and never an entry; 0: all",
    )
    validation_share: float = setting(
        0.0,
        "for a task of your own: share of the examples of each class (of all passages, for "
        "questions) that is drawn from the seed and kept for the test; 0: the data has a test set",
        high=0.9,
    )
    skip_blacklisted: bool = setting(
        False,
        "ImageNet: leave out the 1,762 validation images that ILSVRC's development kit blacklists",
    )
    synthetic: str | None = setting(
        None,
        "train on generated examples in place of the data set: decoded (arrays on the devices) or "
        "jpeg (JPEGs that are decoded); for speed tests, never an entry",
        choices=("decoded", "jpeg"),
    )
    network: Network = Network()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    average: Average = Average()
    data: Any = field(default=Images(), metadata={"parts": (Images, Questions)})
    evidence: tuple[Published | Reported | Measured, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check(self)
        if self.epochs == int(self.epochs):  # --epochs=30 is parsed as 30.0; rows say 30
            object.__setattr__(self, "epochs", int(self.epochs))
        if isinstance(self.task, Task):
            check_task(self.task)
            if self.task.is_whole:
                object.__setattr__(self, "task", self.task.name)
            elif not self.name:
                object.__setattr__(self, "name", _default_name(self.task, self.model))
        elif self.task and self.task not in [*TASKS]:
            refuse("task", repr(self.task), f"should be a Task, or one of {', '.join(TASKS)}")
        changes, later = self.batch_size_epochs, len(self.later_batch_sizes)
        if list(changes) != sorted(set(changes)):
            refuse("batch_size_epochs", changes, "should increase")
        if len(changes) != later:
            expected = f"should be {later} epochs, one for each of later_batch_sizes"
            refuse("batch_size_epochs", changes, expected)
        if self.schedule.momenta and self.optimizer.name not in _CYCLING:
            expected = f"is for {', '.join(_CYCLING)}; --schedule_momenta= leaves it out"
            refuse("schedule_momenta", self.schedule.momenta, expected)
        if self.task:
            self._check_data()
            self._check_counts()

    def _check_data(self) -> None:
        task, examples = self.task_row, _examples(self.task_row)
        asks = isinstance(self.data, Questions)
        if asks != (examples == QUESTIONS):
            own = QUESTIONS if asks else "images"
            refuse("recipe", self.name, f"{task.name} has {examples}, not {own}")
        self._check_applies(flat(self) | flat(self.network) | flat(self.data), task)
        if self.data.proxy and self.optimizer.name not in ("sgd", "lars"):
            expected = "is for --optimizer=sgd or lars; --proxy= leaves it out"
            refuse("proxy", self.data.proxy, expected)
        if (share := self.validation_share) and not task.is_own:
            refuse("validation_share", share, f"is for your own tasks; {task.name} has a test set")
        if asks:
            pretrained, wordpiece = self.network.pretrained, self.data.tokenizer == "wordpiece"
            if bool(pretrained) != wordpiece:
                reason = "is for" if pretrained else "is required for"
                expected = f"{reason} --tokenizer=wordpiece; --helpfull describes it"
                refuse("pretrained", pretrained, expected)
            if pretrained and pretrained not in BERTS:
                hint = suggestion(pretrained, BERTS, cutoff=0.4)
                refuse("pretrained", pretrained, f"is no published BERT; {hint}")
        for name in ("backbone_rate", "layer_rate_decay"):
            if (rate := getattr(self.optimizer, name)) != 1 and not self.network.pretrained:
                refuse(name, rate, "requires --pretrained")
        if self.skip_blacklisted and not task.blacklisted:
            refuse("skip_blacklisted", True, f"is for ImageNet; {task.name} has no blacklist")
        if not asks and self.data.mixup and self.network.auxiliary_weight:
            refuse("mixup", self.data.mixup, "is for networks without an auxiliary head")
        # A square that is clipped leaves a part of the image, whatever its size.
        cutout = 0 if getattr(self.data, "cutout_clipped", True) else self.data.cutout
        for name, value, most in (
            ("crop_size", self._crop_size, task.image_size),
            ("image_sizes", max(self.sizes), self.test_side),
            ("cutout", cutout, self.test_side),
        ):
            if examples == ONE_SIZE and 0 < most < value:
                refuse(name, value, f"should be at most the {most} pixels of an image")
        if asks and not self.data.bucket_boundaries:
            refuse("bucket_boundaries", "", f"is required for {task.name}; --helpfull describes it")

    def _check_counts(self) -> None:
        task, whole = self.task_row, self.whole_task.train_examples
        examples = task.train_examples - self.held_out
        if whole and self.train_examples > whole:
            expected = f"should be at most {task.name}'s {whole} examples"
            refuse("train_examples", self.train_examples, expected)
        if task.train_examples and examples < 1:
            expected = f"should be fewer than {task.name}'s {task.train_examples} examples"
            refuse("held_out", self.held_out, expected)
        largest = max(self.batch_sizes)
        if task.train_examples and largest > examples:
            name = "batch_size" if largest == self.batch_size else "later_batch_sizes"
            refuse(name, largest, f"should be at most {task.name}'s {examples} examples")
        if self.threshold is not None:
            task.check_threshold(self.threshold)

    def total_steps(self, epoch_steps: Sequence[int]) -> int:
        """Returns the steps of the whole training; a partial step counts as a whole one.

        Args:
          epoch_steps: as in `steps_before`.
        """
        return max(1, math.ceil(round(steps_before(self.epochs, epoch_steps), 6)))

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The global batch sizes of training, in order."""
        return (self.batch_size, *self.later_batch_sizes)

    @property
    def shape_changes(self) -> tuple[int, ...]:
        """The epochs with which another batch size or image size begins."""
        return (*self.batch_size_epochs, *getattr(self.data, "image_size_epochs", ()))

    def phases(self, first_epoch: int = 0) -> list[Phase]:
        """Returns the parts of training with one batch size and, but for JPEGs, one image size.

        Args:
          first_epoch: index of the epoch, from 0, that the first part starts with.
        """
        changes = self.batch_size_epochs if self.jpegs else self.shape_changes
        bounds = split(changes, self.epochs, first_epoch)
        return [Phase(*bound, self.in_epoch(bound[0]).batch_size) for bound in bounds]

    def in_epoch(self, epoch: int) -> "Recipe":
        """Returns the recipe with one batch size and one image size: those of an epoch.

        JPEGs keep all sizes.

        Args:
          epoch: index from 0.
        """
        size = self.batch_sizes[sum(epoch >= change for change in self.batch_size_epochs)]
        data = self.data
        if isinstance(data, Images) and data.image_sizes and not self.jpegs:
            side = data.image_sizes[sum(epoch >= change for change in data.image_size_epochs)]
            data = replace(data, image_sizes=(side,), image_size_epochs=())
        return replace(self, batch_size=size, later_batch_sizes=(), batch_size_epochs=(), data=data)

    @property
    def scaled_learning_rate(self) -> float:
        """Learning rate that the schedule's factors multiply: scaled linearly by `batch_size`."""
        rate, examples = self.optimizer.learning_rate, self.optimizer.scale_learning_rate_from
        return rate * (self.batch_size / examples) if examples else rate

    @property
    def whole_task(self) -> Task:
        """The task with all examples of its data set."""
        return self.task if isinstance(self.task, Task) else TASKS[self.task]

    @property
    def task_row(self) -> Task:
        """The task with the numbers of examples that the recipe uses.

        `train_examples` of the recipe replaces the task's; `test_examples` exclude blacklisted
        images if the recipe does.
        """
        task = self.whole_task
        test_examples = task.test_examples - task.blacklisted * self.skip_blacklisted
        train_examples = self.train_examples or task.train_examples
        return replace(task, train_examples=train_examples, test_examples=test_examples)

    @property
    def jpegs(self) -> bool:
        """Whether the task's images are JPEGs of any size."""
        return bool(self.task) and self.whole_task.jpegs

    @property
    def goal(self) -> float:
        """Threshold that training stops at: the recipe's own, else the task's."""
        return self.whole_task.threshold if self.threshold is None else self.threshold

    @property
    def sizes(self) -> tuple[int, ...]:
        """Height and width of training images in pixels, one number per phase of training."""
        own = () if isinstance(self.data, Questions) else self.data.image_sizes
        return own or (self._crop_size or self.task_row.image_size,)

    @property
    def test_side(self) -> int:
        """Height and width of a test image, in pixels."""
        if self.jpegs:
            return self.data.test_image_size or self.sizes[-1]
        return self._crop_size or self.task_row.image_size

    @property
    def _crop_size(self) -> int:
        return self.data.crop_size if isinstance(self.data, Images) else 0

    def __repr__(self) -> str:
        threshold = self.goal if self.task else self.threshold
        return (
            f"<Recipe {self.name}: model={self.model!r}, threshold={threshold}, "
            f"epochs={self.epochs}, batch_size={self.batch_size}, seed={self.seed}; "
            "values() has all>"
        )

    def values(self) -> dict[str, Any]:
        """Returns every setting by flat name, as run.json and the entry record them.

        Data settings that do not apply to the task are included with their defaults.
        """
        # Own parts come last: their values replace the defaults of the same names.
        values = [flat(self), _DEFAULTS, *(flat(part) for part in parts(self).values())]
        task = self.task.values() if isinstance(self.task, Task) else self.task
        names = {"name": self.name, "task": task}
        return names | {name: value for item in values for name, value in item.items()}

    def with_values(self, **values: Any) -> "Recipe":
        """Returns a copy with some settings changed, in any part.

        With a task of another name the recipe's name becomes TASK/MODEL, unless `name` is given.
        Settings of images that the new task's images lack are dropped, and settings without effect,
        as the points of a schedule that is constant now. With another task or threshold all epochs
        are evaluated, unless `eval_from` is given.

        Args:
          **values: settings by flat name (`batch_size`, `schedule_epochs`), `name` and `task`;
            lists stand for tuples.

        Raises:
          TypeError: a name is not a setting of a recipe.
          Refusal: a value is out of its range, or the setting is not for the task's examples.
        """
        values = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}  # of JSON
        task = values.get("task", self.task)
        task_row = task if isinstance(task, Task) else TASKS.get(str(task))
        base = replace(self, name="", task="", data=self._data_for(task_row, "model" in values))
        own = {"name", "task", *_KINDS}.union(flat(base), *map(flat, parts(base).values()))
        for name in (name for name in values if name not in own):
            names = [*self.values()]  # suggests a setting with these initials, as for lr
            initials = [n for n in names if name == "".join(word[0] for word in n.split("_"))]
            hint = suggestion(name, initials or names, "", cutoff=0 if initials else 0.6)
            raise TypeError("; ".join(filter(None, [f"{name}: no setting of a recipe", hint])))
        base._check_applies(values, task_row)
        changed = {name: replaced(part, values) for name, part in parts(base).items()}
        model = values.get("model", self.model)
        before = self.whole_task.name if self.task else ""
        is_other = task_row is not None and task_row.name != before
        own_goals = (self.threshold, self.goal if self.task else None)
        if is_other or values.get("threshold", self.threshold) not in own_goals:
            values.setdefault("eval_from", 0.0)
        default = _default_name(task_row, model) if task_row and is_other else self.name
        name = values.get("name", default)
        evidence = () if is_other else self.evidence  # measurements of another task
        return replaced(base, values, task=task, name=name, evidence=evidence, **changed)

    def _check_applies(self, values: Mapping[str, Any], task: Task | None) -> None:
        """Refuses settings that are not for a task's examples, unless they have their defaults."""
        asks = isinstance(self.data, Questions)
        examples = _examples(task) if task else QUESTIONS if asks else ONE_SIZE
        kinds = (examples,) if examples == QUESTIONS else (examples, "images")
        for name, value in values.items():
            is_set = value != _DEFAULTS[name] if name in _DEFAULTS else value
            if _KINDS.get(name, examples) not in kinds and is_set:
                own = f"{task.name if task else self.name} has {examples}"
                refuse(name, value, f"is for {_KINDS[name]}; {own}")

    def _data_for(self, task: Task | None, has_model: bool) -> Any:
        """Returns data settings of the class that a task takes, with the values that apply."""
        if task is None:
            return self.data
        own, asks = isinstance(self.data, Questions), task.inputs == QUESTIONS
        if own != asks and self.task and not has_model:
            expected = f"has {task.inputs}; {self.name} trains on {self.whole_task.inputs}"
            refuse("task", task.reader or task.name, f"{expected}; see `dawnbench recipes`")
        if own != asks:
            return Questions() if asks else Images()
        if own or not self.task or task.jpegs == self.jpegs:
            return self.data
        # Sizes of images fit the old task only.
        dropped = ("image_sizes", "image_size_epochs", *ONLY_FOR)
        return replace(self.data, **{name: _DEFAULTS[name] for name in dropped})

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Recipe":
        """Returns the recipe that `values()` describes: its inverse.

        Args:
          values: settings by flat name. A setting that is missing, because an earlier version did
            not have it, takes the value that version trained with.

        Raises:
          TypeError: a name is not a setting of this version.
          KeyError: the task does not exist.
          Refusal: a value is out of its range.
        """
        settings = dict(values)
        if isinstance(settings.get("synthetic"), bool):
            settings["synthetic"] = "decoded" if settings["synthetic"] else None
        if settings.get("optimizer") == "adadelta":
            settings.setdefault("epsilon", 1e-6)  # version 0.1.0's
        settings.setdefault("rate_in_velocity", True)  # earlier versions used Keras's SGD
        if settings.get("rand_augment") in ((), []):
            del settings["rand_augment"]  # RandAugment, to 0.2.0; no recipe used it
        if settings.get("task"):
            settings["task"] = Task.from_values(settings["task"])
        return cls().with_values(**settings)


def _examples(task: Task) -> str:
    return QUESTIONS if task.inputs == "questions" else JPEGS if task.jpegs else ONE_SIZE


def _default_name(task: Task, model: str) -> str:
    return f"{task.name}/{model.rpartition(':')[2]}"  # a name with a colon is a module's recipe
