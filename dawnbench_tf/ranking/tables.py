"""Rankings of results: DAWNBench's twelve tables, and those of embedded tasks after them.

Time is the first row's at the threshold, or past it; of equal figures the earlier date ranks first,
then the name. Plain Python.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from dawnbench_tf.money import dollars
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.tasks import RANKED

__all__ = ["Table", "rank", "records"]


class Figure(NamedTuple):
    """What a table ranks by; less is better."""

    name: str
    phase: str  # of the entries that have it
    find: Callable[[Result], float | None]  # None: not ranked
    written: Callable[[float], str]

    def of(self, result: Result) -> float:
        """The figure of a result that the table ranks. Raises ValueError for one it does not."""
        value = self.find(result)
        if value is None:
            raise ValueError(f"{result.name} has no {self.name}")
        return value


class Table(NamedTuple):
    """A ranking: the best first."""

    dataset: str
    figure: Figure
    rows: list[Result]


def clock(hours: float) -> str:
    """Hours as h:mm:ss, seconds rounded up as DAWNBench's page does.

    >>> clock(0.3127), clock(10.0), clock(26 / 3600), clock(1.1)
    ('0:18:46', '10:00:00', '0:00:26', '1:06:00')
    """
    seconds = math.ceil(round(hours * 3600, 9))  # 1.1 hours are 3960 s, not a bit more
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _of_10_000(result):
    return None if result.usd is None else result.usd * 10_000


FIGURES = (
    Figure("training time", "train", lambda result: result.hours, clock),
    Figure("training cost", "train", lambda result: result.usd, dollars),
    Figure("inference latency", "inference", lambda result: result.latency, "{:,.4f} ms".format),
    Figure("inference cost of 10,000", "inference", _of_10_000, "${:,.4f}".format),
)


def rank(results: list[Result]) -> list[Table]:
    """All tables that hold a result; results with reasons against it are in none."""
    tables, of_kind = [], defaultdict(list)
    for result in results:
        if not result.reasons:
            of_kind[result.dataset, result.phase].append(result)
    for dataset in RANKED:
        for figure in FIGURES:
            entries = of_kind[dataset, figure.phase]
            ranked = [result for result in entries if figure.find(result) is not None]
            ranked.sort(key=lambda result: (figure.of(result), result.date, result.name))  # noqa: B023
            if ranked:
                tables.append(Table(dataset, figure, ranked))
    return tables


def records(table: Table) -> list[Result]:
    """The entries that were the best of their table on their day, the earliest first."""
    figure = table.figure.of
    best: list[Result] = []
    for result in sorted(table.rows, key=lambda row: (row.date, figure(row), row.name)):
        if not best or figure(result) < figure(best[-1]):
            best.append(result)
    return best
