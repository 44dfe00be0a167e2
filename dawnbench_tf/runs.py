"""Reads the folder of a training run: its recipe, its rows, its clock, its model.

    run.json                    the recipe that owns the folder, the options it is trained with
    rows.tsv                    a row for each evaluation, as they came
    clock.json                  seconds of each part of the clock so far
    checkpoint-7/weights.npz    the weights after 7 epochs, as they are evaluated

A run that missed its threshold is read like any other; its entry is under
`not_an_entry/TASK/train/`. `training/checkpoints.py` writes these files, and checkpoints beside
them: each knows its own checksum, so what is damaged is not taken for a result. Plain Python.
"""

import math
import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import files, models
from dawnbench_tf.clock import Hit
from dawnbench_tf.options import RunOptions, with_recorded
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line

__all__ = ["read", "recipe_of", "options_of", "Run"]

RECIPE, ROWS, CLOCK = "run.json", "rows.tsv", "clock.json"
UTILIZATION = "utilization.json"  # what it used of its machine, in the process that ended it
TRIAL = "trial.json"  # of steps that were timed in the folder before a run began there
STATE, WEIGHTS = "state.json", "weights.npz"  # of a checkpoint
NOT_RANKED = "not_an_entry"  # folder below a run's for what the rules do not rank
FORMAT, NEWEST_FORMAT = "format", 2  # key in run.json; folders of release 0.1 have none
EPOCHS_BEFORE = "epochs_before"  # key in run.json: epochs of a miss, each time it was prolonged
OPTIONS = "options"  # key in run.json: options that are not defaults; releases to 0.2 wrote none
REPLACED = "replaced"  # key in run.json: the fields that flags gave, against the library's row

Rows = list[dict[str, float]]


class Run(NamedTuple):
    """A training run, finished or not.

    Attributes:
      recipe: the recipe that was trained.
      rows: a dict for each evaluation: "epoch", "hours" on the clock, then scores by column.
      clock: seconds by part; {} if the run died before it was written.
      folder: the folder of the run; None on workers that write nothing.
    """

    recipe: Recipe
    rows: Rows
    clock: dict[str, float]
    folder: Path | None = None

    def __repr__(self) -> str:
        hit, metric = self.first_hit, self.recipe.task_row.metric
        best = max((row[metric] for row in self.rows), default=None)
        done = f"{hit[metric]} after {hit.seconds:.1f} s" if hit else f"{best} at best"
        return f"<Run {self.folder}: {self.recipe.name}, {metric} {done}>"

    @property
    def first_hit(self) -> Hit | None:
        """The first row at the recipe's goal or past it; `first_hit.seconds` is the result."""
        metric = self.recipe.task_row.metric
        return next((Hit(row) for row in self.rows if row[metric] >= self.recipe.goal), None)

    @property
    def reached(self) -> bool:
        """Whether a row is at the recipe's goal or past it."""
        return self.first_hit is not None

    @property
    def used(self) -> dict[str, Any]:
        """The utilization that a finished run's entry states in `misc`; else {}."""
        path = self.folder and self.folder / UTILIZATION
        return files.read_json(path) if path and path.exists() else {}

    @property
    def entry_path(self) -> Path | None:
        """The path of the entry's JSON, below `not_an_entry/` if it can't be ranked; else None."""
        for root in [self.folder, self.folder / NOT_RANKED] if self.folder else []:
            if paths := sorted((root / self.recipe.task_row.folder / "train").glob("*.json")):
                return paths[-1]
        return None

    @property
    def entry(self) -> Any:
        """The run's entry, a `submission.entry.Entry`; None before the run has ended.

        Its `misc["violations"]` say why it can't be ranked, if it can't.
        """
        path = self.entry_path
        read_entry = import_module("dawnbench_tf.submission.entry").read_entry
        return None if path is None else read_entry(path)

    def model(self, precision: str = "float32", data_format: str = "NHWC") -> Any:
        """Builds the trained network with the weights of the newest checkpoint.

        It is the network that was evaluated: with moving averages in place of the weights, and
        with the recipe's test-time augmentation. Its inputs are those that `dataset.Data.examples`
        returns: images are standardized as the recipe says.

        Args:
          precision: Keras's policy for the layers: "float32", "mixed_bfloat16", "mixed_float16".
          data_format: layout of images, "NHWC" or "NCHW".

        Returns:
          A `tf.keras.Model` of the Keras that `tf.keras` is, not compiled.

        Raises:
          Refusal: the folder has no checkpoint, or it is damaged.
        """
        if self.folder is None:
            raise Refusal("this worker wrote no folder; runs.read(FOLDER) reads worker 0's")
        loading = import_module("dawnbench_tf.inference.loading")
        return loading.load_model(self.recipe, self.folder, precision, data_format, portable=True)


