"""Entries: the JSON and TSV that DAWNBench ranks. Reads what anybody wrote, writes the form.

`DATASET/train/NAME.json` with its rows in NAME.tsv, and `DATASET/inference/NAME.json`. NAME is
AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK. Published files have a byte-order mark, Windows line ends,
blank lines, columns in another order, one-digit months, null prices, misc as text: all is read,
none of it is written. Plain Python.
"""

import datetime
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dawnbench_tf import entry_rules, entry_source, files, tasks
from dawnbench_tf.entry_rules import Grade
from dawnbench_tf.entry_source import Source, Unreadable, Violation
from dawnbench_tf.field_rules import date

_KEYS = {  # of texts: attribute, key in the JSON
    "version": "version",
    "author": "author",
    "author_email": "authorEmail",
    "framework": "framework",
    "code_url": "codeURL",
    "model": "model",
    "hardware": "hardware",
}


@dataclass(frozen=True)
class Entry:
    """One entry. What the other kind has, and figures that are not given, are None."""

    dataset: str  # folder of its task: CIFAR10
    kind: str  # train or inference
    name: str  # of its files, without suffix
    author: str  # as are all texts: "" if not given, spaces around them cut off
    author_email: str
    framework: str
    model: str
    hardware: str
    timestamp: datetime.date
    code_url: str = ""
    version: str = "v1.0"
    cost_per_hour: float | None = None  # training, USD
    rows: tuple[tuple[float, ...], ...] = ()  # training: values of the data set's columns
    latency: float | None = None  # inference: ms for one example
    cost: float | None = None  # inference: USD for one example
    metric: float | None = None  # inference
    misc: dict | None = None
    other: dict | None = None  # keys that the form does not know, as they are

    @property
    def ranking(self) -> tasks.Ranking:
        """What entries of its data set are held to."""
        return tasks.RANKED[self.dataset]

    def curve(self) -> list[tuple[float, float]]:
        """Hours and metric of each row."""
        return [(row[1], row[-1]) for row in self.rows]

    def first_hit(self, threshold: float | None = None) -> tuple[float, float] | None:
        """Hours and metric of the first row at the threshold, by default the data set's."""
        return first_hit(self.curve(), self.ranking.threshold if threshold is None else threshold)


def first_hit(curve: Iterable[tuple], threshold: float) -> tuple[float, float] | None:
    """Hours and metric of a curve's first row at the threshold, or past it: the one that counts."""
    return next((point for point in curve if point[1] >= threshold), None)


class Invalid(ValueError):
    """An entry that may not be written; `violations` says why."""

    def __init__(self, violations: list[Violation]):
        self.violations = violations
        super().__init__("; ".join(map(str, violations)))


def read(path: Path) -> Entry:
    """Reads an entry as anybody wrote it. Raises Unreadable for what can't be ranked."""
    return of(entry_source.load(path))


def of(source: Source) -> Entry:
    """The entry that files hold. Raises Unreadable."""
    given = source.fields
    day = date(given.get("timestamp"))
    if day is None:
        text = f"timestamp {entry_source.quoted(given.get('timestamp'))} should be YYYY-MM-DD"
        raise Unreadable(source.path, source.line("timestamp"), text)
    figures = {"costPerHour": None, "latency": None, "cost": None, source.ranking.metric: None}
    figures |= {key: _figure(source, key) for key in figures}
    training = source.kind == "train"
    if not training and figures["latency"] is None and figures["cost"] is None:
        raise Unreadable(source.path, 1, "has neither latency nor cost")
    misc = given.get("misc")
    known = {*_KEYS.values(), *figures, "timestamp", "misc"}
    return Entry(
        dataset=source.dataset,
        kind=source.kind,
        name=source.path.stem,
        **{name: " ".join(str(given.get(key) or "").split()) for name, key in _KEYS.items()},
        timestamp=day,
        cost_per_hour=figures["costPerHour"],
        rows=_rows(source) if training else (),
        latency=figures["latency"],
        cost=figures["cost"],
        metric=figures[source.ranking.metric],
        misc=misc if isinstance(misc, dict) or misc is None else {"text": misc},
        other={key: value for key, value in given.items() if key not in known},
    )


def _figure(source, key):
    value = source.fields.get(key)
    if value is not None and not entry_source.is_number(value):
        text = f"{key} is {entry_source.quoted(value)}; should be a number"
        raise Unreadable(source.path, source.line(key), text)
    return None if value is None else float(value)


def _rows(source):
    columns = source.ranking.columns
    if source.header is None:
        raise Unreadable(source.table, 1, "is not there; should hold the entry's rows")
    if not set(columns) <= set(source.header):
        raise Unreadable(source.table, 1, f"should have columns {' '.join(columns)}")
    places, rows = [source.header.index(name) for name in columns], []
    for line, cells in source.rows:
        values = [entry_source.number(cells[at]) if at < len(cells) else None for at in places]
        if None in values:
            text = f"{' '.join(columns)} should be numbers, one tab between two"
            raise Unreadable(source.table, line, text)
        rows.append(tuple(values))
    return tuple(rows)


def texts(entry: Entry) -> tuple[str, str | None]:
    """What an entry's two files hold: the JSON, and the TSV of a training entry."""
    figures = {
        "costPerHour": entry.cost_per_hour,
        "latency": entry.latency,
        "cost": entry.cost,
        entry.ranking.metric: entry.metric,
    }
    fields = {key: getattr(entry, name) for name, key in _KEYS.items()}
    if not entry.code_url:
        del fields["codeURL"]
    fields |= {key: value for key, value in figures.items() if value is not None}
    fields |= {"timestamp": entry.timestamp.isoformat(), **(entry.other or {})}
    if entry.misc is not None:
        fields["misc"] = entry.misc
    rows = (map(_written, row) for row in entry.rows)
    lines = ["\t".join(row) for row in (entry.ranking.columns, *rows)]
    table = "\n".join(lines) + "\n" if entry.kind == "train" else None
    return json.dumps(fields, indent=4) + "\n", table


def _written(value):
    """The shortest text that reads as the same number."""
    return repr(value).removesuffix(".0")


def violations(entry: Entry, grade: Grade = Grade.FORM) -> list[Violation]:
    """What would be wrong with an entry's files."""
    path = Path(entry.dataset, entry.kind, f"{entry.name}.json")
    head, table = texts(entry)
    try:
        source = entry_source.parse(path, head.encode(), None if table is None else table.encode())
    except Unreadable as error:
        return [error.violation]
    return entry_rules.violations(source, grade)


def write(folder: Path, entry: Entry) -> Path:
    """Writes an entry's files below `folder`, whole or not at all; returns the JSON's path.

    Raises Invalid for an entry that breaks a rule, Refusal if it can't be written.
    """
    if found := violations(entry):
        raise Invalid(found)
    return put(folder / entry.dataset / entry.kind, entry)


def put(home: Path, entry: Entry) -> Path:
    """The same into the very folder, without asking the rules."""
    files.make_folder(home)
    head, table = texts(entry)
    path = home / f"{entry.name}.json"
    if table is not None:
        files.write_whole(path.with_suffix(".tsv"), table)
    files.write_whole(path, head)
    return path
