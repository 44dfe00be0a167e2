"""Parses entry files: JSON with its repeated keys, TSV with the line number of each row.

Values are not converted. Files that can't be parsed raise Unreadable; its message is one line,
`file:line: the fault; what is expected`. Plain Python.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard

from dawnbench_tf.refusals import one_line, shown
from dawnbench_tf.run_folder import NOT_RANKED, RECIPE
from dawnbench_tf.tasks import RANKED, Task

PHASES = ("train", "inference")
LARGEST = 16 * 2**20  # bytes of a file, at most; the largest published one has 20,000


class Violation(NamedTuple):
    """One violation of a rule."""

    path: Path
    line: int
    rule: str
    text: str  # the fault and what is expected

    def __str__(self) -> str:
        return f"{self.display_path()}:{self.line}: {one_line(self.text, 400)}"

    def display_path(self) -> str:
        """Returns the file's path, relative to the working directory if it is below it."""
        try:
            return shown(self.path.relative_to(Path.cwd()))
        except (ValueError, OSError):  # elsewhere, or the working directory is gone
            return shown(self.path)


def stated_recipe(misc: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the recipe's values that an entry's misc states; {} if it states none."""
    recipe = (misc or {}).get("recipe")
    return recipe if isinstance(recipe, dict) else {}


def find_task(dataset: str, misc: Mapping[str, Any] | None) -> Task:
    """Returns the task of an entry in a folder: the library's, or its author's own in misc."""
    if dataset in RANKED:
        return RANKED[dataset]
    stated = stated_recipe(misc).get("task")
    if isinstance(stated, dict):
        try:
            task = Task.from_values(stated)
        except (ValueError, TypeError):
            raise KeyError(dataset) from None
        if task.folder == dataset and task.threshold:
            return task
    raise KeyError(dataset)


def has_task(path: Path) -> bool:
    """Whether an entry's JSON is in the folder of a task: the library's, or its author's own."""
    try:
        return path.parent.parent.name in RANKED or bool(load(path).task)
    except (Unreadable, KeyError):
        return False


class Unreadable(ValueError):
    """Raised for a file that can't be parsed as an entry."""

    def __init__(self, path: Path, line: int, text: str):
        self.violation = Violation(path, line, "readable", text)
        super().__init__(str(self.violation))


def quoted(value: object) -> str:
    """Returns an untrusted value, quoted, shortened and made printable for a message."""
    text = value[:300] if isinstance(value, str) else value
    try:
        return shown(one_line(repr(text), 60))
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return f"a {type(value).__name__}"


def number(cell: str) -> float | None:
    """Parses a TSV cell; None unless it is a finite number in plain notation."""
    try:
        value = float(cell) if len(cell) < 100 else math.nan
    except ValueError:
        return None
    plain = cell.isascii() and "_" not in cell  # float() also accepts 1_000 and other digits
    return value if plain and math.isfinite(value) else None


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a number that a float can hold, and finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of 309 digits or more
        return False


@dataclass(frozen=True)
class Source:
    """An entry's parsed files."""

    path: Path  # DATASET/train/NAME.json
    fields: dict[str, Any]
    repeated: tuple[str, ...]  # duplicate keys
    has_table: bool  # whether there is a TSV
    header: tuple[str, ...]  # of the TSV
    rows: tuple[tuple[int, tuple[str, ...]], ...]  # of the TSV: line, cells

    @property
    def dataset(self) -> str:
        """Folder of its task."""
        return self.path.parent.parent.name

    @property
    def phase(self) -> str:
        """Name of its folder: train or inference."""
        return self.path.parent.name

    @property
    def table(self) -> Path:
        """Path of the TSV."""
        return self.path.with_suffix(".tsv")

    @property
    def task(self) -> Task:
        """The task of its data set. Raises KeyError for an unknown folder."""
        return find_task(self.dataset, self.misc)

    @property
    def misc(self) -> dict[str, Any]:
        """The misc field; {} if it is no JSON object."""
        misc = self.fields.get("misc")
        return misc if isinstance(misc, dict) else {}

    def column(self, name: str) -> list[tuple[int, float]]:
        """Returns (line, value) of each cell of a column that contains a number."""
        return self._columns.get(name, [])

    @cached_property
    def _columns(self) -> dict[str, list[tuple[int, float]]]:
        columns: dict[str, list[tuple[int, float]]] = {}
        for index, name in enumerate(self.header):
            cells = ((line, number(row[index])) for line, row in self.rows if index < len(row))
            columns.setdefault(name, [(line, value) for line, value in cells if value is not None])
        return columns


def load(path: Path) -> Source:
    """Reads and parses a JSON file, and the TSV beside it if there is one. Raises Unreadable."""
    path = path.absolute()  # its folders are data set and phase
    table = path.with_suffix(".tsv")
    rows = _read_bytes(table) if table.exists() or table.is_symlink() else None
    return parse(path, _read_bytes(path), rows)


def parse(path: Path, entry: bytes, rows: bytes | None) -> Source:
    """Parses the contents of an entry's files, of the TSV if there is one. Raises Unreadable."""
    fields, repeated = _parse_object(path, _decode(path, entry))
    text = "" if rows is None else _decode(path.with_suffix(".tsv"), rows)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    table = tuple(
        (number, tuple(cell.strip() for cell in line.split("\t")))
        for number, line in enumerate(lines, 1)
        if line.strip()  # blank lines are skipped
    )
    header = table[0][1] if table else ()
    return Source(path, fields, repeated, rows is not None, header, table[1:])


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise Unreadable(path, 1, "is no regular file; should be a file of text")
        if path.stat().st_size > LARGEST:
            raise Unreadable(path, 1, f"is larger than {LARGEST >> 20} MiB; should be an entry")
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, 1, f"can't be read ({one_line(str(error.strerror))})") from None


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(path, line, "should be text in UTF-8") from None


