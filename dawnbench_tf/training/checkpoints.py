"""Saves checkpoints after every epoch, and restores the newest after an interruption.

A checkpoint is written under a temporary name and then renamed, so it is always complete. Order and
augmentation of the data follow from (seed, epoch), so they are not saved.
"""

import os
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

from dawnbench_tf import files, run_folder
from dawnbench_tf.machine import Machine
from dawnbench_tf.refusals import refusing
from dawnbench_tf.run_folder import ROWS, STATE, WEIGHTS, Checkpoint, RunFolder
from dawnbench_tf.training import averages, strategies
from dawnbench_tf.tta import TimeToAccuracy


class Saver(tf.keras.callbacks.Callback):
    """A Keras callback that saves a checkpoint each epoch; the timer precedes it in `callbacks`."""

    def __init__(
        self, folder: RunFolder, model: tf.keras.Model, timer: TimeToAccuracy, machine: Machine
    ):
        super().__init__()
        self.folder, self.timer, self.machine = folder, timer, machine
        self.machines: list[Machine] = []
        self._rows = self._epochs = 0  # number of rows and of epochs in the last checkpoint
        self._saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        self._model = model

    def restore(self, newest: Checkpoint | None) -> int:
        """Restores weights, optimizer and rows of a checkpoint; returns its number of epochs."""
        if self.folder.writer and not (newest and newest.state["rows"]):
            (self.folder.path / ROWS).unlink(missing_ok=True)  # of epochs that no checkpoint has
        if newest is None:
            self.timer.restore({"rows": [], "step": 0, "epochs": 0, "clock": {}})
            return 0
        averages.inner_optimizer(self._model).build(self._model.trainable_variables)
        hint, name = "delete it to go on from the one before", self.folder.recipe.model
        if ":" in name:  # the files are whole: their checksums were compared
            hint = f"{name} has changed since: go on with the function as it was"
        kinds = AssertionError, ValueError, IndexError, tf.errors.OpError
        with refusing(newest.path, "damaged or of another model", *kinds, hint=hint):
            self._saved.read(str(newest.path / "variables")).assert_consumed()
        # The run's clock goes on already, from clock.json.
        self.timer.restore({**newest.state, "epochs": newest.epochs, "clock": {}})
        # Release 0.2 wrote none.
        self.machines = [Machine(**facts) for facts in newest.state.get("machines", [])]
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
        if self.machine not in self.machines[-1:]:
            self.machines.append(self.machine)
        self._rows, self._epochs = len(self.timer.rows), epochs
        with self.timer.clock.part("checkpoint"):
            try:
                self._write(epochs)
            except strategies.LOST_WORKER:  # reading the weights may need all
                raise
            except (OSError, tf.errors.OpError) as error:
                raise files.cannot_write(self.folder.path, error) from None

    def complete(self, restored: Checkpoint) -> None:
        """Adds weights.npz to a checkpoint that an earlier version wrote without it."""
        path, state = restored.path / WEIGHTS, restored.path / STATE
        if path.exists() or not self.folder.writer:
            return
        with files.renamed_to(path) as temporary:
            run_folder.write_weights(temporary, averages.values(self._model))
        values = files.read_json(state)
        values["files"] = {**values.get("files", {}), path.name: files.digest(path)}
        files.write_json(state, values)

    def _write(self, epochs: int) -> None:
        """Writes checkpoint-EPOCHS; every worker calls it, as reading values may need them all."""
        folder, final = self.folder.path, self.folder.path / f"checkpoint-{epochs}"
        home = folder if self.folder.writer else None
        with tempfile.TemporaryDirectory(
            prefix=".checkpoint-", dir=home, ignore_cleanup_errors=True
        ) as name:
            temporary = Path(name)
            self._saved.write(str(temporary / "variables"))
            run_folder.write_weights(temporary / WEIGHTS, averages.values(self._model))
            if not self.folder.writer:
                return
            shutil.copymode(folder, temporary)  # a temporary folder is nobody else's
            # fsync before the rename: after a power cut the final name must not have empty files.
            for path in temporary.iterdir():
                _flush(path)
            state = self.timer.state() | {"clock": self.timer.clock.parts()}
            state.pop("epochs")  # the folder's name has them
            state["jitCompile"] = bool(self._model.jit_compile)
            state["machines"] = [machine._asdict() for machine in self.machines]
            state["files"] = {path.name: files.digest(path) for path in sorted(temporary.iterdir())}
            files.write_json(temporary / STATE, state)
            _flush(temporary)
            if os.path.lexists(final):  # a damaged checkpoint, whose epoch was trained again
                files.remove(final)
            os.rename(temporary, final)
            _flush(folder)
        # Keeps the last two: the older one is used if the newer one is damaged.
        for _, old in run_folder.checkpoints(folder)[:-2]:
            files.remove(old)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
