"""Reads and writes DAWNBench entries: JSON and TSV files.

Files: `DATASET/train/NAME.json` with its rows in NAME.tsv, and `DATASET/inference/NAME.json`; NAME
is AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK. The reader accepts what published files contain: byte-order
marks, Windows line ends, blank lines, reordered columns, one-digit months, null prices, misc as
text. The writer produces the documented form only. Plain Python.
"""

import datetime
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission import rules
from dawnbench_tf.submission.rules import Grade, date
from dawnbench_tf.submission.source import (
    Source,
    Unreadable,
    Violation,
    find_task,
    is_number,
    load,
    number,
    parse,
    quoted,
)
from dawnbench_tf.tasks import Task

__all__ = ["Entry", "read_entry", "write_entry", "check"]

_KEYS = {  # text fields: attribute -> key in the JSON
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
    """One entry. Fields of the other phase and figures that are not stated are None.

    Texts are stripped of surrounding spaces; "" if not stated.

    Attributes:
      dataset: folder of its task, e.g. "CIFAR10".
      phase: "train" or "inference".
      name: name of its files without suffix.
      author: author's name.
      author_email: author's e-mail address.
      framework: framework and its version.
      model: name of the model.
      hardware: description of the hardware.
      timestamp: date of the measurement; of a submission, the day it was packaged.
      code_url: address of the code.
      version: version of the benchmark.
      cost_per_hour: training: price of the hardware in USD per hour.
      rows: training: rows of the TSV, with the values of the task's columns.
      latency: inference: mean latency of one example in ms.
      cost: inference: cost of one example in USD.
      score: inference: score in the unit of the task's metric.
      misc: further facts.
      other: keys of the JSON that the form does not define, unchanged.
    """

    dataset: str
    phase: str
    name: str
    author: str
    author_email: str
    framework: str
    model: str
    hardware: str
    timestamp: datetime.date
    code_url: str = ""
    version: str = "v1.0"
    cost_per_hour: float | None = None
    rows: tuple[tuple[float, ...], ...] = ()
    latency: float | None = None
    cost: float | None = None
    score: float | None = None
    misc: dict[str, Any] | None = None
    other: dict[str, Any] | None = None

    @property
    def task(self) -> Task:
        """The task of its data set; a task of the author's own is stated in misc."""
        return find_task(self.dataset, self.misc)

    def curve(self) -> list[tuple[float, float]]:
        """Returns (hours, score) of each row."""
        hours, score = map(self.task.columns.index, ("hours", self.task.metric))
        return [(row[hours], row[score]) for row in self.rows]


def first_at(curve: Iterable[tuple[float, float]], threshold: float) -> tuple[float, float] | None:
    """Returns (hours, score) of the first point that reaches the threshold; None if none does."""
    return next((point for point in curve if point[1] >= threshold), None)


def read_entry(path: str | os.PathLike[str]) -> Entry:
    """Reads an entry: a JSON file and the TSV beside it.

    Args:
      path: DATASET/train/NAME.json or DATASET/inference/NAME.json.

    Raises:
      Unreadable: the files are not an entry that could be ranked.
    """
    return entry_from_source(load(Path(path)))


def entry_from_source(source: Source) -> Entry:
    """Converts parsed files to an `Entry`. Raises Unreadable if they could not be ranked."""
    fields = source.fields
    day = date(fields.get("timestamp"))
    if day is None:
        text = f"timestamp {quoted(fields.get('timestamp'))} should be YYYY-MM-DD"
        raise Unreadable(source.path, 1, text)
    training, figures = source.phase == "train", dict[str, float | None]()
    for key in ("costPerHour",) if training else ("latency", "cost", source.task.metric):
        value = fields.get(key)
        if value is not None and not is_number(value):
            raise Unreadable(source.path, 1, f"{key} is {quoted(value)}; should be a number")
        figures[key] = None if value is None else float(value)
    if not training and figures["latency"] is None and figures["cost"] is None:
        raise Unreadable(source.path, 1, "has neither latency nor cost")
    misc = fields.get("misc")
    known_keys = {*_KEYS.values(), *figures, "timestamp", "misc"}
    return Entry(
        dataset=source.dataset,
        phase=source.phase,
        name=source.path.stem,
        **{name: " ".join(str(fields.get(key) or "").split()) for name, key in _KEYS.items()},
        timestamp=day,
        cost_per_hour=figures.get("costPerHour"),
        rows=_parse_rows(source) if training else (),
        latency=figures.get("latency"),
        cost=figures.get("cost"),
        score=figures.get(source.task.metric),
        misc=misc if isinstance(misc, dict) or misc is None else {"text": misc},
        other={key: value for key, value in fields.items() if key not in known_keys},
    )


def _parse_rows(source: Source) -> tuple[tuple[float, ...], ...]:
    columns = source.task.columns
    if not source.has_table:
        raise Unreadable(source.table, 1, "is not there; should hold the entry's rows")
    if not set(columns) <= set(source.header):
        raise Unreadable(source.table, 1, f"should have columns {' '.join(columns)}")
    indices, rows = [source.header.index(name) for name in columns], []
    for line, cells in source.rows:
        values: list[Any] = [number(cells[i]) if i < len(cells) else None for i in indices]
        if None in values:
            text = f"{' '.join(columns)} should be numbers, one tab between two"
            raise Unreadable(source.table, line, text)
        rows.append(tuple(values))
    return tuple(rows)


def format_files(entry: Entry) -> tuple[str, str | None]:
    """Returns the contents of an entry's files: JSON, and TSV (None for an inference entry)."""
    figures = {
        "costPerHour": entry.cost_per_hour,
        "latency": entry.latency,
        "cost": entry.cost,
        entry.task.metric: entry.score,
    }
    fields = {key: getattr(entry, name) for name, key in _KEYS.items()}
    if not entry.code_url:
        del fields["codeURL"]
    fields |= {key: value for key, value in figures.items() if value is not None}
    fields |= {"timestamp": entry.timestamp.isoformat(), **(entry.other or {})}
    if entry.misc is not None:
        fields["misc"] = entry.misc
    # The shortest texts that parse to the same floats.
    rows = ([repr(float(value)).removesuffix(".0") for value in row] for row in entry.rows)
    lines = ["\t".join(row) for row in (entry.task.columns, *rows)]
    table = "\n".join(lines) + "\n" if entry.phase == "train" else None
    return json.dumps(fields, indent=4) + "\n", table


def check(entry: Entry, grade: Grade = Grade.FORM) -> list[Violation]:
    """Returns the violations that an entry's files would have, without writing them.

    Args:
      entry: the entry.
      grade: the strictest grade of rules to apply.
    """
    path = Path(entry.dataset, entry.phase, f"{entry.name}.json")
    try:
        head, table = format_files(entry)
        source = parse(path, head.encode(), None if table is None else table.encode())
    except Unreadable as error:
        return [error.violation]
    except KeyError:
        text = f"{quoted(entry.dataset)} is no data set, and misc states no task of that name"
        return [Violation(path, 1, "folder", text)]
    return rules.find_violations(source, grade)


def write_entry(folder: str | os.PathLike[str], entry: Entry, unchecked: bool = False) -> Path:
    """Writes an entry's files to FOLDER/DATASET/PHASE, each atomically.

    Args:
      folder: root of a tree of entries.
      entry: the entry to write.
      unchecked: whether to skip the rules.

    Returns:
      Path of the JSON file.

    Raises:
      Refusal: the entry breaks a rule of grade FORM or lower, unless `unchecked`; or a file can't
        be written.
    """
    if not unchecked and (violations := check(entry)):
        raise Refusal("; ".join(map(str, violations)))
    parent = Path(folder) / entry.dataset / entry.phase
    files.make_folder(parent)
    head, table = format_files(entry)
    path = parent / f"{entry.name}.json"
    if table is not None:  # first: a JSON without its rows would be a broken entry
        files.write_whole(path.with_suffix(".tsv"), table)
    files.write_whole(path, head)
    return path