def _parse_object(path: Path, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parses a JSON object. Returns its fields and the duplicate keys."""
    keys: list[str] = []

    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys[:] = [key for key, _ in pairs]  # the last call is the outermost object's
        return dict(pairs)

    try:
        fields = json.loads(text, parse_constant=_no_number, object_pairs_hook=to_dict)
    except json.JSONDecodeError as error:
        raise Unreadable(path, error.lineno, f"should be JSON: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(path, 1, f"should be JSON: {one_line(error, 80)}") from None
    if not isinstance(fields, dict):
        raise Unreadable(path, 1, "should be a JSON object")
    return fields, tuple(key for key, count in Counter(keys).items() if count > 1)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def find(root: Path, problems: list[Violation], misses: bool = False) -> Iterator[Path]:
    """Yields all JSON and TSV files in folders named train or inference, at or below `root`."""
    # Of links to folders only those to runs elsewhere are followed. Folders with a run are skipped,
    # whatever their name: a run's own JSON and TSV files are no entries. Folders that can't be read
    # are added to `problems`; with `misses` not_an_entry/ is searched too.

    def unreadable(error: OSError) -> None:
        reason = f"can't be read ({one_line(error.strerror)})"
        problems.append(Violation(Path(error.filename), 1, "readable", reason))

    for folder, below, names in os.walk(root.absolute(), onerror=unreadable):
        below[:] = sorted(
            name for name in below if name[0] != "." and (misses or name != NOT_RANKED)
        )
        for path in (Path(folder, name) for name in below):
            if path.is_symlink() and (path / RECIPE).is_file():
                if not path.resolve().is_relative_to(root.resolve()):
                    yield from find(path, problems, misses)
        if os.path.basename(folder) in PHASES and RECIPE not in names:
            for name in sorted(names):
                if name.endswith((".json", ".tsv")) and not name.startswith("."):
                    yield Path(folder, name)
