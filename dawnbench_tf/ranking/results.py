"""Results of entries: what leaderboards rank. The published ones ship with the package.

Plain Python.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission.entry import Entry, first_at, read_entry
from dawnbench_tf.submission.source import NOT_RANKED, Unreadable, Violation, find, shown
from dawnbench_tf.tasks import RANKED

# Both are made by scripts/published_results.py.
PUBLISHED = Path(__file__).with_name("published.tsv")  # a row for each of 118 entries
CURVES = Path(__file__).with_name("published_curves.tsv")  # a row for each of their evaluations
CURVE_COLUMNS = ("dataset", "name", "hours", "score")


@dataclass(frozen=True, eq=False)  # two runs may well have the same facts
class Result:
    """One entry's facts. Absent figures are None."""

    dataset: str  # folder of its task: CIFAR10
    phase: str  # train or inference
    name: str  # of its files, without suffix
    author: str
    model: str
    framework: str
    hardware: str
    date: str  # YYYY-MM-DD
    url: str  # "" if none
    score: float | None  # training: the first at the threshold
    hours: float | None  # training: of that row
    latency: float | None  # inference: ms for one example
    usd: float | None  # to train to the threshold, or of one inference
    usd_per_hour: float | None  # training: of the hardware
    curve: tuple[tuple[float, float], ...] = ()  # training: hours and score of each row
    mine: bool = False


def columns() -> list[str]:
    """Columns of published.tsv: the fields of a Result but for `curve` and `mine`."""
    return [item.name for item in fields(Result) if item.name not in ("curve", "mine")]


def of_entry(entry: Entry) -> Result:
    """An entry's facts, its texts made fit to be shown."""
    training, score = entry.phase == "train", entry.score
    if score is not None and entry.task.highest == 1 < score:
        score /= 100  # percent where a fraction is due: one published entry
    result = Result(
        dataset=entry.dataset,
        phase=entry.phase,
        name=shown(entry.name),
        author=shown(entry.author),
        model=shown(entry.model),
        framework=shown(entry.framework),
        hardware=shown(entry.hardware),
        date=entry.timestamp.isoformat(),
        url=entry.code_url if entry.code_url.startswith(("http://", "https://")) else "",
        score=score,
        hours=None,
        latency=entry.latency,
        usd=None if training else entry.cost,
        usd_per_hour=entry.cost_per_hour,
        curve=tuple(entry.curve()),
    )
    return at(result, entry.task.threshold)


def at(result: Result, threshold: float) -> Result:
    """A training result at some threshold: the first row at it counts. Others as they are."""
    if result.phase != "train":
        return result
    hours, score = first_at(result.curve, threshold) or (None, None)
    price = result.usd_per_hour
    usd = None if hours is None or price is None else hours * price
    return replace(result, hours=hours, score=score, usd=usd)


def read_tree(root: Path, misses: bool = False) -> tuple[list[Result], list[str]]:
    """All results below a folder.

    Args:
      root: an entry tree, a run's folder, or one that holds such.
      misses: whether what may not be ranked counts too: what lies under `not_an_entry/`.

    Returns:
      The results, and one line for each entry that can't be read.

    Raises:
      Refusal: there is no such folder.
    """
    if not root.is_dir():
        raise Refusal(f"{root}: is no folder; should be an entry tree or the folder of a run")
    results: list[Result] = []
    problems: list[Violation] = []
    for path in find(root, problems, misses):
        wanted = misses or NOT_RANKED not in path.parts
        if path.suffix == ".json" and path.parent.parent.name in RANKED and wanted:
            try:
                results.append(of_entry(read_entry(path)))
            except Unreadable as error:
                problems.append(error.violation)
    return results, [str(problem) for problem in problems]


def published() -> list[Result]:
    """The results of all 118 entries that DAWNBench published, 2017 to 2020, with their curves."""
    curves = defaultdict(list)
    for row in _table(CURVES):
        curves[row["dataset"], row["name"]].append((float(row["hours"]), float(row["score"])))
    return [_from_row(row, curves) for row in _table(PUBLISHED)]


def _table(path):
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _from_row(row, curves):
    numbers = {"score", "hours", "latency", "usd", "usd_per_hour"}
    values: dict[str, Any] = {
        name: (float(cell) if cell else None) if name in numbers else cell
        for name, cell in row.items()
    }
    training = row["phase"] == "train"
    return Result(**values, curve=tuple(curves[row["dataset"], row["name"]]) if training else ())
