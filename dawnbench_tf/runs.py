"""The folder of a training run, read back: which recipe, which rows, how long it took.

    run.json      the recipe that owns the folder
    rows.tsv      a row for each evaluation, as they came
    clock.json    seconds of each part of the clock so far

A run that missed its threshold is read like any other; its entry is under
`not_an_entry/TASK/train/`. `training/checkpoints.py` writes these files, and checkpoints beside
them. Plain Python.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line

RECIPE, ROWS, CLOCK = "run.json", "rows.tsv", "clock.json"


class Run(NamedTuple):
    """A training run as its folder tells it, finished or not."""

    recipe: Recipe
    rows: list[dict[str, float]]  # "epoch", "hours" on the clock, then scores by column
    clock: dict[str, float]  # seconds by part; {} if it died before it could be written

    @property
    def first_hit(self) -> dict[str, float] | None:
        """The first row at the recipe's goal or past it: the benchmark's time is its hours."""
        metric = self.recipe.task_row.metric
        return next((row for row in self.rows if row[metric] >= self.recipe.goal), None)

    @property
    def reached(self) -> bool:
        """Whether a row is at the recipe's goal or past it."""
        return self.first_hit is not None


def read(folder: Path) -> Run:
    """Reads the run in a folder.

    Args:
      folder: `--output_dir` of a training run.

    Raises:
      Refusal: it is no such folder, or a file in it is damaged.
    """
    recipe = recipe_of(folder)
    rows, clock = folder / ROWS, folder / CLOCK
    return Run(
        recipe,
        _read_rows(rows, recipe.task_row.metric) if rows.exists() else [],
        read_json(clock) if clock.exists() else {},
    )


def recipe_of(folder: Path) -> Recipe:
    """The recipe that a run's folder belongs to. Raises Refusal if it is no run's folder."""
    owner = folder / RECIPE
    if not owner.is_file():
        raise Refusal(f"{folder}: holds no {RECIPE}; should be the --output_dir of a training run")
    try:
        recipe = Recipe.from_values(read_json(owner))
        recipe.task_row  # noqa: B018 - a task there is
    except (TypeError, AttributeError, KeyError) as error:
        raise Refusal(f"{owner}: is no recipe of this version ({one_line(error)})") from None
    return recipe


def read_json(path: Path) -> Any:
    """A JSON file of a run's folder. Raises Refusal if it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(
            f"{path}: can't be read ({error}); restore it or name another --output_dir"
        ) from None


def _read_rows(path, metric):
    """The rows that are whole: the last one may have been cut off by a crash."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: can't be read ({one_line(error)})") from None
    columns, rows = lines[0].split("\t"), []
    if metric not in columns and len(lines) > 1:
        raise Refusal(f"{path}:1: should have a column {metric}; found {' '.join(columns)[:100]}")
    for number, line in enumerate(lines[1:-1], 2):
        try:
            rows.append(dict(zip(columns, map(float, line.split("\t")), strict=True)))
        except ValueError:
            raise Refusal(f"{path}:{number}: should be {len(columns)} numbers") from None
    return rows
