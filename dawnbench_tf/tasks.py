"""What is measured: data set, metric, threshold. The benchmark's constants live here, once."""

from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Task:
    """One task of the benchmark, or one embedded task of ours."""

    name: str
    folder: str  # of its entries: FOLDER/train/NAME.json
    metric: str  # TSV column that is held against the threshold
    threshold: float  # in the metric's unit; reached when metric >= threshold
    highest: float  # value of a perfect metric: 100 for percent, 1 for a fraction
    train_examples: int
    test_examples: int  # every one is scored exactly once
    kind: str  # "images" to classes, or "questions" on passages
    classes: int  # 0 for questions
    score: str  # function in scores.py
    loss: str  # function in losses.py
    benchmark: bool  # one of DAWNBench's own; embedded tasks are ranked apart


_CIFAR10 = Task(
    name="cifar10",
    folder="CIFAR10",
    metric="top1Accuracy",
    threshold=94.0,
    highest=100.0,
    train_examples=50_000,
    test_examples=10_000,
    kind="images",
    classes=10,
    score="top1",
    loss="softmax_cross_entropy",
    benchmark=True,
)
_DIGITS = Task(
    name="digits",
    folder="digits",
    metric="top1Accuracy",
    threshold=98.0,
    highest=100.0,
    train_examples=1_297,
    test_examples=500,
    kind="images",
    classes=10,
    score="top1",
    loss="softmax_cross_entropy",
    benchmark=False,
)
_SQUAD = Task(
    name="squad",
    folder="SQuAD",
    metric="f1Score",
    threshold=0.75,
    highest=1.0,
    train_examples=87_599,
    test_examples=10_570,
    kind="questions",
    classes=0,
    score="squad",
    loss="span_cross_entropy",
    benchmark=True,
)
_QA_MINI = replace(
    _SQUAD,
    name="qa_mini",
    folder="qa_mini",
    train_examples=4_200,
    test_examples=600,
    benchmark=False,
)

TASKS = {task.name: task for task in (_CIFAR10, _SQUAD, _DIGITS, _QA_MINI)}


class Ranking(NamedTuple):
    """What entries of one data set are held to."""

    columns: tuple[str, ...]  # of the TSV; the last is the metric
    threshold: float
    highest: float  # value of a perfect metric
    benchmark: bool

    @property
    def metric(self) -> str:
        """Column that is held against the threshold."""
        return self.columns[-1]


RANKED = {  # by folder of the entries; embedded tasks last, apart from the benchmark's own
    "ImageNet": Ranking(  # ranked, not trained here yet
        ("epoch", "hours", "top1Accuracy", "top5Accuracy"), 93.0, 100.0, benchmark=True
    ),
    **{
        task.folder: Ranking(
            ("epoch", "hours", task.metric), task.threshold, task.highest, task.benchmark
        )
        for task in sorted(TASKS.values(), key=lambda task: not task.benchmark)
    },
}
