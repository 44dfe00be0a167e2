"""Tasks: data set, metric and threshold. The only place with the benchmark's constants."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf.refusals import one_line, refuse, suggestion
from dawnbench_tf.settings import fault

__all__ = ["Task", "find_task", "TASKS"]

GIVEN = "given"  # origin of examples that the caller passed to `train`
READERS = ("folder", "npz", "tfds", "squad_json")  # modules of data/own/ that read files
READER_TEXT = ", ".join(READERS).replace("tfds", "tfds:NAME")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class Scoring(NamedTuple):
    """How a task is scored: its metric, and what its examples are."""

    columns: tuple[str, ...]  # of an entry's TSV; the last is the metric held to the threshold
    highest: float  # value of a perfect metric: 100 for percent, 1 for a fraction
    inputs: str  # "images" to classes, or "questions" on contexts: a folder of data/


SCORINGS = {  # by function in the scores.py of the folder in data/
    "top1": Scoring(("epoch", "hours", "top1Accuracy"), 100.0, "images"),
    "top1_and_top5": Scoring(("epoch", "hours", "top1Accuracy", "top5Accuracy"), 100.0, "images"),
    "squad": Scoring(("epoch", "hours", "f1Score"), 1.0, "questions"),
}


@dataclass(frozen=True)
class Task:
    """A task: of the benchmark, embedded in this library, or your own.

    A task of your own needs a name and a threshold. What is 0 is taken from the data when it is
    loaded. Data that does not fit a number other than 0 is refused.

    >>> Task("flowers", threshold=90).metric
    'top1Accuracy'

    Args:
      name: name of the task: letters, digits, `.`, `_` and `-`.
      threshold: in the metric's unit; reached when the metric is at least this. 0: the recipe's.
      folder: folder of its entries, FOLDER/train/NAME.json; for a task of your own its name.
      scoring: "top1" (metric top1Accuracy, in percent), "top1_and_top5" (top5Accuracy, in percent)
        or "squad" (f1Score, a fraction).
      train_examples: number of training examples.
      test_examples: number of test examples; every one is scored exactly once.
      classes: number of classes of images.
      image_size: height and width of an image as a network sees it, in pixels; images of any size
        are cropped and resized to it.
      jpegs: whether images are JPEGs or PNGs of any size; if not, they are arrays of one size.
      reader: how its files are read: "folder", "npz", "tfds:NAME" or "squad_json"; "": it has no
        files, the examples are passed to `train`.
      benchmark: one of DAWNBench's own; others are ranked apart.
      blacklisted: number of test examples that some leave out, and say so.
      embedded: comes with the packages: its data set is not on disk.

    Raises:
      Refusal: a value is out of its range, or the name is that of a task of this library.
    """

    name: str
    threshold: float = 0.0
    folder: str = ""
    scoring: str = "top1"
    train_examples: int = 0
    test_examples: int = 0
    classes: int = 0
    image_size: int = 0
    jpegs: bool = False
    reader: str = ""
    benchmark: bool = False
    blacklisted: int = 0
    embedded: bool = False

    def __post_init__(self) -> None:
        for name, kind in Task.__annotations__.items():  # NumPy's numbers are none of JSON
            if text := fault(value := getattr(self, name), kind):
                refuse(name, one_line(repr(value), 60), text)
        if not self.folder:
            object.__setattr__(self, "folder", self.name)
        if not _NAME.fullmatch(self.name):
            refuse("task_name", self.name, "should be letters, digits, '.', '_' or '-', 60 at most")
        if self.scoring not in SCORINGS:
            refuse("scoring", self.scoring, f"should be one of {', '.join(SCORINGS)}")
        if self.threshold:
            self.check_threshold(self.threshold)
        if self.reader:
            check_reader(self.reader)
        counts = (self.train_examples, self.test_examples, self.classes, self.image_size)
        if min(counts) < 0:
            refuse("task", self.name, f"its numbers should be 0 or more, not {counts}")

    def check_threshold(self, threshold: float) -> None:
        """Checks a threshold of the task.

        Args:
          threshold: in the metric's unit: percent or a fraction.

        Raises:
          Refusal: it is out of range, in another unit, or not above chance.
        """
        if not isinstance(threshold, int | float) or isinstance(threshold, bool):
            refuse("threshold", repr(threshold), "should be a number")
        if not 0 < threshold <= self.highest:
            meant = f"; did you mean {threshold / 100:g}?" if 1 < threshold <= 100 else ""
            text = f"{self.metric} should be over 0, at most {self.highest:g}{meant}"
            refuse("threshold", threshold, text)
        if self.highest == 1:
            return
        guesses = 5 if self.metric == "top5Accuracy" else 1
        chance = min(100 * guesses / self.classes, 100) if self.classes else 0
        if threshold <= 1:
            text = f"{self.metric} is in percent; did you mean {100 * threshold:g}?"
            refuse("threshold", threshold, text)
        if threshold <= chance:
            text = f"is chance, {chance:g} % with {self.classes} classes"
            refuse("threshold", threshold, f"{text}; {self.metric} is in percent")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of an entry's TSV."""
        return SCORINGS[self.scoring].columns

    @property
    def metric(self) -> str:
        """The column of an entry's TSV that the threshold is compared with."""
        return self.columns[-1]

    @property
    def highest(self) -> float:
        """The value of a perfect metric: 100 for percent, 1 for a fraction."""
        return SCORINGS[self.scoring].highest

    @property
    def inputs(self) -> str:
        """The kind of its examples, "images" or "questions": a folder of data/."""
        return SCORINGS[self.scoring].inputs

    @property
    def module(self) -> str:
        """The module below dawnbench_tf.data that loads its examples."""
        return f"own.{self.reader.partition(':')[0] or 'arrays'}" if self.is_own else self.name

    @property
    def is_own(self) -> bool:
        """Whether it is a task of the user's own, not one of this library."""
        return self.name not in TASKS

    @property
    def is_whole(self) -> bool:
        """Whether it is a task of this library with all of its examples."""
        return TASKS.get(self.name) == self

    @property
    def any_size(self) -> bool:
        """Whether its files may hold any number of examples: a run on fewer is labelled."""
        return self.inputs == "questions" and not self.embedded and not self.is_own

    @property
    def comparable(self) -> "Task":
        """The task without its number of training examples: results with equal ones compare."""
        return replace(self, train_examples=0)

    def difference(self, other: "Task") -> str:
        """Returns the name of the first field in which a task differs; "" if there is none.

        Args:
          other: a task that may leave numbers open, as before its data was loaded.
        """
        for item in fields(Task):
            own, theirs = getattr(self, item.name), getattr(other, item.name)
            is_number = isinstance(theirs, int | float) and not isinstance(theirs, bool)
            if own != theirs and not (is_number and (not theirs or other.any_size)):
                return item.name
        return ""

    def without_counts(self) -> "Task":
        """Returns the task with its numbers of examples left open, to be taken from the data."""
        return replace(self, train_examples=0, test_examples=0)

    def values(self) -> str | dict[str, Any]:
        """Returns the task as a JSON value: its name; with what differs if that says not all."""
        if self.is_whole:
            return self.name
        base = TASKS.get(self.name) or Task(self.name)
        names = [item.name for item in fields(Task)]
        changed = {n: getattr(self, n) for n in names if getattr(self, n) != getattr(base, n)}
        return {"name": self.name, **changed}

    @classmethod
    def from_values(cls, values: str | Mapping[str, Any]) -> "Task":
        """Returns the task that `values()` describes: its inverse.

        Args:
          values: name of a task of this library, or the fields of another.

        Raises:
          KeyError: the library has no task of this name.
          ValueError: a field is none of a task, has another type, or differs from the library's
            task of this name.
        """
        if isinstance(values, str):
            return TASKS[values]
        if unknown := values.keys() - _STATED:
            raise ValueError(f"{min(unknown)[:60]!r} is no field of a task")
        name = values.get("name", "")
        row = TASKS.get(name) if isinstance(name, str) else None  # of which a part is used
        task = replace(row, **values) if row else cls(**{"name": "", **values})
        check(task)
        return task


