"""Claims: a run's folder belongs to one recipe, and to one process at a time."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dawnbench_tf import files, runs, terminal
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task


class Claim(NamedTuple):
    """A folder that is claimed for a recipe."""

    path: Path
    recipe: Recipe  # the recipe to run, which may differ from the one asked for: see `claim`
    is_new: bool = False  # whether this process began the run
    is_longer: bool = False  # whether the recipe has more epochs than the missed run in the folder
    descriptor: int | None = None  # of the folder's lock; None: this process does not write to it
    absent: tuple[Path, ...] = ()  # folders that this process created, the innermost first

    def record(self, recipe: Recipe, options: Mapping[str, Any]) -> None:
        """Writes recipe and options of a run that is built to run.json, if others are there.

        The recipe is another if the task's numbers were left open before, or a missed run is
        trained longer. Refused options are not those to go on with: so they are written now.

        Args:
          recipe: the recipe, with its task's numbers.
          options: the options, as `options.to_record` returns them.

        Raises:
          Refusal: the file can't be read or written.
        """
        path = self.path / runs.RECIPE
        values = files.read_json(path)
        changed = {name: value for name, value in values.items() if name != runs.OPTIONS}
        changed |= {runs.OPTIONS: options} if options else {}
        if recipe.whole_task != self.recipe.whole_task:
            changed |= recipe.values()
        if self.is_longer:
            changed |= {"epochs": recipe.epochs, "schedule_epochs": recipe.schedule.epochs}
            changed[runs.EPOCHS_BEFORE] = [*runs.epochs_before(self.path), values["epochs"]]
            if runs.REPLACED in values:
                changed[runs.REPLACED] = sorted({"epochs", *values[runs.REPLACED]})
        if changed != values:
            files.write_json(path, changed)

    def unlock(self) -> None:
        """Releases the folder, so that a later call in this process may go on with the run."""
        if self.descriptor is not None:
            os.close(self.descriptor)

    @contextmanager
    def released_if_refused(self) -> Iterator[None]:
        """If the body raises Refusal and the claim is new, restores the folder as it was."""
        try:
            yield
        except Refusal:
            if self.is_new:
                # run.json first: without it `clock_writer`, in its thread, writes no new file.
                for path in (self.path / runs.RECIPE, *self.path.iterdir()):
                    if path.name != runs.TRIAL:  # of an earlier call
                        files.discard(path)
                with suppress(OSError):  # a folder that another process wrote to stays
                    for folder in self.absent:
                        folder.rmdir()
            raise


def claim(
    path: Path,
    recipe: Recipe,
    writer: bool = True,
    replaced: Collection[str] | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Claim:
    """Claims a new or empty folder for a recipe, or the folder of an earlier run of it.

    Args:
      path: the folder.
      recipe: the recipe to run.
      writer: whether this process writes to the folder.
      replaced: names of the fields that the user set; None: all fields.
      options: options that a new run records, as `options.to_record` returns them.

    Returns:
      The claim. Its recipe is that of the earlier run, if there was one, even if the library's
      recipe has changed since; with the epochs of `recipe`, if that run missed its goal and
      `recipe` has more epochs.

    Raises:
      Refusal: the folder can't be written, another process uses it, it holds another recipe's run
        or other files, or its path is not UTF-8.
    """
    _check_encoding(path)
    owner = path / runs.RECIPE
    absent = tuple(folder for folder in (path, *path.parents) if not folder.exists())
    if not writer:
        if owner.is_file():
            recipe, _ = _recipe_to_continue(path, recipe, replaced)
        return Claim(path, recipe)
    files.make_folder(path)
    descriptor = files.lock(path, "another process is training in it; name another folder")
    try:
        claim = _claim_locked(path, recipe, replaced, options)
        return claim._replace(descriptor=descriptor, absent=absent)
    except BaseException:
        os.close(descriptor)
        raise


def _claim_locked(
    path: Path, recipe: Recipe, replaced: Collection[str] | None, options: Mapping[str, Any]
) -> Claim:
    """Claims a folder for a recipe, or continues the run in it; this process holds its lock."""
    owner = path / runs.RECIPE
    # Under the lock these are leftovers of a killed process: nobody is writing them now.
    for leftover in (*path.glob(".checkpoint-*"), *path.glob(".*.tmp*")):
        files.remove(leftover)
    if os.path.lexists(owner):
        for name in (runs.ROWS, runs.CLOCK):
            if os.path.lexists(path / name) and not files.is_regular(path / name):
                raise Refusal(f"{path / name}: should be a file; move it away")
        recipe, is_longer = _recipe_to_continue(path, recipe, replaced)
        return Claim(path, recipe, is_longer=is_longer)
    if {item.name for item in path.iterdir()} - {".lock", runs.CLOCK, runs.TRIAL}:
        raise Refusal(
            f"--output_dir={path}: holds other files and no run; name a new or an empty folder"
        )
    files.discard(path / runs.CLOCK)  # a refused run may have left it
    _write_owner(path, recipe, replaced, {runs.OPTIONS: dict(options)})
    return Claim(path, recipe, is_new=True)


def _check_encoding(path: Path) -> None:
    """Raises Refusal for a path that is not UTF-8, to which TensorFlow can't save checkpoints."""
    try:
        str(path.absolute()).encode("utf-8")
    except UnicodeEncodeError:
        name = ascii(str(path))[1:-1]
        refuse("output_dir", name, "should be UTF-8, as checkpoints need it; name another folder")


