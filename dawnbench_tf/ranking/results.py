"""Results of entries: what leaderboards rank. The published ones ship with the package.

Plain Python.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dawnbench_tf.refusals import Refusal, shown
from dawnbench_tf.runs import NOT_RANKED
from dawnbench_tf.submission import rules
from dawnbench_tf.submission.entry import Entry, entry_from_source, first_at
from dawnbench_tf.submission.field_rules import is_link
from dawnbench_tf.submission.rules import Grade
from dawnbench_tf.submission.source import Unreadable, Violation, find, load
from dawnbench_tf.tasks import RANKED

__all__ = ["Result", "published", "read_tree"]

# Both are made by scripts/published_results.py.
PUBLISHED = Path(__file__).with_name("published.tsv")  # a row for each of 118 entries
CURVES = Path(__file__).with_name("published_curves.tsv")  # a row for each of their evaluations
LONGEST = 200  # characters of a text that is shown
MOST_FLAWS = 5  # of an entry that are told
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
    file: str = ""  # its JSON; "" of those that ship with the package
    flaws: tuple[str, ...] = ()  # why its figures can't be ranked, whatever the threshold
    missed: str = ""  # why not at this threshold

    @property
    def folder(self) -> str:
        """The name of the folder that its tree is in: a run's, mostly; "" if that ships with us."""
        if not self.file:
            return ""
        root = Path(self.file).absolute().parents[2]
        return shown((root.parent if root.name == NOT_RANKED else root).name)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not ranked; () if it is."""
        return (*self.flaws, self.missed) if self.missed else self.flaws


def columns() -> list[str]:
    """Columns of published.tsv: the facts of a Result but for its curve."""
    own = ("curve", "mine", "file", "flaws", "missed")
    return [item.name for item in fields(Result) if item.name not in own]


def of_entry(entry: Entry, flaws: tuple[str, ...] = ()) -> Result:
    """An entry's facts, its texts made fit to be shown, at its task's threshold."""
    training, score = entry.phase == "train", entry.score
    if score is not None and entry.task.highest == 1 < score:
        score /= 100  # percent where a fraction is due: one published entry
    result = Result(
        dataset=entry.dataset,
        phase=entry.phase,
        name=shown(entry.name),
        author=_text(entry.author),
        model=_text(entry.model),
        framework=_text(entry.framework),
        hardware=_text(entry.hardware),
        date=entry.timestamp.isoformat(),
        url=entry.code_url if is_link(entry.code_url) else "",
        score=score,
        hours=None,
        latency=entry.latency,
        usd=None if training else entry.cost,
        usd_per_hour=entry.cost_per_hour,
        curve=tuple(entry.curve()),
        flaws=flaws,
    )
    return at(result, entry.task.threshold)


def _text(text):
    return shown(text[:LONGEST])


def at(result: Result, threshold: float) -> Result:
    """A result at some threshold: of a training the first row at it counts."""
    metric, score = RANKED[result.dataset].metric, result.score
    if result.phase != "train":
        below = score is None or score < threshold
        missed = f"{metric} is {_shown(score)}; should be at least {threshold:g}" if below else ""
        return replace(result, missed=missed)
    best = max((score for _, score in result.curve), default=None)
    hours, score = first_at(result.curve, threshold) or (None, None)
    price = result.usd_per_hour
    usd = None if hours is None or price is None else hours * price
    missed = f"{metric} never reached {threshold:g}; its best is {_shown(best)}"
    missed = missed if hours is None else ""
    return replace(result, hours=hours, score=score, usd=usd, missed=missed)


def _shown(score):
    return "not given" if score is None else f"{score:g}"


def read_tree(root: Path, misses: bool = False) -> tuple[list[Result], list[str]]:
    """All results below a folder.

    Args:
      root: an entry tree, a run's folder, or one that holds such.
      misses: whether what may not be ranked counts too: what lies under `not_an_entry/`.

    Returns:
      The results, those that may not be ranked with their reasons; one line for each entry that
      can't be read.

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
                results.append(_of_file(path))
            except Unreadable as error:
                problems.append(error.violation)
    return results, [str(problem) for problem in problems]


def _of_file(path):
    source = load(path)
    entry = entry_from_source(source)
    broken = rules.find_violations(source, Grade.RANKED)
    flaws = [shown(v.text) for v in broken if v.rule not in rules.THRESHOLD_RULES]
    return replace(of_entry(entry, tuple(flaws[:MOST_FLAWS])), file=str(path))


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
