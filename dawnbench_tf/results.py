"""Results of entries: what leaderboards rank. The published ones ship with the package.

Plain Python.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path

from dawnbench_tf import entry as entry_files
from dawnbench_tf import entry_source, tasks
from dawnbench_tf.entry import Entry
from dawnbench_tf.entry_source import Unreadable, shown
from dawnbench_tf.settings import Refusal

# Both are made by scripts/published_results.py.
PUBLISHED = Path(__file__).with_name("published.tsv")  # a row for each of 118 entries
CURVES = Path(__file__).with_name("published_curves.tsv")  # a row for each of their evaluations
CURVE_COLUMNS = ("dataset", "name", "hours", "metric")


@dataclass(frozen=True, eq=False)  # two runs may well have the same facts
class Result:
    """One entry's facts. Absent figures are None."""

    dataset: str  # folder of its task: CIFAR10
    kind: str  # train or inference
    name: str  # of its files, without suffix
    author: str
    model: str
    framework: str
    hardware: str
    date: str  # YYYY-MM-DD
    url: str  # "" if none
    metric: float | None  # training: the first at the threshold
    hours: float | None  # training: of that row
    latency: float | None  # inference: ms for one example
    usd: float | None  # to train to the threshold, or of one inference
    usd_per_hour: float | None  # training: of the hardware
    curve: tuple[tuple[float, float], ...] = ()  # training: hours and metric of each row
    mine: bool = False


def columns() -> list[str]:
    """Columns of published.tsv: the fields of a Result but for `curve` and `mine`."""
    return [item.name for item in fields(Result) if item.name not in ("curve", "mine")]


def of(entry: Entry) -> Result:
    """An entry's facts, its texts made fit to be shown."""
    names = ("author", "model", "framework", "hardware")
    training, metric = entry.kind == "train", entry.metric
    if metric is not None and entry.ranking.highest == 1 < metric:
        metric /= 100  # percent where a fraction is due: one published entry
    found = Result(
        dataset=entry.dataset,
        kind=entry.kind,
        name=shown(entry.name),
        **{name: shown(getattr(entry, name)) for name in names},
        date=entry.timestamp.isoformat(),
        url=entry.code_url if entry.code_url.startswith(("http://", "https://")) else "",
        metric=metric,
        hours=None,
        latency=entry.latency,
        usd=None if training else entry.cost,
        usd_per_hour=entry.cost_per_hour,
        curve=tuple(entry.curve()),
    )
    return at(found, entry.ranking.threshold)


def at(result: Result, threshold: float) -> Result:
    """A training result at some threshold: the first row at it counts. Others as they are."""
    if result.kind != "train":
        return result
    hours, metric = entry_files.first_hit(result.curve, threshold) or (None, None)
    price = result.usd_per_hour
    usd = None if hours is None or price is None else hours * price
    return replace(result, hours=hours, metric=metric, usd=usd)


def read_tree(root: Path) -> tuple[list[Result], list[str]]:
    """All results below `root`, and one line for each entry that can't be read.

    Args:
      root: of an entry tree, a run's folder, or one that holds such.

    Raises Refusal if there is no such folder.
    """
    if not root.is_dir():
        raise Refusal(f"{root}: is no folder; should be an entry tree or the folder of a run")
    found, problems = [], []
    for path in entry_source.find(root, problems):
        if path.suffix == ".json" and path.parent.parent.name in tasks.RANKED:
            try:
                found.append(of(entry_files.read(path)))
            except Unreadable as error:
                problems.append(error.violation)
    return found, [str(problem) for problem in problems]


def published() -> list[Result]:
    """The results of all 118 entries that DAWNBench published, 2017 to 2020, with their curves."""
    curves = defaultdict(list)
    for row in _table(CURVES):
        curves[row["dataset"], row["name"]].append((float(row["hours"]), float(row["metric"])))
    return [_from_row(row, curves) for row in _table(PUBLISHED)]


def _table(path):
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _from_row(row, curves):
    numbers = {"metric", "hours", "latency", "usd", "usd_per_hour"}
    values = {name: (float(v) if v else None) if name in numbers else v for name, v in row.items()}
    training = row["kind"] == "train"
    return Result(**values, curve=tuple(curves[row["dataset"], row["name"]]) if training else ())