def _recipe_to_continue(
    path: Path, recipe: Recipe, replaced: Collection[str] | None
) -> tuple[Recipe, bool]:
    """Returns the recipe to continue in a folder, and whether it is longer than the folder's.

    Raises Refusal if another recipe owns the folder.
    """
    owner, owners_replaced = runs.owner_of(path)
    theirs, ours = owner.values(), recipe.values()
    # Fields that have to be equal: those that a user set, in this call or the first one. The others
    # come from the library's recipe, which may have changed between the two.
    compared = set(ours)
    if replaced is not None:
        compared = {"name", "task", "synthetic", *replaced, *(owners_replaced or ())}
    longer = "epochs" in compared and recipe.epochs > owner.epochs and _missed(path, owner)
    if longer:
        compared.remove("epochs")
    if "task" in compared:
        _check_task(path, owner.whole_task, recipe.whole_task)
        compared.remove("task")
    for name in ours:
        if name in compared and theirs[name] != ours[name]:
            if name == "epochs":
                _refuse_epochs(path, owner, recipe.epochs)
            difference = f"{owner.name} with {name}={theirs[name]}, not {ours[name]}"
            raise Refusal(f"--output_dir={path}: holds a run of {difference}; name another folder")
    if longer:
        own = owners_replaced is None or "schedule_epochs" in compared
        return _longer(path, owner, recipe.epochs, stretches=not own), True
    others = [name for name in ours if name != "task" and theirs[name] != ours[name]]
    changed = [f"{name}={theirs[name]}" for name in others]
    if changed:
        terminal.say(f"{path}: goes on as it began, with {', '.join(changed)}")
    return owner, False


def _longer(path: Path, owner: Recipe, epochs: float, stretches: bool) -> Recipe:
    """Returns a missed run's recipe with more epochs.

    A schedule that ends at a learning rate of 0 is stretched, unless the user has set its epochs.
    """
    schedule, rates = owner.schedule, "with its schedule as it is"
    if schedule.zero_from < epochs:
        rates += f": the learning rate is 0 from epoch {schedule.zero_from:g} on"
        if stretches:
            schedule = schedule.zero_at(epochs)
    if schedule != owner.schedule or schedule.form in ("cosine", "quadratic"):
        rates = f"from here on at the rates of a schedule of {epochs:g} epochs"
    text = f"{path}: missed {owner.goal:g} in {owner.epochs:g} epochs; trained longer"
    terminal.say(f"{text}, to {epochs:g}, {rates}")
    return replace(owner, epochs=epochs, schedule=schedule)


def _check_task(path: Path, owned: Task, task: Task) -> None:
    """Raises Refusal unless a folder's task is the one asked for, which may leave numbers open."""
    if name := owned.difference(task):
        theirs, ours = getattr(owned, name), getattr(task, name)
        text = f"a run of {owned.name} with {name}={theirs}, not {task.name} with {ours}"
        raise Refusal(f"--output_dir={path}: holds {text}; name another folder")


def _refuse_epochs(path: Path, owner: Recipe, epochs: float) -> None:
    """Refuses more epochs for a run that has reached its goal, or has not trained all of its own.

    Other differences of epochs are refused as those of any setting are.
    """
    if epochs < owner.epochs:
        return
    if hit := runs.read(path).first_hit:
        epoch = f"epoch {hit['epoch']:g} of {owner.epochs:g}"
        text = f"nothing to do: {path} reached {owner.goal:g} in {epoch}; name another folder"
        refuse("epochs", f"{epochs:g}", f"{text} for a new run")
    done = max((number for number, _ in runs.checkpoints(path)), default=0)
    if done < owner.epochs:
        text = f"{path} holds a run with epochs={owner.epochs:g} that has not ended; go on with it"
        refuse("epochs", f"{epochs:g}", f"{text} first, without --epochs")


def _missed(path: Path, owner: Recipe) -> bool:
    """Whether a run has trained all its epochs, a whole number, without reaching its goal."""
    done = max((epochs for epochs, _ in runs.checkpoints(path)), default=0)
    whole = owner.epochs == int(owner.epochs)  # the rest of a partial epoch would be skipped
    return whole and done >= owner.epochs and not runs.read(path).reached


def _write_owner(
    path: Path,
    recipe: Recipe,
    replaced: Collection[str] | None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes run.json: the recipe, the fields that flags replaced if known, facts if any."""
    names = {} if replaced is None else {runs.REPLACED: sorted(replaced)}
    versioned = {runs.FORMAT: runs.NEWEST_FORMAT, **recipe.values()}
    others = {key: value for key, value in facts.items() if value}
    files.write_json(path / runs.RECIPE, {**versioned, **names, **others})
