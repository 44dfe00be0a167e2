"""Entry files as they are found: JSON with the line of each key, TSV with the line of each row.

Nothing is converted here. What can't be read as the format at all raises Unreadable, whose message
is one line: `file:line: what, and what is right`. Plain Python.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from dawnbench_tf.refusals import one_line, shown
from dawnbench_tf.runs import NOT_RANKED, RECIPE
from dawnbench_tf.tasks import RANKED, Task

PHASES = ("train", "inference")
LARGEST = 16 * 2**20  # bytes of a file; the largest published one has 20,000

Complaints = Iterator[tuple[int, str]]  # line of a file, what is wrong there: what rules yield

_NEXT_KEY = re.compile(r'[\s,]*"')
_COLON = re.compile(r"\s*:\s*")


class Violation(NamedTuple):
    """One thing that is wrong with an entry."""

    path: Path
    line: int
    rule: str
    text: str  # what, and what is right

    def __str__(self):
        return f"{self.place()}:{self.line}: {one_line(self.text, 400)}"

    def place(self) -> str:
        """Its file as one would name it from here."""
        try:
            return shown(self.path.relative_to(Path.cwd()))
        except (ValueError, OSError):  # elsewhere, or the working directory is gone
            return shown(self.path)


class Unreadable(ValueError):
    """A file that is no entry."""

    def __init__(self, path: Path, line: int, text: str):
        self.violation = Violation(path, line, "readable", text)
        super().__init__(str(self.violation))


def quoted(value: object) -> str:
    """A stranger's value as a message shows it."""
    text = value[:300] if isinstance(value, str) else value
    try:
        return shown(one_line(repr(text), 60))
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return f"a {type(value).__name__}"


def number(cell: str) -> float | None:
    """The finite number that a cell holds, if it does."""
    try:
        value = float(cell) if len(cell) < 100 else math.nan
    except ValueError:
        return None
    plain = cell.isascii() and "_" not in cell  # Python's own spellings are no numbers in a TSV
    return value if plain and math.isfinite(value) else None


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a finite number, as a float would hold it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of 309 digits or more
        return False


@dataclass(frozen=True)
class Source:
    """An entry's two files, as they are found."""

    path: Path  # DATASET/train/NAME.json
    fields: dict[str, Any]
    lines: dict[str, int]  # of each key
    repeated: tuple[str, ...]  # keys that come twice
    has_table: bool  # whether there is a TSV
    header: tuple[str, ...]  # of the TSV
    rows: tuple[tuple[int, tuple[str, ...]], ...]  # of the TSV: line, cells

    @property
    def dataset(self) -> str:
        """Folder of its task."""
        return self.path.parent.parent.name

    @property
    def phase(self) -> str:
        """train or inference, as its folder says."""
        return self.path.parent.name

    @property
    def table(self) -> Path:
        """Path of the TSV."""
        return self.path.with_suffix(".tsv")

    @property
    def task(self) -> Task:
        """The task of its data set's entries. Raises KeyError for an unknown folder."""
        return RANKED[self.dataset]

    @property
    def misc(self) -> dict[str, Any]:
        """Its misc, if that is an object; else {}."""
        misc = self.fields.get("misc")
        return misc if isinstance(misc, dict) else {}

    def line(self, key: str) -> int:
        """Where a key is; the first line if it is not there."""
        return self.lines.get(key, 1)

    def column(self, name: str) -> list[tuple[int, float]]:
        """Line and value of each cell of a column, as far as it is there and holds numbers."""
        return self._columns.get(name, [])

    @cached_property
    def _columns(self):
        columns: dict[str, list[tuple[int, float]]] = {}
        for place, name in enumerate(self.header):
            cells = ((line, number(row[place])) for line, row in self.rows if place < len(row))
            columns.setdefault(name, [(line, value) for line, value in cells if value is not None])
        return columns


def load(path: Path) -> Source:
    """Reads an entry: a JSON file, and the TSV beside it if there is one. Raises Unreadable."""
    path = path.absolute()  # its folders tell data set and kind
    table = path.with_suffix(".tsv")
    rows = _bytes(table) if table.exists() or table.is_symlink() else None
    return parse(path, _bytes(path), rows)


def parse(path: Path, entry: bytes, rows: bytes | None) -> Source:
    """What files with these contents are as an entry; nothing is read from disk.

    Args:
      path: of the JSON; its folders tell data set and phase.
      entry: bytes of the JSON.
      rows: bytes of the TSV; None: there is none.

    Raises:
      Unreadable: they can't be read as the format at all.
    """
    fields, lines, repeated = _object(path, _text(path, entry))
    table = ((), ()) if rows is None else _table(_text(path.with_suffix(".tsv"), rows))
    return Source(path, fields, lines, repeated, rows is not None, *table)


def _bytes(path):
    try:
        if not path.is_file():
            raise Unreadable(path, 1, "is no regular file; should be a file of text")
        if path.stat().st_size > LARGEST:
            raise Unreadable(path, 1, f"is larger than {LARGEST >> 20} MiB; should be an entry")
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, 1, f"can't be read ({one_line(str(error.strerror))})") from None


def _text(path, content):
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(path, line, "should be text in UTF-8") from None


def _object(path, text):
    """A JSON object's fields, the line of each, and the keys that come twice."""
    try:
        fields = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise Unreadable(path, error.lineno, f"should be JSON: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(path, 1, f"should be JSON: {one_line(error, 80)}") from None
    if not isinstance(fields, dict):
        raise Unreadable(path, 1, "should be a JSON object")
    lines: dict[str, int] = {}
    repeated, at, decoder = [], text.index("{") + 1, json.JSONDecoder()
    line, counted = 1, 0
    while match := _NEXT_KEY.match(text, at):
        line, counted = line + text.count("\n", counted, match.end()), match.end()
        key, at = decoder.raw_decode(text, match.end() - 1)
        colon = _COLON.match(text, at)
        _, at = decoder.raw_decode(text, colon.end() if colon else at)
        if key in lines:
            repeated.append(key)
        lines.setdefault(key, line)
    return fields, lines, tuple(repeated)


def _no_number(name):
    raise ValueError(f"{name} is no number in JSON")


def _table(text):
    """Header and rows, blank lines left out, spaces around cells cut off."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = tuple(
        (number, tuple(cell.strip() for cell in line.split("\t")))
        for number, line in enumerate(lines, 1)
        if line.strip()
    )
    return (rows[0][1], rows[1:]) if rows else ((), ())


def find(root: Path, problems: list[Violation], misses: bool = False) -> Iterator[Path]:
    """All JSON and TSV files in folders named for a phase, at or below `root`, in order.

    Links to folders are not followed; a run's own files are none of an entry, whatever its folder
    is called.

    Args:
      root: where to look.
      problems: folders that can't be read are added to it.
      misses: whether to look below `not_an_entry/` as well.
    """

    def unreadable(error):
        why = f"can't be read ({one_line(error.strerror)})"
        problems.append(Violation(Path(error.filename), 1, "readable", why))

    for folder, below, names in os.walk(root.absolute(), onerror=unreadable):
        below[:] = sorted(
            name for name in below if name[0] != "." and (misses or name != NOT_RANKED)
        )
        if os.path.basename(folder) in PHASES and RECIPE not in names:
            for name in sorted(names):
                if name.endswith((".json", ".tsv")) and not name.startswith("."):
                    yield Path(folder, name)
