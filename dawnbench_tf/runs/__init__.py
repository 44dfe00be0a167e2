"""Training runs: `Run`, what a folder says of one, finished or not.

`run_entry` makes and writes the entry of a run, `picture` draws its curve. `run_folder.py` has the
files.

May import: models (the catalogue), recipe, the shared modules, submission, inference. Never:
TensorFlow, training, ranking, studies.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import run_folder
from dawnbench_tf.clock import Hit
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.run_folder import CLOCK, NOT_RANKED, Rows
from dawnbench_tf.submission.entry import Entry, read_entry

__all__ = ["read", "Run"]


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
    def options(self) -> RunOptions:
        """The options that it was last trained with, but for those of one call, as `output_dir`.

        Folders of release 0.2 and earlier record none: these have the defaults.
        """
        if self.folder is None:
            raise Refusal("this worker wrote no folder; runs.read(FOLDER) reads worker 0's")
        return run_folder.owner_of(self.folder).options

    @property
    def used(self) -> dict[str, Any]:
        """The utilization that a finished run's entry states in `misc`; else {}."""
        return run_folder.read_used(self.folder) if self.folder else {}

    @property
    def entry_path(self) -> Path | None:
        """The path of the entry's JSON, below `not_an_entry/` if it can't be ranked; else None."""
        for root in [self.folder, self.folder / NOT_RANKED] if self.folder else []:
            if paths := sorted((root / self.recipe.task_row.folder / "train").glob("[!.]*.json")):
                return paths[-1]
        return None

    @property
    def entry(self) -> Entry | None:
        """The run's entry; None before the run has ended.

        Its `misc["violations"]` say why it can't be ranked, if it can't.
        """
        path = self.entry_path
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
        from dawnbench_tf.inference import serving  # needs TensorFlow; the leaderboard must not

        return serving.builder(self.recipe, self.folder, data_format, portable=True)(precision)


def read(folder: str | os.PathLike[str]) -> Run:
    """Reads the run in a folder.

    Args:
      folder: folder of a training run, `output` of `train` or its --output_dir.

    Raises:
      Refusal: it is no folder of a run, or a file in it is damaged.
    """
    folder = Path(folder)
    recipe, clock = run_folder.owner_of(folder).recipe, folder / CLOCK
    rows = run_folder.read_rows(folder, recipe.task_row.metric)
    return Run(recipe, rows, run_folder.read_clock(clock) if os.path.lexists(clock) else {}, folder)
