"""MLPerf's structured log of a run: `:::MLLOG {...}` lines, as mlcommons/logging reads them."""

import json
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import files
from dawnbench_tf.options import Credits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.tta import TimeToAccuracy

FILE = "mllog.txt"
_POINT, _START, _END = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


class Mllog(tf.keras.callbacks.Callback):
    """Writes OUTPUT_DIR/mllog.txt; a run that goes on adds to it.

    Keys are those of MLPerf's training rules; `eval_accuracy` is in the task's own unit. Times are
    Unix time; an evaluation's start follows from the seconds that it took on the clock.

    Args:
      folder: of the run.
      recipe: what is trained.
      credits: who trains it, on what.
      hardware: as it was found.
      timer: TimeToAccuracy; it must come before this in `callbacks`.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        credits: Credits,
        hardware: str,
        timer: TimeToAccuracy,
    ):
        super().__init__()
        self._path, self._recipe, self._timer = folder / FILE, recipe, timer
        task = recipe.task_row
        self._write("cache_clear", False)  # the system's caches stay as they are
        self._write("init_start", None, kind=_START, before=sum(timer.clock.parts().values()))
        for key, value in (
            ("submission_benchmark", "resnet" if recipe.task == "imagenet" else recipe.task),
            ("submission_division", "open"),
            ("submission_org", credits.author),
            ("submission_platform", credits.hardware or hardware),
            ("submission_status", "research"),
            ("seed", recipe.seed),
            ("global_batch_size", recipe.batch_size),
            ("train_samples", task.train_examples - recipe.held_out),
            ("eval_samples", task.test_examples),
            ("opt_name", recipe.optimizer.name),
            ("opt_base_learning_rate", recipe.scaled_learning_rate),
            ("gradient_accumulation_steps", 1),
        ):
            self._write(key, value)
        self._shown, self._evaluated = len(timer.rows), self._seconds("eval")

    def on_train_begin(self, logs=None):
        self._write("init_stop", None, kind=_END)
        self._write("run_start", None, kind=_START)

    def on_epoch_begin(self, epoch, logs=None):
        self._write("epoch_start", None, kind=_START, epoch_num=epoch + 1)

    def on_train_batch_end(self, batch, logs=None):
        self._show_rows()

    def on_epoch_end(self, epoch, logs=None):
        self._write("epoch_stop", None, kind=_END, epoch_num=epoch + 1)
        self._show_rows()

    def on_train_end(self, logs=None):
        status = "success" if self._timer.reached else "aborted"
        self._write("run_stop", None, kind=_END, status=status)

    def _show_rows(self):
        metric = self._recipe.task_row.metric
        spent = self._seconds("eval") - self._evaluated
        for row in self._timer.rows[self._shown :]:
            epoch = row["epoch"]
            self._write("eval_start", None, kind=_START, before=spent, epoch_num=epoch)
            self._write("eval_stop", None, kind=_END, epoch_num=epoch)
            self._write("eval_accuracy", row[metric], epoch_num=epoch)
        self._shown, self._evaluated = len(self._timer.rows), self._seconds("eval")

    def _seconds(self, part):
        return self._timer.clock.parts().get(part, 0.0)

    def _write(
        self, key: str, value: Any, kind: str = _POINT, before: float = 0.0, **metadata: Any
    ) -> None:
        event = {
            "namespace": "",
            "time_ms": round(1000 * (time.time() - before)),
            "event_type": kind,
            "key": key,
            "value": value,
            "metadata": metadata,
        }
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f":::MLLOG {json.dumps(event)}\n")
        except OSError as error:
            raise files.cannot_write(self._path, error) from None