_STATED = {  # fields that a run's folder or an entry may state
    *("name", "threshold", "scoring", "train_examples", "test_examples"),
    *("classes", "image_size", "jpegs", "reader"),
}


def check_reader(reader: str) -> None:
    """Raises Refusal unless --task names a reader of data of one's own."""
    kind, colon, name = reader.partition(":")
    if kind not in READERS or (kind == "tfds") != bool(colon) or (colon and not name):
        hint = "" if kind in {*READERS, *TASKS} else suggestion(kind, [*READERS, *TASKS], "")
        refuse("task", reader, f"{hint} should be {READER_TEXT}".lstrip())


def check(task: Task) -> None:
    """Raises Refusal if a task has the name of one of this library and is another."""
    row = TASKS.get(task.name)
    if row and task.without_counts() == row.without_counts():
        return
    _check_own_name(task.name)
    plain = Task(task.name)
    for name in [item.name for item in fields(Task) if item.name not in _STATED]:
        if getattr(task, name) != getattr(plain, name):
            refuse(name, getattr(task, name), f"is for tasks of the library, not {task.name}")


def _check_own_name(name: str) -> None:
    """Raises Refusal if a task of the user's own has the name of one of this library."""
    taken = {t.name for t in TASKS.values()} | {t.folder for t in TASKS.values()}
    reserved = {word.lower() for word in taken} | {"train", "inference", "not_an_entry"}
    if name.lower() in reserved:
        refuse("task_name", name, "is a name of this library's; give your task another")


