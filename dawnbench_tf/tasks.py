"""Tasks: data set, metric and threshold. The only place with the benchmark's constants."""

from dataclasses import dataclass, replace

GIVEN = "given"  # origin of examples that the caller passed to `train`


@dataclass(frozen=True)
class Task:
    """A task of the benchmark, or an embedded task of this library."""

    name: str
    folder: str  # of its entries: FOLDER/train/NAME.json
    columns: tuple[str, ...]  # of an entry's TSV; the last is the metric held to the threshold
    threshold: float  # in the metric's unit; reached when the metric is at least this
    highest: float  # value of a perfect metric: 100 for percent, 1 for a fraction
    train_examples: int
    test_examples: int  # every one is scored exactly once
    inputs: str  # "images" to classes, or "questions" on contexts: a room of data/
    classes: int  # 0 for questions
    image_size: int  # height and width of an image as a network sees it, in pixels; 0: questions
    scoring: str  # function in the scores.py of its room
    loss: str  # function in training/losses.py
    benchmark: bool  # one of DAWNBench's own; others are ranked apart
    jpegs: bool = False  # images come as JPEGs of any size
    blacklisted: int = 0  # test examples that some leave out, and say so
    embedded: bool = False  # comes with the packages: its data set is not on disk
    required: tuple[str, ...] = ()  # fields that a recipe of this task has to give

    @property
    def metric(self) -> str:
        """The column of an entry's TSV that the threshold is compared with."""
        return self.columns[-1]


_CIFAR10 = Task(
    name="cifar10",
    folder="CIFAR10",
    columns=("epoch", "hours", "top1Accuracy"),
    threshold=94.0,
    highest=100.0,
    train_examples=50_000,
    test_examples=10_000,
    inputs="images",
    classes=10,
    image_size=32,
    scoring="top1",
    loss="softmax_cross_entropy",
    benchmark=True,
)
_IMAGENET = replace(
    _CIFAR10,
    name="imagenet",
    folder="ImageNet",
    columns=("epoch", "hours", "top1Accuracy", "top5Accuracy"),
    threshold=93.0,
    train_examples=1_281_167,
    test_examples=50_000,
    classes=1000,
    image_size=224,
    jpegs=True,
    blacklisted=1_762,
    scoring="top1_and_top5",
)
# Ten classes of ImageNet; fast.ai's table has 85 to 87 % after five epochs at 128 pixels.
_IMAGENETTE = replace(
    _IMAGENET,
    name="imagenette",
    folder="Imagenette",
    columns=("epoch", "hours", "top1Accuracy"),
    threshold=80.0,
    train_examples=9_469,
    test_examples=3_925,
    classes=10,
    image_size=128,
    blacklisted=0,
    scoring="top1",
    benchmark=False,
)
_DIGITS = replace(
    _CIFAR10,
    name="digits",
    folder="digits",
    threshold=98.0,
    train_examples=1_297,
    test_examples=500,
    benchmark=False,
    embedded=True,
)
_SQUAD = Task(
    name="squad",
    folder="SQuAD",
    columns=("epoch", "hours", "f1Score"),
    threshold=0.75,
    highest=1.0,
    train_examples=87_599,
    test_examples=10_570,
    inputs="questions",
    classes=0,
    image_size=0,
    scoring="squad",
    loss="span_cross_entropy",
    benchmark=True,
    required=("bucket_boundaries",),
)
_QA_MINI = replace(
    _SQUAD,
    name="qa_mini",
    folder="qa_mini",
    train_examples=4_200,
    test_examples=600,
    benchmark=False,
    embedded=True,
)

TASKS = {task.name: task for task in (_IMAGENET, _CIFAR10, _SQUAD, _DIGITS, _QA_MINI, _IMAGENETTE)}
RANKED = {task.folder: task for task in TASKS.values()}  # by folder, in the leaderboards' order
