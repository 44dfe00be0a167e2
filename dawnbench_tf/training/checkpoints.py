"""The folder of a run: claimed by one recipe, saved an epoch at a time, resumed after any death.

    checkpoint-7/    weights, optimizer, streams of random numbers; rows and step, after 7 epochs

besides the files that `runs.py` reads, of which clock.json is written every second: what a crash
may lose. A checkpoint is written under another name and appears by one rename, so there is never
half of one. Order and augmentation of the data follow from (seed, epoch): they need no saving.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import tensorflow as tf

from dawnbench_tf import files, runs
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.training import optimizers
from dawnbench_tf.tta import TimeToAccuracy


class Folder:
    """A claimed output folder. `writer` is false on workers that must not write to it."""

    def __init__(self, path: Path, writer: bool = True):
        self.path, self.writer = path, writer
        self.rows = path / runs.ROWS
        self.clock = path / runs.CLOCK

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Whole checkpoints as (epochs done, folder), oldest first."""
        named = [
            (path.name.removeprefix("checkpoint-"), path) for path in self.path.glob("checkpoint-*")
        ]
        return sorted((int(epochs), path) for epochs, path in named if epochs.isdigit())


def claim(path: Path, recipe: Recipe, writer: bool = True) -> Folder:
    """Takes a new or empty folder for this recipe, or the one where it was run before.

    Raises Refusal if the folder can't be written, is in use, holds another recipe's run, or
    holds something else.
    """
    folder = Folder(path, writer)
    if not writer:
        return folder
    files.make_folder(path)
    _lock(path)
    for half in path.glob(".checkpoint-*"):  # of a process that was killed while it saved
        shutil.rmtree(half)
    owner = path / runs.RECIPE
    if owner.exists():
        _check_owner(path, runs.recipe_of(path), recipe)
    elif {item.name for item in path.iterdir()} - {".lock"}:
        raise Refusal(
            f"--output_dir={path}: holds other files and no run; name a new or an empty folder"
        )
    else:
        files.write_whole(owner, json.dumps(recipe.values(), indent=2) + "\n")
    return folder


def load_weights(path: Path, model: tf.keras.Model) -> None:
    """Gives a compiled model the newest checkpoint's weights: their averages, if it has those.

    Raises Refusal if the folder holds no checkpoint, or one of another model.
    """
    checkpoints = Folder(path).checkpoints()
    if not checkpoints:
        raise Refusal(f"{path}: holds no checkpoint; train with --output_dir={path} first")
    optimizer = optimizers.inner(model)
    optimizer.build(model.trainable_variables)
    _read(tf.train.Checkpoint(model=model, optimizer=model.optimizer), checkpoints[-1][1])
    if optimizer.use_ema:
        optimizer.finalize_variable_values(model.trainable_variables)


def _read(saved, path):
    try:
        saved.read(str(path / "variables")).assert_consumed()
    except (AssertionError, ValueError, IndexError, tf.errors.OpError) as error:
        raise Refusal(
            f"{path}: damaged or of another model ({one_line(error)}); "
            "delete it to go on from the one before"
        ) from None


def _lock(path):
    """Holds a lock on the folder until the process ends, however it ends."""
    try:
        lock = os.open(path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise files.cannot_write(path, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Refusal(
            f"--output_dir={path}: another process is training in it; name another folder"
        ) from None


def _check_owner(path: Path, owner: Recipe, recipe: Recipe):
    """Refuses another recipe's folder. What an earlier version did not write has its default."""
    theirs, ours = owner.values(), recipe.values()
    for name in ours:
        if theirs[name] != ours[name]:
            held = f"{owner.name} with {name}={theirs[name]}, not {ours[name]}"
            raise Refusal(f"--output_dir={path}: holds a run of {held}; name another folder")


class Saver(tf.keras.callbacks.Callback):
    """Saves all of a run at the end of each epoch, and the clock in between.

    Args:
      folder: the claimed Folder.
      model: compiled Keras model.
      timer: TimeToAccuracy, whose rows and clock are saved; before this one in `callbacks`.
    """

    SECONDS_BETWEEN_BEATS = 1.0

    def __init__(self, folder: Folder, model: tf.keras.Model, timer: TimeToAccuracy):
        super().__init__()
        self.folder, self.timer = folder, timer
        self._saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        self._optimizer, self._variables = optimizers.inner(model), model.trainable_variables
        self._beat_at = time.monotonic()
        self.recorded: dict[str, float] = {}  # seconds by part of earlier processes

    def restore(self) -> int:
        """Restores the newest checkpoint, clock and rows; returns the epochs done (0: none)."""
        checkpoints = self.folder.checkpoints()
        if self.folder.clock.exists():
            self.recorded = runs.read_json(self.folder.clock)
            self.timer.clock.carry_on(self.recorded)
        if not checkpoints:
            return 0
        epochs, path = checkpoints[-1]
        self._optimizer.build(self._variables)
        _read(self._saved, path)
        self.timer.restore(runs.read_json(path / "state.json"))
        return epochs

    def on_train_begin(self, logs=None):
        self.beat()

    def on_train_batch_end(self, batch, logs=None):
        if time.monotonic() - self._beat_at >= self.SECONDS_BETWEEN_BEATS:
            self.beat()

    def on_epoch_end(self, epoch, logs=None):
        with self.timer.clock.part("checkpoint"):
            try:
                self._save(epoch + 1)
            except (OSError, tf.errors.OpError) as error:
                raise files.cannot_write(self.folder.path, error) from None
        self.beat()

    def beat(self) -> None:
        """Writes the clock as it stands, so that no second of a run that dies is forgotten."""
        self._beat_at = time.monotonic()
        if self.folder.writer:
            files.write_whole(self.folder.clock, json.dumps(self.timer.clock.parts()) + "\n")

    def _save(self, epochs):
        """Writes checkpoint-EPOCHS. Every worker takes part: values may be spread over them."""
        home = self.folder.path if self.folder.writer else None
        temporary = Path(tempfile.mkdtemp(prefix=".checkpoint-", dir=home))
        try:
            self._saved.write(str(temporary / "variables"))
            if self.folder.writer:
                files.write_whole(temporary / "state.json", json.dumps(self.timer.state()) + "\n")
                for path in temporary.iterdir():
                    _flush(path)
                os.rename(temporary, self.folder.path / f"checkpoint-{epochs}")
                _flush(self.folder.path)
                # The one before stays, should this one be lost.
                for _, old in self.folder.checkpoints()[:-2]:
                    shutil.rmtree(old)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _flush(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
