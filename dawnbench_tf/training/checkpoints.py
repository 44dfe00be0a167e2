"""Checkpoints: a run's state, saved after every epoch and restored after an interruption.

    checkpoint-7/    weights, optimizer, states of random generators; weights.npz, for inference;
                     rows, step and clock after 7 epochs, with a checksum of each file

A checkpoint is written under a temporary name and then renamed, so it is always complete. A
checkpoint that is damaged later is skipped for the one before it. Order and augmentation of the
data follow from (seed, epoch), so they are not saved.

`runs.py` describes the other files of the folder. One of them, clock.json, is written every second,
and has the time after the last checkpoint.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from dawnbench_tf import files, runs, terminal, typed, weights
from dawnbench_tf.clock import Clock
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, shown
from dawnbench_tf.runs import Run
from dawnbench_tf.training import averages
from dawnbench_tf.tta import TimeToAccuracy


class Checkpoint(NamedTuple):
    """A complete checkpoint, whose files match their checksums."""

    epochs: int  # epochs that were trained
    path: Path
    state: dict[str, Any]  # "rows" and "step" of TimeToAccuracy; "clock", seconds by part

    @property
    def machines(self) -> list[Machine]:
        """The machines that trained up to here, in order; [] in checkpoints of release 0.2."""
        return [Machine(**facts) for facts in self.state.get("machines", [])]


class Folder:
    """The output folder of a run.

    Args:
      path: the folder.
      recipe: the recipe of the run.
      writer: whether this worker writes to the folder.
    """

    def __init__(self, path: Path, recipe: Recipe, writer: bool = True):
        self.path, self.recipe, self.writer = path, recipe, writer
        self.rows = path / runs.ROWS
        self.clock = path / runs.CLOCK

    def newest(self) -> Checkpoint | None:
        """Returns the newest undamaged checkpoint, or None if there is no checkpoint.

        Prints a line for each damaged one that it skips.

        Raises:
          Refusal: there are checkpoints, and all of them are damaged.
        """
        reason = ""
        for epochs, path in reversed(runs.checkpoints(self.path)):
            try:
                return Checkpoint(epochs, path, _read_state(path, self.recipe.task_row.metric))
            except Refusal as refusal:
                reason = str(refusal)
                terminal.say(f"{reason}; passed over for the one before")
        if reason:
            raise Refusal(
                f"{self.path}: no checkpoint in it is whole ({reason}); restore one, or delete "
                "all to begin anew"
            )
        return None

    def read_clock(self, newest: Checkpoint | None) -> dict[str, float]:
        """Returns the seconds of earlier processes by part of the clock.

        Reads clock.json; uses the checkpoint's clock if that is later, or clock.json is damaged.
        """
        saved = (newest.state.get("clock") if newest else None) or {}
        try:
            written = runs.read_clock(self.clock) if self.clock.exists() else {}
        except Refusal as refusal:
            written = {}
            terminal.say(f"{refusal}; the clock goes on from the checkpoint's")
        if sum(written.values()) >= sum(saved.values()):
            return written
        if not written:
            terminal.say(f"{self.clock}: not there; the clock goes on from the checkpoint's")
        return saved

    def save_utilization(self, used: Mapping[str, Any]) -> None:
        """Writes the utilization of the machine, for later calls that find the run finished."""
        if used:
            files.write_json(self.path / runs.UTILIZATION, used)

    def read_utilization(self) -> dict[str, Any]:
        """Returns the utilization that a finished run wrote; {} if it is missing or damaged."""
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


def _read_state(path: Path, metric: str) -> dict[str, Any]:
    """Reads a checkpoint's state.json and verifies the checksums in it. Raises Refusal."""
    state = files.read_json(path / runs.STATE)
    _check_files(path, state.get("files", {}))
    rows, step = state.get("rows"), state.get("step")
    fits = set(state) <= {"rows", "step", "clock", "files", "machines"}
    fits = fits and runs.are_rows(rows, metric) and _are_machines(state.get("machines", []))
    fits = fits and isinstance(step, int) and step >= 0
    if not fits or not runs.are_seconds(state.get("clock", {})):
        raise Refusal(f"{path / runs.STATE}: should hold rows, step and clock of a run")
    return state


def _are_machines(value: object) -> bool:
    try:
        typed.check(value, list[Machine])
    except ValueError:
        return False
    return True


def _check_files(path: Path, checksums: Any) -> None:
    """Verifies the checksums of a checkpoint's files; TensorFlow would load damaged ones."""
    present = {file.name: file for file in path.iterdir()}
    for file in present.values():
        if not file.is_file():
            raise Refusal(f"{file}: is no regular file; should be one of a checkpoint")
    for name, checksum in checksums.items() if isinstance(checksums, dict) else ():
        if name not in present:
            raise Refusal(f"{path}: has no {shown(one_line(name))}; should hold what was written")
        if files.digest(present[name]) != checksum:
            raise Refusal(f"{present[name]}: damaged; it is not what was written")


