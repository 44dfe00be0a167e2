"""Rankings of results: DAWNBench's twelve tables, then those of other tasks.

Training time is that of the first row that reaches the threshold. Equal figures rank by date, then
by name. Plain Python.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dawnbench_tf.ranking.results import Result
from dawnbench_tf.tasks import RANKED, Task
from dawnbench_tf.terminal import dollars

__all__ = ["Table", "rank", "records"]


class Figure(NamedTuple):
    """The figure that a table ranks by; less is better."""

    name: str
    phase: str  # phase of the entries that have it: train or inference
    value: Callable[[Result], Any]  # a float; None: not ranked
    format: Callable[[float], str]


class Table(NamedTuple):
    """A ranking of results, the best first.

    Attributes:
      task: the task; its number of training examples is left open.
      figure: the figure that the table ranks by.
      rows: the results, the best first.
    """

    task: Task
    figure: Figure
    rows: list[Result]

    @property
    def dataset(self) -> str:
        """The folder of the task, e.g. "CIFAR10"."""
        return self.task.folder

    @property
    def title(self) -> str:
        """The data set, with what tells apart tasks of your own that have one name."""
        return title(self.task)


def title(task: Task) -> str:
    """Returns the title of a task's tables."""
    if not task.is_own:
        return task.folder
    goal = f"{task.metric} {task.threshold:g} on {task.test_examples:,} examples"
    return f"{task.folder} (your own: {goal})"


def format_hours(hours: float) -> str:
    """Formats hours as h:mm:ss, with seconds rounded up as on DAWNBench's page.

    >>> format_hours(0.3127), format_hours(10.0), format_hours(26 / 3600), format_hours(1.1)
    ('0:18:46', '10:00:00', '0:00:26', '1:06:00')
    """
    seconds = math.ceil(round(hours * 3600, 9))  # 1.1 * 3600 is slightly over 3960
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _milliseconds(latency: float) -> str:
    return f"{latency:,.4f} ms" if latency >= 0.001 else f"{latency:.2g} ms"


FIGURES = (
    Figure("training time", "train", lambda result: result.hours, format_hours),
    Figure("training cost", "train", lambda result: result.usd, dollars),
    Figure("inference latency", "inference", lambda result: result.latency, _milliseconds),
    Figure(
        "inference cost of 10,000",
        "inference",
        lambda result: None if result.usd is None else result.usd * 10_000,
        lambda usd: f"${usd:,.4f}" if usd >= 0.01 else dollars(usd),
    ),
)


def rank(results: list[Result]) -> list[Table]:
    """Ranks results in DAWNBench's tables, and in those of other tasks.

    Args:
      results: of any tasks and phases; those with `reasons` are not ranked.

    Returns:
      The tables that are not empty: tasks in the order of `order`, figures in `FIGURES`' order.
    """
    tables, by_phase = [], defaultdict(list)
    for result in results:
        if not result.reasons:
            by_phase[result.task.comparable, result.phase].append(result)
    for task in order({result.task for result in results}):
        for figure in FIGURES:
            entries = by_phase[task, figure.phase]
            ranked = [result for result in entries if figure.value(result) is not None]
            ranked.sort(key=lambda result: (figure.value(result), result.date, result.name))
            if ranked:
                tables.append(Table(task, figure, ranked))
    return tables


def order(tasks: Iterable[Task]) -> list[Task]:
    """Returns tasks in the order of tables: the library's, then those of your own by name."""
    # Tasks that differ in their number of training examples only are one.
    ranks = {task.folder: index for index, task in enumerate(RANKED.values())}
    comparable = {task.comparable for task in tasks}
    return sorted(
        comparable, key=lambda task: (ranks.get(task.folder, len(ranks)), task.name, repr(task))
    )


def records(table: Table) -> list[Result]:
    """Returns the rows of `table` that were its best on their date, the earliest first."""
    figure = table.figure.value
    best: list[Result] = []
    for result in sorted(table.rows, key=lambda row: (row.date, figure(row), row.name)):
        if not best or figure(result) < figure(best[-1]):
            best.append(result)
    return best
