"""The folder of a run, claimed by one recipe and one process at a time."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dawnbench_tf import files, runs, terminal
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse


class Claim(NamedTuple):
    """A claimed folder."""

    path: Path
    recipe: Recipe  # that is run in it
    is_new: bool = False  # this process wrote the first file in it
    absent: tuple[Path, ...] = ()  # folders that were not there before, the innermost first

    @contextmanager
    def given_back_if_refused(self) -> Iterator[None]:
        """A refusal in the body leaves the folder as it was found, if this claim is its first."""
        try:
            yield
        except Refusal:
            if self.is_new:  # run.json first: without it nobody writes the clock
                for path in (self.path / runs.RECIPE, *self.path.iterdir()):
                    files.discard(path)
                with suppress(OSError):  # what somebody else put there stays
                    for folder in self.absent:
                        folder.rmdir()
            raise


def claim(
    path: Path,
    recipe: Recipe,
    writer: bool = True,
    replaced: Collection[str] | None = None,
) -> Claim:
    """Takes a new or empty folder for this recipe, or the one where it was run before.

    Args:
      path: of the folder.
      recipe: to run.
      writer: whether this process writes to the folder.
      replaced: fields that differ from the library's row of that name by the user's wish; None:
        each field is.

    Returns:
      The folder, and the recipe to run in it: that of the run which began there, should the
      library's row have changed since; with more epochs, if that run missed its goal and `recipe`
      has more.

    Raises:
      Refusal: the folder can't be written, is in use, holds another recipe's run, or something
        else; or its path is not UTF-8.
    """
    _check_encoding(path)
    owner = path / runs.RECIPE
    absent = tuple(folder for folder in (path, *path.parents) if not folder.exists())
    if not writer:
        return Claim(path, _owner(path, recipe, replaced, writer) if owner.is_file() else recipe)
    files.make_folder(path)
    files.lock(path, "another process is training in it; name another folder")
    for half in (*path.glob(".checkpoint-*"), *path.glob(".*.tmp*")):
        files.remove(half)  # of a process that was killed while it wrote
    if os.path.lexists(owner):
        for name in (runs.ROWS, runs.CLOCK):
            if os.path.lexists(path / name) and not files.is_regular(path / name):
                raise Refusal(f"{path / name}: should be a file; move it away")
        return Claim(path, _owner(path, recipe, replaced, writer))
    if {item.name for item in path.iterdir()} - {".lock", runs.CLOCK, runs.TRIAL}:
        raise Refusal(
            f"--output_dir={path}: holds other files and no run; name a new or an empty folder"
        )
    files.discard(path / runs.CLOCK)  # of a run that was refused before it had begun
    _write_owner(path, recipe, replaced)
    return Claim(path, recipe, is_new=True, absent=absent)


def _check_encoding(path):
    """Refuses a path that TensorFlow can't save to: it takes names as UTF-8."""
    try:
        str(path.absolute()).encode("utf-8")
    except UnicodeEncodeError:
        name = ascii(str(path))[1:-1]
        refuse("output_dir", name, "should be UTF-8, as checkpoints need it; name another folder")


def _owner(path, recipe, replaced, writer):
    """The recipe that a folder goes on with. Raises Refusal if it holds a run of another one."""
    owner, owners_replaced = runs.owner_of(path)
    theirs, ours = owner.values(), recipe.values()
    held = set(ours)  # what has to be the same
    if replaced is not None:
        held = {"name", "task", "synthetic", *replaced, *(owners_replaced or ())}
    longer = "epochs" in held and recipe.epochs > owner.epochs and _missed(path, owner)
    if longer:
        held.remove("epochs")
    for name in ours:
        if name in held and theirs[name] != ours[name]:
            what = f"{owner.name} with {name}={theirs[name]}, not {ours[name]}"
            raise Refusal(f"--output_dir={path}: holds a run of {what}; name another folder")
    if longer:
        return _trained_longer(path, owner, recipe.epochs, writer, owners_replaced)
    changed = [f"{name}={theirs[name]}" for name in ours if theirs[name] != ours[name]]
    if changed:
        terminal.say(f"{path}: goes on as it began, with {', '.join(changed)}")
    return owner


def _missed(path, owner):
    """Whether a run has had all its epochs, whole ones, and not reached its goal."""
    done = max((epochs for epochs, _ in runs.checkpoints(path)), default=0)
    whole = owner.epochs == int(owner.epochs)  # else a part of the last epoch would be left out
    return whole and done >= owner.epochs and not runs.read(path).reached


def _trained_longer(path, owner, epochs, writer, owners_replaced):
    """The recipe of a run that missed, with more epochs; the folder says so from now on."""
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


def _write_owner(path, recipe, replaced, facts=MappingProxyType({})):
    """Writes run.json: the recipe, the fields that flags replaced if known, further facts."""
    names = {} if replaced is None else {runs.REPLACED: sorted(replaced)}
    versioned = {runs.FORMAT: runs.NEWEST_FORMAT, **recipe.values()}
    files.write_json(path / runs.RECIPE, {**versioned, **names, **facts})
