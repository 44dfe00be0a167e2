"""What a run leaves in its folder: saved an epoch at a time, resumed after any death.

    checkpoint-7/    weights, optimizer, streams of random numbers; weights.npz, for inference;
                     rows, step and clock after 7 epochs, with a checksum of each file

besides the files that `runs.py` reads, of which clock.json is written every second: it adds what
came after the checkpoint. A checkpoint is written under another name and appears by one rename, so
there is never half of one; one that was damaged later is passed over for the one before. Order and
augmentation of the data follow from (seed, epoch): they need no saving.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from dawnbench_tf import files, runs, terminal, weights
from dawnbench_tf.clock import Clock
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, shown
from dawnbench_tf.runs import Run
from dawnbench_tf.training import averages
from dawnbench_tf.tta import TimeToAccuracy


class Checkpoint(NamedTuple):
    """A whole checkpoint: its files are what was written."""

    epochs: int  # that were done
    path: Path
    state: dict[str, Any]  # "rows" and "step", as TimeToAccuracy has them; "clock" by part


class Folder:
    """The output folder of a run.

    Args:
      path: of the folder.
      recipe: that is run in it.
      writer: false on workers that must not write to it.
    """

    def __init__(self, path: Path, recipe: Recipe, writer: bool = True):
        self.path, self.recipe, self.writer = path, recipe, writer
        self.rows = path / runs.ROWS
        self.clock = path / runs.CLOCK

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; what is newer and damaged is told. None: there is none.

        Raises:
          Refusal: there are checkpoints, and all are damaged.
        """
        why = ""
        for epochs, path in reversed(runs.checkpoints(self.path)):
            try:
                return Checkpoint(epochs, path, _state(path, self.recipe.task_row.metric))
            except Refusal as refusal:
                why = str(refusal)
                terminal.say(f"{why}; passed over for the one before")
        if why:
            raise Refusal(
                f"{self.path}: no checkpoint in it is whole ({why}); restore one, or delete "
                "all to begin anew"
            )
        return None

    def recorded(self, newest: Checkpoint | None) -> dict[str, float]:
        """Seconds by part of all earlier processes: clock.json's, or else the checkpoint's."""
        of_checkpoint = (newest.state.get("clock") if newest else None) or {}
        try:
            written = runs.read_clock(self.clock) if self.clock.exists() else {}
        except Refusal as refusal:
            written = {}
            terminal.say(f"{refusal}; the clock goes on from the checkpoint's")
        if sum(written.values()) >= sum(of_checkpoint.values()):
            return written
        if not written:
            terminal.say(f"{self.clock}: not there; the clock goes on from the checkpoint's")
        return of_checkpoint

    def save_used(self, used: Mapping[str, Any]) -> None:
        """Writes what a run used of its machine, for whoever finds it finished."""
        if used:
            files.write_json(self.path / runs.UTILIZATION, used)

    def used(self) -> dict[str, Any]:
        """What a finished run used of its machine; {} where that was not written, or is damaged."""
        path = self.path / runs.UTILIZATION
        try:
            return files.read_json(path) if path.exists() else {}
        except Refusal as refusal:
            terminal.say(f"{refusal}; what was used is left out")
            return {}


def is_finished(checkpoint: Checkpoint, recipe: Recipe) -> bool:
    """Whether a run with this checkpoint has nothing more to train."""
    last = Run(recipe, checkpoint.state["rows"], {})
    return last.reached or checkpoint.epochs >= recipe.epochs


def _state(path, metric):
    """A checkpoint's state.json, its other files held to the checksums in it. Raises Refusal."""
    state = files.read_json(path / runs.STATE)
    _check_files(path, state.get("files", {}))
    rows, step = state.get("rows"), state.get("step")
    fits = set(state) <= {"rows", "step", "clock", "files"} and runs.are_rows(rows, metric)
    fits = fits and isinstance(step, int) and step >= 0
    if not fits or not runs.are_seconds(state.get("clock", {})):
        raise Refusal(f"{path / runs.STATE}: should hold rows, step and clock of a run")
    return state


