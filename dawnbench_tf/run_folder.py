"""The folder of a training run: what its files are, who owns it, what they hold. No TensorFlow.

    run.json                    the recipe that owns the folder, the options it is trained with
    rows.tsv                    a row for each evaluation, as they came
    clock.json                  seconds of each part of the clock so far, written every second
    checkpoint-7/               after 7 epochs: weights, optimizer, states of random generators;
                                weights.npz, for inference; state.json, with rows, step and clock,
                                and a checksum of each file
    utilization.json            what it used of its machine, in the process that ended it
    trial.json                  of steps that were timed in the folder before a run began there
    not_an_entry/               entries that the rules do not rank

Each file knows its own checksum, so what is damaged is not taken for a result. `RunFolder` is the
folder of a process that trains; `runs.read` reads any.
"""

import hashlib
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dawnbench_tf import files, recipes, terminal
from dawnbench_tf.clock import Clock
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions, with_recorded
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing, shown
from dawnbench_tf.settings import check_fields, check_type

RECIPE, ROWS, CLOCK = "run.json", "rows.tsv", "clock.json"
UTILIZATION, TRIAL = "utilization.json", "trial.json"
STATE, WEIGHTS = "state.json", "weights.npz"  # of a checkpoint
NOT_RANKED = "not_an_entry"
FORMAT, NEWEST_FORMAT = "format", 2  # key in run.json; folders of release 0.1 have none
EPOCHS_BEFORE = "epochs_before"  # key in run.json: epochs of a miss, each time it was prolonged
OPTIONS = "options"  # key in run.json: options that are not defaults; releases to 0.2 wrote none
REPLACED = "replaced"  # key in run.json: the fields that flags gave, against the library's row

Rows = list[dict[str, float]]


class Owner(NamedTuple):
    """Who owns a folder: what run.json says."""

    path: Path  # the file
    recipe: Recipe
    replaced: list[str] | None  # fields that flags replaced; None: an earlier release wrote none
    epochs_before: list[float]  # after which the run missed its goal and was trained longer
    values: Mapping[str, Any]  # all of the file, as JSON has it

    @property
    def options(self) -> RunOptions:
        """The options that the run was last trained with, as `Run.options` says."""
        values = self.values.get(OPTIONS, {})
        try:
            if not isinstance(values, dict):
                raise TypeError("should be an object")
            return with_recorded(RunOptions(), values)
        except (TypeError, ValueError) as error:
            text = f"{OPTIONS} are none of this version ({one_line(error)})"
            raise Refusal(f"{self.path}: {text}") from None