def read(folder: str | os.PathLike[str]) -> Run:
    """Reads the run in a folder.

    Args:
      folder: folder of a training run, `output` of `train` or its --output_dir.

    Raises:
      Refusal: it is no folder of a run, or a file in it is damaged.
    """
    folder = Path(folder)
    recipe = recipe_of(folder)
    rows, clock = folder / ROWS, folder / CLOCK
    logged = _read_rows(rows, recipe.task_row.metric) if os.path.lexists(rows) else []
    return Run(
        recipe,
        _with_saved(logged, folder, recipe.task_row.metric),
        read_clock(clock) if os.path.lexists(clock) else {},
        folder,
    )


def _with_saved(rows: Rows, folder: Path, metric: str) -> Rows:
    """Returns the rows of rows.tsv, or those of the newest checkpoint if it has more.

    Raises Refusal if the two differ: one of them is damaged.
    """
    states = [path / STATE for _, path in checkpoints(folder) if (path / STATE).exists()]
    if not states:
        return rows
    path = states[-1]
    saved = files.read_json(path).get("rows")
    if saved is None or not are_rows(saved, metric):
        raise Refusal(f"{path}: should hold a run's rows; restore it")
    both = min(len(rows), len(saved))
    if rows[:both] != saved[:both]:
        problem = f"differs from the rows in {path.parent.name}"
        raise Refusal(f"{folder / ROWS}: {problem}; the command that trained it writes it anew")
    return rows if len(rows) >= len(saved) else saved


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Returns (epochs done, path) of each checkpoint in a run's folder, oldest first."""
    named = [(path.name.removeprefix("checkpoint-"), path) for path in folder.glob("checkpoint-*")]
    return sorted(
        (int(epochs), path)
        for epochs, path in named
        if epochs.isascii() and epochs.isdigit() and len(epochs) < 10
    )


def recipe_of(folder: str | os.PathLike[str]) -> Recipe:
    """Returns the recipe of a run's folder.

    Args:
      folder: folder of a training run.

    Raises:
      Refusal: it is no folder of a run, or its recipe is damaged.
    """
    return owner_of(Path(folder))[0]


def options_of(folder: str | os.PathLike[str]) -> RunOptions:
    """Returns the options that a run was last trained with, to go on from Python.

    >>> train(runs.recipe_of(folder), runs.options_of(folder), folder)  # doctest: +SKIP

    Args:
      folder: folder of a training run.

    Returns:
      The options: data directory, strategy, price, author. Those of one call (`output_dir`,
      `max_steps`, `worker_hosts`, `task_index`) have their defaults, and in folders of release 0.2
      and earlier, all.

    Raises:
      Refusal: it is no folder of a run, or the options are damaged or of a newer release.
    """
    owner = Path(folder) / RECIPE
    values = _read_owner(owner).get(OPTIONS, {})
    try:
        if not isinstance(values, dict):
            raise TypeError("should be an object")
        return with_recorded(RunOptions(), values)
    except (TypeError, ValueError) as error:
        text = f"{OPTIONS} are none of this version ({one_line(error)})"
        raise Refusal(f"{owner}: {text}") from None


def owner_of(folder: Path) -> tuple[Recipe, list[str] | None]:
    """Returns the recipe of a run's folder and the names of the fields that flags replaced.

    The names are None in folders of versions that did not write them.

    Raises:
      Refusal: it is no run's folder, or its recipe is damaged.
    """
    owner = folder / RECIPE
    values = _read_owner(owner)
    for name in (FORMAT, EPOCHS_BEFORE, OPTIONS):
        values.pop(name, None)
    replaced = values.pop(REPLACED, None)
    try:
        recipe = Recipe.from_values(values)
        _check_model(recipe)
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise Refusal(f"{owner}: is no recipe of this version ({one_line(error)})") from None
    if replaced is not None and not _are_fields(replaced, values):
        raise Refusal(f"{owner}: {REPLACED} should be a list of the recipe's fields")
    return recipe, replaced


