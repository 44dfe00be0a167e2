"""Rankings of results: DAWNBench's twelve tables, and those of embedded tasks after them.

Time is the first row's at the threshold, or past it; of equal figures the earlier date ranks first,
then the name. Plain Python.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from dawnbench_tf import tasks
from dawnbench_tf.results import Result


class Figure(NamedTuple):
    """What a table ranks by; less is better."""

    name: str
    kind: str  # of the entries that have it
    of: Callable[[Result], float | None]  # None: not ranked
    written: Callable[[float], str]


class Table(NamedTuple):
    """A ranking: the best first."""

    dataset: str
    figure: Figure
    rows: list[Result]


def clock(hours: float) -> str:
    """Hours as h:mm:ss, seconds rounded up as DAWNBench's page does.

    >>> clock(0.3127), clock(10.0), clock(26 / 3600)
    ('0:18:46', '10:00:00', '0:00:26')
    """
    seconds = math.ceil(hours * 3600)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def dollars(usd: float) -> str:
    """US dollars in cents, what is less to two digits.

    >>> dollars(1112.6402), dollars(0.00123)
    ('$1,112.64', '$0.0012')
    """
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${float(f'{usd:.2g}'):.12f}".rstrip("0")


def _of_10_000(result):
    return None if result.usd is None else result.usd * 10_000


FIGURES = (
    Figure("training time", "train", lambda it: it.hours, clock),
    Figure("training cost", "train", lambda it: it.usd, dollars),
    Figure("inference latency", "inference", lambda it: it.latency, "{:,.4f} ms".format),
    Figure("inference cost of 10,000", "inference", _of_10_000, "${:,.4f}".format),
)


def tables(found: list[Result]) -> list[Table]:
    """All tables that hold a result."""
    made = []
    for dataset in tasks.RANKED:
        for figure in FIGURES:
            entries = [it for it in found if (it.dataset, it.kind) == (dataset, figure.kind)]
            ranked = [(figure.of(it), it.date, it.name, it) for it in entries]
            ranked = sorted((row for row in ranked if row[0] is not None), key=lambda row: row[:3])
            if ranked:
                made.append(Table(dataset, figure, [row[-1] for row in ranked]))
    return made


def records(table: Table) -> list[Result]:
    """The entries that were the best of their table on their day, the earliest first."""
    found = []
    for row in sorted(table.rows, key=lambda it: (it.date, table.figure.of(it), it.name)):
        if not found or table.figure.of(row) < table.figure.of(found[-1]):
            found.append(row)
    return found