def _restore(saved: tf.train.Checkpoint, path: Path) -> None:
    """Restores variables from a checkpoint. Raises Refusal if they are damaged or do not fit."""
    try:
        saved.read(str(path / "variables")).assert_consumed()
    except (AssertionError, ValueError, IndexError, tf.errors.OpError) as error:
        raise Refusal(
            f"{path}: damaged or of another model ({one_line(error)}); "
            "delete it to go on from the one before"
        ) from None


class Saver(tf.keras.callbacks.Callback):
    """A Keras callback that saves a checkpoint at the end of each epoch.

    Args:
      folder: the claimed folder of the run.
      model: compiled Keras model.
      timer: TimeToAccuracy, whose rows and clock are saved; it has to precede this callback in
        `callbacks`.
      machine: the machine that trains; each checkpoint has it, and those before it.
    """

    def __init__(
        self,
        folder: Folder,
        model: tf.keras.Model,
        timer: TimeToAccuracy,
        machine: Machine | None = None,
    ):
        super().__init__()
        self.folder, self.timer = folder, timer
        self.machines: list[Machine] = []
        self.machine = machine
        self._rows = self._epochs = 0  # number of rows and of epochs in the last checkpoint
        self._saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        self._model = model

    def restore(self, newest: Checkpoint | None) -> int:
        """Restores weights, optimizer and rows of a checkpoint; returns its number of epochs."""
        if self.folder.writer and not (newest and newest.state["rows"]):
            self.folder.rows.unlink(missing_ok=True)  # of epochs that no checkpoint has
        if newest is None:
            self.timer.restore({"rows": [], "step": 0, "epochs": 0, "clock": {}})
            return 0
        averages.inner_optimizer(self._model).build(self._model.trainable_variables)
        _restore(self._saved, newest.path)
        # The run's clock goes on already, from clock.json.
        self.timer.restore({**newest.state, "epochs": newest.epochs, "clock": {}})
        self.machines = newest.machines
        return newest.epochs

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        timer = self.timer
        ended = timer.reached or (timer.last_step is not None and timer.step >= timer.last_step)
        if timer.epoch < epoch + 1 and not ended:
            return  # a callback of the user's ended `fit` inside the epoch
        self._save(epoch + 1)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        if len(self.timer.rows) > self._rows and self.timer.epoch == self._epochs:
            self._save(self._epochs)  # a later callback ended `fit`, and the timer added a row

    def _save(self, epochs: int) -> None:
        """Writes checkpoint-EPOCHS off the clock."""
        if self.machine and self.machine not in self.machines[-1:]:
            self.machines.append(self.machine)
        self._rows, self._epochs = len(self.timer.rows), epochs
        with self.timer.clock.part("checkpoint"):
            try:
                self._write(epochs)
            except (OSError, tf.errors.OpError) as error:
                raise files.cannot_write(self.folder.path, error) from None

    def complete(self, restored: Checkpoint) -> None:
        """Adds weights.npz to a checkpoint that an earlier version wrote without it."""
        path, state = restored.path / runs.WEIGHTS, restored.path / runs.STATE
        if path.exists() or not self.folder.writer:
            return
        with files.renamed_to(path) as temporary:
            weights.write(temporary, averages.values(self._model))
        values = files.read_json(state)
        values["files"] = {**values.get("files", {}), path.name: files.digest(path)}
        files.write_json(state, values)

    def _write(self, epochs: int) -> None:
        """Writes checkpoint-EPOCHS; every worker calls it, as reading values may need them all."""
        home = self.folder.path if self.folder.writer else None
        temporary = Path(tempfile.mkdtemp(prefix=".checkpoint-", dir=home))
        try:
            self._saved.write(str(temporary / "variables"))
            weights.write(temporary / runs.WEIGHTS, averages.values(self._model))
            if self.folder.writer:
                self._publish(temporary, self.folder.path / f"checkpoint-{epochs}")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _publish(self, temporary: Path, final: Path) -> None:
        """Adds state.json, flushes all files to disk, then renames the folder."""
        # fsync before the rename: after a power cut the final name must not have empty files.
        for path in temporary.iterdir():
            _flush(path)
        state = self.timer.state() | {"clock": self.timer.clock.parts()}
        state.pop("epochs")  # the folder's name has them
        state["machines"] = [machine._asdict() for machine in self.machines]
        state["files"] = {path.name: files.digest(path) for path in sorted(temporary.iterdir())}
        files.write_json(temporary / runs.STATE, state)
        _flush(temporary)
        if os.path.lexists(final):  # a damaged checkpoint, whose epoch was trained again
            files.remove(final)
        os.rename(temporary, final)
        _flush(self.folder.path)
        # Keeps the last two: the older one is used if the newer one is damaged.
        for _, old in runs.checkpoints(self.folder.path)[:-2]:
            files.remove(old)


def clock_writer(folder: Folder, clock: Clock) -> Callable[[], None]:
    """Returns a function that writes clock.json, to be called every second.

    So a run that is killed loses at most a second of its clock. A failed write is ignored: on a
    full disk the next checkpoint fails too, and reports it.
    """

    def write() -> None:
        if not (folder.path / runs.RECIPE).exists():
            return  # the claim on the folder was released
        try:
            files.write_json(folder.clock, clock.parts())
        except Refusal:
            pass

    return write


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
