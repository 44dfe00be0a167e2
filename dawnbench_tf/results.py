"""Results of entries: what a leaderboard ranks, read out of entry trees as anybody wrote them.

An entry tree has DATASET/train/NAME.json with NAME.tsv, and DATASET/inference/NAME.json: the
published one, and every run's folder. Published files have a byte-order mark, Windows line ends,
blank lines, columns in another order, spaces around cells: all of it is read, columns by their
header. Plain Python.
"""

import csv
import datetime
import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

from dawnbench_tf import tasks
from dawnbench_tf.settings import Refusal, one_line

PUBLISHED = Path(__file__).with_name("published.tsv")  # made by scripts/published_results.py


@dataclass(frozen=True)
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
    url: str
    metric: float | None  # training: the first at the threshold
    hours: float | None  # training: of that row
    latency: float | None  # inference: ms for one example
    usd: float | None  # to train to the threshold, or of one inference
    mine: bool = False


class Unreadable(ValueError):
    """A file that is no entry; the message says where and what, in one line."""


def read_tree(root: Path, thresholds: dict[str, float] | None = None):
    """All results below `root`, and one line for each file that can't be read.

    Args:
      root: of an entry tree, or a run's folder.
      thresholds: by dataset, in place of the benchmark's own.

    Raises Refusal if there is no such folder.
    """
    if not root.is_dir():
        raise Refusal(f"{root}: is no folder; should be an entry tree or the folder of a run")
    found, problems = [], []
    for dataset, (metric, threshold) in tasks.RANKED.items():
        at_least = (thresholds or {}).get(dataset, threshold)
        for kind in ("train", "inference"):
            for path in sorted((root / dataset / kind).glob("*.json")):
                try:
                    found.append(_read(path, dataset, kind, metric, at_least))
                except Unreadable as error:
                    problems.append(str(error))
    return found, problems


def published() -> list[Result]:
    """The results of all 118 entries that DAWNBench published, 2017 to 2020."""
    with open(PUBLISHED, encoding="utf-8", newline="") as file:
        return [_from_row(row) for row in csv.DictReader(file, delimiter="\t")]


def _from_row(row):
    numbers = {"metric", "hours", "latency", "usd"}
    values = {name: (float(v) if v else None) if name in numbers else v for name, v in row.items()}
    return Result(**values)


def columns() -> list[str]:
    """Columns of published.tsv: the fields of a Result but for `mine`."""
    return [item.name for item in fields(Result) if item.name != "mine"]


def _read(path, dataset, kind, metric, threshold):
    entry = _json(path)
    texts = {
        name: " ".join(str(entry.get(key) or "").split())
        for name, key in (
            ("author", "author"),
            ("model", "model"),
            ("framework", "framework"),
            ("hardware", "hardware"),
            ("url", "codeURL"),
        )
    }
    common = {"dataset": dataset, "kind": kind, "name": path.stem, "date": _date(entry, path)}
    if kind == "inference":
        figures = {"metric": _number(entry, metric, path), "hours": None}
        figures |= {"latency": _number(entry, "latency", path), "usd": _number(entry, "cost", path)}
        if figures["latency"] is None and figures["usd"] is None:
            raise Unreadable(f"{path}: has neither latency nor cost")
    else:
        figures = _first_hit(path.with_suffix(".tsv"), metric, threshold)
        price = _number(entry, "costPerHour", path)
        hours = figures["hours"]
        figures["usd"] = None if None in (price, hours) else price * hours
    return Result(**common, **texts, **figures)


def _json(path):
    try:
        entry = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"{path}: can't be read as JSON ({one_line(error)})") from None
    if not isinstance(entry, dict):
        raise Unreadable(f"{path}: should be a JSON object")
    return entry


def _date(entry, path):
    text = str(entry.get("timestamp"))
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise Unreadable(f"{path}: timestamp {text[:40]!r} should be YYYY-MM-DD") from None


def _number(entry, key, path):
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unreadable(f"{path}: {key} should be a number, is {one_line(repr(value), 40)}")
    return float(value)


def _first_hit(path, metric, threshold):
    """Hours and metric of the first row at the threshold; None where there is none."""
    for line, row in _rows(path, metric):
        try:
            hours, value = float(row["hours"]), float(row[metric])
        except (ValueError, KeyError):
            raise Unreadable(f"{path}:{line}: hours and {metric} should be numbers") from None
        if value >= threshold:
            return {"metric": value, "hours": hours, "latency": None}
    return {"metric": None, "hours": None, "latency": None}


def _rows(path, metric):
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: can't be read ({one_line(error)})") from None
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    header = [cell.strip() for cell in lines[0][1].split("\t")] if lines else []
    if not {"hours", metric} <= set(header):
        raise Unreadable(f"{path}:1: should have columns hours and {metric}")
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in line.split("\t")]
        yield number, dict(zip(header, cells, strict=False))