def _read_owner(owner: Path) -> dict[str, Any]:
    """Reads run.json. Raises Refusal if there is none, or this release can't read it."""
    if not owner.is_file():
        folder = owner.parent
        raise Refusal(f"{folder}: holds no {RECIPE}; should be the --output_dir of a training run")
    values = files.read_json(owner)
    _check_format(owner, values.get(FORMAT, 1))
    return values


def _check_format(owner: Path, version: object) -> None:
    """Raises Refusal unless this release reads run folders of a format's version."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        text = f"{FORMAT} should be a whole number from 1 to {NEWEST_FORMAT}"
        raise Refusal(f"{owner}: {text}; has {one_line(repr(version), 40)}")
    if version > NEWEST_FORMAT:
        reads = f"this release reads formats up to {NEWEST_FORMAT}"
        raise Refusal(f"{owner}: has format {version}; {reads}: install a newer dawnbench_tf")


def _check_model(recipe: Recipe) -> None:
    """Raises ValueError unless a recipe's model is in the catalogue and for the recipe's task."""
    variant, tokenizer = models.get(recipe.model), getattr(recipe.data, "tokenizer", "")
    wanted = recipe.task_row.inputs, tokenizer == "wordpiece"
    if (variant.inputs, variant.wordpieces) != wanted:
        raise ValueError(f"{recipe.model} is no model for {recipe.task_row.name}")


def epochs_before(folder: Path) -> list[float]:
    """Returns the numbers of epochs after which a run missed its goal and was trained longer."""
    epochs = files.read_json(folder / RECIPE).get(EPOCHS_BEFORE, [])
    if not isinstance(epochs, list) or not all(map(is_figure, epochs)):
        raise Refusal(f"{folder / RECIPE}: {EPOCHS_BEFORE} should be a list of numbers")
    return epochs


def _are_fields(names: object, values: dict[str, Any]) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) and n in values for n in names)


def read_clock(path: Path) -> dict[str, float]:
    """Reads the seconds by part of a run's clock. Raises Refusal if the file is damaged."""
    parts = files.read_json(path)
    if not parts or not are_seconds(parts):
        raise Refusal(f"{path}: should hold seconds by part of the clock")
    return parts


def are_seconds(parts: Any) -> bool:
    """Whether a value of a JSON file has the form of a clock's parts."""
    return isinstance(parts, dict) and all(is_figure(s) and s >= 0 for s in parts.values())


def are_rows(rows: Any, metric: str) -> bool:
    """Whether a value of a JSON file has the form of a run's rows: dicts of numbers."""
    columns = {"epoch", "hours", metric}
    return isinstance(rows, list) and all(
        isinstance(row, dict) and columns <= set(row) and all(map(is_figure, row.values()))
        for row in rows
    )


def is_figure(value: Any) -> bool:
    """Whether a value of a JSON file is a finite number."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def _read_rows(path: Path, metric: str) -> Rows:
    """Reads the complete rows; a crash may have cut off the last one."""
    try:
        if not path.is_file():
            raise ValueError("is no file")
        if path.stat().st_size > files.LARGEST_JSON:
            raise ValueError(f"is larger than {files.LARGEST_JSON >> 20} MiB")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: can't be read ({one_line(error)})") from None
    columns, rows = lines[0].split("\t"), list[dict[str, float]]()
    if not {metric, "hours", "epoch"} <= set(columns) and len(lines) > 1:
        names = one_line(" ".join(columns), 100)
        raise Refusal(f"{path}:1: should have columns epoch, hours and {metric}; has {names!r}")
    for number, line in enumerate(lines[1:-1], 2):
        try:
            row = dict(zip(columns, map(float, line.split("\t")), strict=True))
        except ValueError:
            row = {}
        if not row or not all(map(math.isfinite, row.values())):
            raise Refusal(f"{path}:{number}: should be {len(columns)} numbers")
        if rows and row["hours"] <= rows[-1]["hours"]:
            raise Refusal(f"{path}:{number}: hours should rise from row to row")
        rows.append(row)
    return rows
