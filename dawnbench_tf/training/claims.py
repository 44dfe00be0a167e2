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


class Claim(NamedTuple):
    """A folder that is claimed for a recipe."""

    path: Path
    recipe: Recipe  # the recipe to run, which may differ from the one asked for: see `claim`
    is_new: bool = False  # whether this process began the run
    absent: tuple[Path, ...] = ()  # folders that this process created, the innermost first

    @contextmanager
    def released_if_refused(self) -> Iterator[None]:
        """If the body raises Refusal and the claim is new, restores the folder as it was."""
        try:
            yield
        except Refusal:
            if self.is_new:
                # run.json first: without it `clock_writer`, in its thread, writes no new file.
                for path in (self.path / runs.RECIPE, *self.path.iterdir()):
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
) -> Claim:
    """Claims a new or empty folder for a recipe, or the folder of an earlier run of it.

    Args:
      path: the folder.
      recipe: the recipe to run.
      writer: whether this process writes to the folder.
      replaced: names of the fields that the user set; None: all fields.

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
            recipe = _recipe_to_continue(path, recipe, replaced, writer)
        return Claim(path, recipe)
    files.make_folder(path)
    files.lock(path, "another process is training in it; name another folder")
    # Under the lock these are leftovers of a killed process: nobody is writing them now.
    for leftover in (*path.glob(".checkpoint-*"), *path.glob(".*.tmp*")):
        files.remove(leftover)
    if os.path.lexists(owner):
        for name in (runs.ROWS, runs.CLOCK):
            if os.path.lexists(path / name) and not files.is_regular(path / name):
                raise Refusal(f"{path / name}: should be a file; move it away")
        return Claim(path, _recipe_to_continue(path, recipe, replaced, writer))
    if {item.name for item in path.iterdir()} - {".lock", runs.CLOCK, runs.TRIAL}:
        raise Refusal(
            f"--output_dir={path}: holds other files and no run; name a new or an empty folder"
        )
    files.discard(path / runs.CLOCK)  # a refused run may have left it
    _write_owner(path, recipe, replaced)
    return Claim(path, recipe, is_new=True, absent=absent)


def _check_encoding(path: Path) -> None:
    """Raises Refusal for a path that is not UTF-8, to which TensorFlow can't save checkpoints."""
    try:
        str(path.absolute()).encode("utf-8")
    except UnicodeEncodeError:
        name = ascii(str(path))[1:-1]
        refuse("output_dir", name, "should be UTF-8, as checkpoints need it; name another folder")


def _recipe_to_continue(
    path: Path, recipe: Recipe, replaced: Collection[str] | None, writer: bool
) -> Recipe:
    """Returns the recipe to continue in a folder. Raises Refusal if another recipe owns it."""
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
    for name in ours:
        if name in compared and theirs[name] != ours[name]:
            difference = f"{owner.name} with {name}={theirs[name]}, not {ours[name]}"
            raise Refusal(f"--output_dir={path}: holds a run of {difference}; name another folder")
    if longer:
        return _extend(path, owner, recipe.epochs, writer, owners_replaced)
    changed = [f"{name}={theirs[name]}" for name in ours if theirs[name] != ours[name]]
    if changed:
        terminal.say(f"{path}: goes on as it began, with {', '.join(changed)}")
    return owner


def _missed(path: Path, owner: Recipe) -> bool:
    """Whether a run has trained all its epochs, a whole number, without reaching its goal."""
    done = max((epochs for epochs, _ in runs.checkpoints(path)), default=0)
    whole = owner.epochs == int(owner.epochs)  # the rest of a partial epoch would be skipped
    return whole and done >= owner.epochs and not runs.read(path).reached


def _extend(
    path: Path, owner: Recipe, epochs: float, writer: bool, owners_replaced: list[str] | None
) -> Recipe:
    """Returns a missed run's recipe with more epochs, and writes it to run.json."""
    terminal.say(
        f"{path}: missed {owner.goal:g} in {owner.epochs:g} epochs; trained longer, to {epochs:g}, "
        f"from here on at the rates of a schedule of {epochs:g} epochs"
    )
    recipe = replace(owner, epochs=epochs)
    if writer:
        before = [*runs.epochs_before(path), owner.epochs]
        names = None if owners_replaced is None else {"epochs", *owners_replaced}
        _write_owner(path, recipe, names, {runs.EPOCHS_BEFORE: before})
    return recipe


def _write_owner(
    path: Path,
    recipe: Recipe,
    replaced: Collection[str] | None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes run.json: the recipe, the fields that flags replaced if known, further facts."""
    names = {} if replaced is None else {runs.REPLACED: sorted(replaced)}
    versioned = {runs.FORMAT: runs.NEWEST_FORMAT, **recipe.values()}
    files.write_json(path / runs.RECIPE, {**versioned, **names, **facts})