def find_task(text: str, data_dir: str = "", name: str = "") -> Task:
    """Returns a task by its name, or a task of your own by how its files are read.

    >>> find_task("folder", "photos/flowers").name
    'flowers'

    Args:
      text: name of a task of this library, "folder" (images in train/CLASS/ and val/CLASS/), "npz"
        (arrays), "tfds:NAME" (a data set of TensorFlow Datasets) or "squad_json".
      data_dir: folder or file of the examples, which gives the task its name.
      name: name of the task; default: that of `data_dir`, or NAME.

    Raises:
      Refusal: there is no such task, or its name is one of this library's.
    """
    if text in TASKS:
        return TASKS[text]
    check_reader(text)
    kind, _, dataset = text.partition(":")
    stem = dataset
    if data_dir and not dataset:
        own = Path(data_dir).expanduser().absolute()
        stem = own.stem if own.suffix in (".npz", ".json") else own.name  # flowers.2024 is a folder
    name = name or re.sub(r"[^A-Za-z0-9.]+", "-", stem)[:60].strip("-.") or kind
    _check_own_name(name)
    scoring = "squad" if kind == "squad_json" else "top1"
    jpegs = kind in ("folder", "tfds")
    size = _IMAGENET.image_size if jpegs else 0
    return Task(name, scoring=scoring, jpegs=jpegs, image_size=size, reader=text)


# name, threshold, folder, scoring, training examples, test examples, classes, side of images, JPEGs
_CIFAR10 = Task("cifar10", 94.0, "CIFAR10", "top1", 50_000, 10_000, 10, 32, benchmark=True)
_IMAGENET = Task("imagenet", 93.0, "ImageNet", "top1_and_top5", 1_281_167, 50_000, 1000, 224, True)
_IMAGENET = replace(_IMAGENET, benchmark=True, blacklisted=1_762)
# Ten classes of ImageNet; fast.ai's table has 85 to 87 % after five epochs at 128 pixels.
_IMAGENETTE = Task("imagenette", 80.0, "Imagenette", "top1", 9_469, 3_925, 10, 128, True)
_DIGITS = Task("digits", 98.0, "digits", "top1", 1_297, 500, 10, 32, embedded=True)
_SQUAD = Task("squad", 0.75, "SQuAD", "squad", 87_599, 10_570, benchmark=True)
_QA_MINI = Task("qa_mini", 0.75, "qa_mini", "squad", 4_200, 600, embedded=True)

TASKS = {task.name: task for task in (_IMAGENET, _CIFAR10, _SQUAD, _DIGITS, _QA_MINI, _IMAGENETTE)}
"""The tasks of this library, by name."""
# Names of classes, in the order of the labels, of data sets whose readers do not name them.
CLASSES = {
    "cifar10": "airplane automobile bird cat deer dog frog horse ship truck".split(),
    "imagenette": [
        *("tench", "English springer", "cassette player", "chain saw", "church", "French horn"),
        *("garbage truck", "gas pump", "golf ball", "parachute"),
    ],
}
RANKED = {task.folder: task for task in TASKS.values()}  # by folder, in the leaderboards' order