def _check_files(path, checksums):
    """Holds a checkpoint's files to their checksums: TensorFlow would read whatever is there."""
    there = {file.name: file for file in path.iterdir()}
    for file in there.values():
        if not file.is_file():
            raise Refusal(f"{file}: is no regular file; should be one of a checkpoint")
    for name, checksum in checksums.items() if isinstance(checksums, dict) else ():
        if name not in there:
            raise Refusal(f"{path}: has no {shown(one_line(name))}; should hold what was written")
        if files.digest(there[name]) != checksum:
            raise Refusal(f"{there[name]}: damaged; it is not what was written")


def _read(saved, path):
    try:
        saved.read(str(path / "variables")).assert_consumed()
    except (AssertionError, ValueError, IndexError, tf.errors.OpError) as error:
        raise Refusal(
            f"{path}: damaged or of another model ({one_line(error)}); "
            "delete it to go on from the one before"
        ) from None


class Saver(tf.keras.callbacks.Callback):
    """Saves all of a run at the end of each epoch; `beat` saves the clock in between.

    Args:
      folder: the claimed Folder.
      model: compiled Keras model.
      timer: TimeToAccuracy, whose rows and clock are saved; before this one in `callbacks`.
    """

    def __init__(self, folder: Folder, model: tf.keras.Model, timer: TimeToAccuracy):
        super().__init__()
        self.folder, self.timer = folder, timer
        self._saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        self._model = model

    def restore(self, newest: Checkpoint | None) -> int:
        """Restores weights and rows of a checkpoint; returns the epochs done (0: none)."""
        if newest is None:
            self.timer.restore({"rows": [], "step": 0})
            return 0
        averages.inner_optimizer(self._model).build(self._model.trainable_variables)
        _read(self._saved, newest.path)
        self.timer.restore(newest.state)
        return newest.epochs

    def on_epoch_end(self, epoch, logs=None):
        with self.timer.clock.part("checkpoint"):
            try:
                self._save(epoch + 1)
            except (OSError, tf.errors.OpError) as error:
                raise files.cannot_write(self.folder.path, error) from None

    def complete(self, restored: Checkpoint) -> None:
        """Adds the weights for inference to a checkpoint that an earlier version wrote."""
        path, state = restored.path / runs.WEIGHTS, restored.path / runs.STATE
        if path.exists() or not self.folder.writer:
            return
        with files.renamed_to(path) as temporary:
            weights.write(temporary, averages.values(self._model))
        values = files.read_json(state)
        values["files"] = {**values.get("files", {}), path.name: files.digest(path)}
        files.write_json(state, values)

    def _save(self, epochs):
        """Writes checkpoint-EPOCHS. Every worker takes part: values may be spread over them."""
        home = self.folder.path if self.folder.writer else None
        temporary = Path(tempfile.mkdtemp(prefix=".checkpoint-", dir=home))
        try:
            self._saved.write(str(temporary / "variables"))
            weights.write(temporary / runs.WEIGHTS, averages.values(self._model))
            if self.folder.writer:
                self._publish(temporary, self.folder.path / f"checkpoint-{epochs}")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _publish(self, temporary, final):
        for path in temporary.iterdir():
            _flush(path)
        state = {**self.timer.state(), "clock": self.timer.clock.parts()}
        state["files"] = {path.name: files.digest(path) for path in sorted(temporary.iterdir())}
        files.write_json(temporary / runs.STATE, state)
        _flush(temporary)
        if os.path.lexists(final):  # damaged: that is why its epoch was trained again
            files.remove(final)
        os.rename(temporary, final)
        _flush(self.folder.path)
        # The one before stays, should this one be lost.
        for _, old in runs.checkpoints(self.folder.path)[:-2]:
            files.remove(old)


def clock_writer(folder: Folder, clock: Clock) -> Callable[[], None]:
    """What writes the clock as it stands, so that no second of a run that dies is forgotten.

    A disk that takes nothing is told by the next checkpoint.
    """

    def write():
        if not (folder.path / runs.RECIPE).exists():
            return  # the folder was given back
        try:
            files.write_json(folder.clock, clock.parts())
        except Refusal:
            pass

    return write


def _flush(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