def owner_of(folder: Path) -> Owner:
    """Reads run.json, once as long as nobody writes it. Raises Refusal."""
    path = folder / RECIPE
    if not path.is_file():
        text = f"holds no {RECIPE}; should be the --output_dir of a training run"
        raise Refusal(f"{folder}: {text}")
    status = path.stat()  # a file that is written anew is another inode
    return _read_owner(path, (status.st_ino, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_owner(path: Path, _: tuple[int, ...]) -> Owner:
    whole = files.read_json(path)
    version = whole.get(FORMAT, 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        text = f"{FORMAT} should be a whole number from 1 to {NEWEST_FORMAT}"
        raise Refusal(f"{path}: {text}; has {one_line(repr(version), 40)}")
    if version > NEWEST_FORMAT:
        reads = f"this release reads formats up to {NEWEST_FORMAT}"
        raise Refusal(f"{path}: has format {version}; {reads}: install a newer dawnbench_tf")
    values = {name: value for name, value in whole.items() if name not in (FORMAT, OPTIONS)}
    before, replaced = values.pop(EPOCHS_BEFORE, []), values.pop(REPLACED, None)
    try:
        recipe = recipes.changed(Recipe.from_values(values))  # checks its model
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise Refusal(f"{path}: is no recipe of this version ({one_line(error)})") from None
    with refusing(path, "", ValueError):
        check_type(before, list[float], EPOCHS_BEFORE)
        check_type(replaced, list[str] | None, REPLACED)
        if unknown := set(replaced or ()) - set(values):
            raise ValueError(f"{REPLACED} should be a list of the recipe's fields; has {unknown}")
    return Owner(path, recipe, replaced, before, whole)


# --- rows, clock, checkpoints ---------------------------------------------------------------------


class Checkpoint(NamedTuple):
    """A complete checkpoint, whose files match their checksums."""

    epochs: int  # epochs that were trained
    path: Path
    state: dict[str, Any]  # "rows" and "step" of TimeToAccuracy; "clock", seconds by part

    def is_last(self, recipe: Recipe) -> bool:
        """Whether a run with this checkpoint has nothing more to train."""
        reached = any(row[recipe.task_row.metric] >= recipe.goal for row in self.state["rows"])
        return reached or self.epochs >= recipe.epochs


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Returns (epochs done, path) of each checkpoint in a run's folder, oldest first."""
    named = [(re.fullmatch("checkpoint-([0-9]{1,9})", p.name), p) for p in folder.glob("check*")]
    return sorted((int(match[1]), path) for match, path in named if match)


def check_rows(rows: object, metric: str) -> None:
    """Raises ValueError unless a value of a JSON file is a run's rows."""
    check_type(rows, list[dict[str, float]], "rows")
    for row in rows:  # type: ignore[attr-defined]
        if not {"epoch", "hours", metric} <= set(row):
            raise ValueError(f"rows should have epoch, hours and {metric}")


def check_clock(parts: object) -> None:
    """Raises ValueError unless a value of a JSON file is the seconds by part of a clock."""
    check_type(parts, dict[str, float], "clock")
    if any(seconds < 0 for seconds in parts.values()):  # type: ignore[attr-defined]
        raise ValueError("clock should have no negative seconds")


def read_state(checkpoint: Path, metric: str) -> dict[str, Any]:
    """Reads a checkpoint's state.json and verifies the checksums in it. Raises Refusal."""
    path = checkpoint / STATE
    state = files.read_json(path)
    present = {file.name: file for file in checkpoint.iterdir()}
    for file in present.values():
        if not file.is_file():
            raise Refusal(f"{file}: is no regular file; should be one of a checkpoint")
    sums = state.get("files", {})
    for name, checksum in sums.items() if isinstance(sums, dict) else ():
        if name not in present:
            text = f"has no {shown(one_line(name))}; should hold what was written"
            raise Refusal(f"{checkpoint}: {text}")
        if files.digest(present[name]) != checksum:  # TensorFlow would load a damaged one
            raise Refusal(f"{present[name]}: damaged; it is not what was written")
    with refusing(path, "should hold rows, step and clock of a run", ValueError):
        # Earlier releases did not write all of these.
        optional: dict[str, Any] = {"clock": {}, "files": {}, "machines": [], "jitCompile": False}
        kinds = {"rows": Any, "step": int, "clock": Any, "files": Any, "machines": list[Machine]}
        kinds |= {"jitCompile": bool}
        check_fields({**optional, **state}, kinds, "state")
        check_rows(state["rows"], metric)
        check_clock(state.get("clock", {}))
        if state["step"] < 0:
            raise ValueError("step should be at least 0")
    return state


def read_clock(path: Path) -> dict[str, float]:
    """Reads the seconds by part of a run's clock. Raises Refusal if the file is damaged."""
    parts = files.read_json(path)
    with refusing(path, "should hold seconds by part of the clock", ValueError):
        check_clock(parts or None)
    return parts


def read_rows(folder: Path, metric: str) -> Rows:
    """Returns the rows of rows.tsv, or those of the newest checkpoint if it has more."""
    path = folder / ROWS
    rows = _read_table(path, metric) if os.path.lexists(path) else []
    states = [item / STATE for _, item in checkpoints(folder) if (item / STATE).exists()]
    if not states:
        return rows
    saved: Rows = files.read_json(states[-1]).get("rows", "none")
    with refusing(states[-1], "should hold a run's rows", ValueError, hint="restore it"):
        check_rows(saved, metric)
    both = min(len(rows), len(saved))
    if rows[:both] != saved[:both]:
        problem = f"differs from the rows in {states[-1].parent.name}"
        raise Refusal(f"{path}: {problem}; the command that trained it writes it anew")
    return rows if len(rows) >= len(saved) else saved


def _read_table(path: Path, metric: str) -> Rows:
    """Reads the complete rows of rows.tsv; a crash may have cut off the last one."""
    with refusing(path, "can't be read", OSError, ValueError):
        if not path.is_file():
            raise ValueError("is no file")
        if path.stat().st_size > files.LARGEST_JSON:
            raise ValueError(f"is larger than {files.LARGEST_JSON >> 20} MiB")
        lines = path.read_text(encoding="utf-8").split("\n")
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


def read_used(folder: Path) -> dict[str, Any]:
    """Returns the utilization that a finished run wrote; {} if it is missing or damaged."""
    path = folder / UTILIZATION
    try:
        return files.read_json(path) if path.exists() else {}
    except Refusal as refusal:
        terminal.say(f"{refusal}; what was used is left out")
        return {}


def write_weights(path: Path, weights: Sequence[np.ndarray]) -> None:
    """Writes the weights of a model, in the order of its variables. Raises OSError."""
    arrays: dict[str, Any] = {f"{number:05}": array for number, array in enumerate(weights)}
    np.savez(path, **arrays)


def read_weights(folder: Path) -> list[np.ndarray]:
    """Reads the evaluated weights of the newest checkpoint, in the order of the model's."""
    newest = checkpoints(folder)
    if not newest:
        raise Refusal(f"{folder}: holds no checkpoint; train with --output_dir={folder} first")
    path, state = newest[-1][1] / WEIGHTS, newest[-1][1] / STATE
    sums = files.read_json(state).get("files")
    if not isinstance(sums, dict) or not isinstance(sums.get(WEIGHTS), str):
        hint = f"dawnbench train --output_dir={folder} adds its weights"
        raise Refusal(f"{path.parent}: an earlier version wrote it; {hint}")
    if not files.is_regular(path):
        raise Refusal(f"{path}: is no regular file; should be the weights of a run")
    with refusing(path, "can't be read", OSError, ValueError):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sums[WEIGHTS]:
            raise Refusal(f"{path}: damaged; it is not what was written")
        arrays = files.read_npz(content)
    return [arrays[name] for name in sorted(arrays)]


# --- a folder that is trained in ------------------------------------------------------------------


@dataclass
class RunFolder:
    """The folder of the run that this process trains."""

    path: Path
    recipe: Recipe  # to run, which may differ from the one asked for: see `claim`
    writer: bool = True  # whether this process writes to the folder
    owner: Owner | None = None  # what run.json said before; None: this process began the run
    descriptor: int | None = None  # of the folder's lock; None: this process does not write to it
    absent: tuple[Path, ...] = ()  # folders that this process created, the innermost first
    clock_before: dict[str, float] | None = None  # stays, if this process could not begin to train

    def record(self, recipe: Recipe, options: Mapping[str, Any]) -> None:
        """Writes recipe and options of a run that is built to run.json, if others are there."""
        # The recipe is another if the task's numbers were left open before, or a missed run is
        # trained longer. Refused options are not those to go on with: so they are written now.
        values = owner_of(self.path).values
        changed = {name: value for name, value in values.items() if name != OPTIONS}
        changed |= {OPTIONS: options} if options else {}
        if recipe.whole_task != self.recipe.whole_task:
            changed |= recipe.values()
        if self.owner and recipe.epochs > self.owner.recipe.epochs:
            changed |= {"epochs": recipe.epochs, "schedule_epochs": recipe.schedule.epochs}
            changed[EPOCHS_BEFORE] = [*self.owner.epochs_before, self.owner.recipe.epochs]
            if REPLACED in values:
                changed[REPLACED] = sorted({"epochs", *values[REPLACED]})
        if changed != values:
            files.write_json(self.path / RECIPE, changed)

    def release(self) -> None:
        """Releases the folder, so that a later call in this process may go on with the run."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    @contextmanager
    def restored_on(self, kind: type[Exception], recorded: dict[str, float]) -> Iterator[None]:
        """If the body raises such an error, empties a new run's folder, or keeps a run's clock."""
        try:
            yield
        except kind:
            self.clock_before = recorded
            if self.writer and not self.owner:
                # run.json first: without it `write_clock`, in its thread, writes no new file.
                for path in (self.path / RECIPE, *self.path.iterdir()):
                    if path.name != TRIAL:  # of an earlier call
                        files.discard(path)
                with suppress(OSError):  # a folder that another process wrote to stays
                    for folder in self.absent:
                        folder.rmdir()
            raise

    def newest(self) -> Checkpoint | None:
        """Returns the newest undamaged checkpoint; None if there is no checkpoint."""
        # Prints a line for each damaged one that it skips.
        reason = ""
        for epochs, path in reversed(checkpoints(self.path)):
            try:
                return Checkpoint(epochs, path, read_state(path, self.recipe.task_row.metric))
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
        """Returns the seconds of earlier processes by part of the clock."""
        # Reads clock.json; writes the checkpoint's clock to it if that is later, or it is damaged.
        path = self.path / CLOCK
        saved = (newest.state.get("clock") if newest else None) or {}
        try:
            written = read_clock(path) if path.exists() else {}
        except Refusal as refusal:
            written = {}
            terminal.say(f"{refusal}; the clock goes on from the checkpoint's")
        if sum(written.values()) >= sum(saved.values()):
            return written
        if not written:
            terminal.say(f"{path}: not there; the clock goes on from the checkpoint's")
        if self.writer:  # a finished run writes no clock, and its entry is made from this file
            with suppress(Refusal):
                files.write_json(path, saved)
        return saved

    def write_clock(self, clock: Clock) -> None:
        """Writes clock.json, every second: a run that is killed loses at most one of its clock."""
        # A failed write is ignored: on a full disk the next checkpoint fails too, and reports it.
        if (self.path / RECIPE).exists():  # else the folder was given back
            with suppress(Refusal):
                parts = clock.parts() if self.clock_before is None else self.clock_before
                if parts:
                    files.write_json(self.path / CLOCK, parts)
                else:  # the run had none yet
                    files.discard(self.path / CLOCK)


def claim(
    path: Path,
    recipe: Recipe,
    writer: bool = True,
    replaced: Collection[str] | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> RunFolder:
    """Claims a new or empty folder for a recipe, or the folder of an earlier run of it."""
    # The recipe of the result is that of the earlier run, if there was one, even if the library's
    # recipe has changed since; with the epochs of `recipe`, if that run missed its goal and
    # `recipe` has more epochs. `replaced` has the names of the fields that the user set; None: all.
    # A new run records the `options`.
    try:
        str(path.absolute()).encode("utf-8")  # TensorFlow saves no checkpoint to another path
    except UnicodeEncodeError:
        name = ascii(str(path))[1:-1]
        refuse("output_dir", name, "should be UTF-8, as checkpoints need it; name another folder")
    if not writer:
        owner = owner_of(path) if (path / RECIPE).is_file() else None
        own = _recipe_to_continue(owner, recipe, replaced) if owner else recipe
        return RunFolder(path, own, writer=False, owner=owner)
    absent = tuple(folder for folder in (path, *path.parents) if not folder.exists())
    files.make_folder(path)
    if not os.path.lexists(path / RECIPE):
        left = {".lock", CLOCK, TRIAL, ".run.tmp.json", ".clock.tmp.json"}  # by a refused run
        if {item.name for item in path.iterdir()} - left:
            text = "holds other files and no run; name a new or an empty folder"
            raise Refusal(f"--output_dir={path}: {text}")
    descriptor = files.lock(path, "another process is training in it; name another folder")
    try:
        # Under the lock these are leftovers of a killed process: nobody is writing them now.
        for leftover in (*path.glob(".checkpoint-*"), *path.glob(".*.tmp.*")):
            files.remove(leftover)
        if os.path.lexists(path / RECIPE):
            for name in (ROWS, CLOCK):
                if os.path.lexists(path / name) and not files.is_regular(path / name):
                    raise Refusal(f"{path / name}: should be a file; move it away")
            owner = owner_of(path)
            own = _recipe_to_continue(owner, recipe, replaced)
            return RunFolder(path, own, owner=owner, descriptor=descriptor)
        files.discard(path / CLOCK)
        names = {} if replaced is None else {REPLACED: sorted(replaced)}
        others = {OPTIONS: dict(options)} if options else {}
        files.write_json(
            path / RECIPE, {FORMAT: NEWEST_FORMAT, **recipe.values(), **names, **others}
        )
        return RunFolder(path, recipe, descriptor=descriptor, absent=absent)
    except BaseException:
        os.close(descriptor)
        raise


def _recipe_to_continue(owner: Owner, recipe: Recipe, replaced: Collection[str] | None) -> Recipe:
    """Returns the recipe to continue in a folder. Raises Refusal if another recipe owns it."""
    path, own = owner.path.parent, owner.recipe
    theirs, ours = own.values(), recipe.values()
    # Fields that have to be equal: those that a user set, in this call or the first one. The others
    # come from the library's recipe, which may have changed between the two.
    compared = set(ours)
    if replaced is not None:
        compared = {"name", "task", "synthetic", *replaced, *(owner.replaced or ())}
    more = "epochs" in compared and recipe.epochs > own.epochs
    if owner.epochs_before:
        compared.discard("schedule_epochs")  # which `_longer` has stretched
    if "task" in compared:
        compared.remove("task")
        # The task that is asked for may leave the numbers of its data open.
        if name := own.whole_task.difference(recipe.whole_task):
            task, other = own.whole_task, recipe.whole_task
            text = f"{name}={getattr(task, name)}, not {other.name} with {getattr(other, name)}"
            text = f"holds a run of {task.name} with {text}"
            refuse("output_dir", path, f"{text}; name another folder")
    for name in ours:
        if name in compared and theirs[name] != ours[name] and not (more and name == "epochs"):
            value = "its default" if ours[name] is None else ours[name]
            difference = f"{own.name} with {name}={theirs[name]}, not {value}"
            raise Refusal(f"--output_dir={path}: holds a run of {difference}; name another folder")
    if more:
        return _longer(owner, recipe.epochs)
    others = [name for name in ours if name != "task" and theirs[name] != ours[name]]
    if changed := [f"{name}={theirs[name]}" for name in others]:
        terminal.say(f"{path}: goes on as it began, with {', '.join(changed)}")
    return own


def _longer(owner: Owner, epochs: float) -> Recipe:
    """Returns a missed run's recipe with more epochs; a schedule that ends at 0 is stretched."""
    path, own, text = owner.path.parent, owner.recipe, f"{epochs:g}"
    metric = own.task_row.metric
    hits = [row for row in read_rows(path, metric) if row[metric] >= own.goal]
    if hits:
        epoch = f"epoch {hits[0]['epoch']:g} of {own.epochs:g}"
        reason = f"nothing to do: {path} reached {own.goal:g} in {epoch}; name another folder"
        refuse("epochs", text, f"{reason} for a new run")
    if max((number for number, _ in checkpoints(path)), default=0) < own.epochs:
        reason = f"{path} holds a run with epochs={own.epochs:g} that has not ended; go on with it"
        refuse("epochs", text, f"{reason} first, without --epochs")
    if own.epochs != int(own.epochs):  # the rest of a partial epoch would be skipped
        reason = f"{path} ended inside an epoch, at {own.epochs:g}, and can't be trained longer"
        refuse("epochs", text, f"{reason}; name another folder")
    schedule, rates = own.schedule, "with its schedule as it is"
    if schedule.zero_from < epochs:
        schedule = schedule.zero_at(epochs)
    if schedule != own.schedule or schedule.form in ("cosine", "quadratic"):
        rates = f"from here on at the rates of a schedule of {epochs:g} epochs"
    text = f"{path}: missed {own.goal:g} in {terminal.counted(own.epochs, 'epoch')}; trained longer"
    terminal.say(f"{text}, to {epochs:g}, {rates}")
    return replace(own, epochs=epochs, schedule=schedule)
