"""All recipes by name: modules TASK and TASK_..., whose constants are rows of `Recipe`.

A row that varies another is `replace(ROW, ...)` with its differences. Recipes of users: in TOML
files (`recipe_files`) and in modules (MODULE:ATTRIBUTE). `speed` predicts a recipe's time and cost.

May import: models (the catalogue), recipe, the shared modules. Never: TensorFlow, data, training,
inference, submission, ranking.
"""

import fnmatch
import os
import traceback
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType
from typing import Any

from dawnbench_tf import models
from dawnbench_tf.models import user_modules
from dawnbench_tf.recipe import Images, Questions, Recipe
from dawnbench_tf.recipe.evidence import Measured, Published, Reported, read_evidence
from dawnbench_tf.recipe.images import JPEGS, ONE_SIZE, ONLY_FOR
from dawnbench_tf.recipe.optimizer import USED_BY
from dawnbench_tf.recipes import own, recipe_files
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.settings import flag_text, flat, parts
from dawnbench_tf.tasks import READER_TEXT, TASKS, Task, find_task
from dawnbench_tf.terminal import counted, wrapped

__all__ = ["DEFAULT", "rows", "get", "table", "description"]

DEFAULT = "digits/resnet8"
"""The recipe that `dawnbench train` trains without --recipe."""


@cache
def rows() -> Mapping[str, Recipe]:
    """Returns all recipes by name, sorted by task."""
    evidence = read_evidence(Path(__file__).with_name("evidence.tsv"))
    chosen = [row for module in _modules() for row in _rows_of(module)]
    named = {row.name: replace(row, evidence=evidence.get(row.name, ())) for row in chosen}
    return MappingProxyType(named)


def _modules() -> list[ModuleType]:
    """Returns the modules of the library's tasks: TASK, then those named TASK_..."""
    names = [item.name for item in iter_modules(__path__)]
    chosen = [n for task in sorted(TASKS) for n in names if f"{n}_".startswith(f"{task}_")]
    return [import_module(f"{__name__}.{name}") for name in chosen]


def _rows_of(module: ModuleType) -> list[Recipe]:
    return [row for row in vars(module).values() if isinstance(row, Recipe) and row.name]


def get(name: str | Recipe, **changes: Any) -> Recipe:
    """Returns a recipe by name, with some of its settings changed.

    >>> get("cifar10/resnet56_tf", batch_size=256).batch_size
    256

    Args:
      name: TASK/NAME, as `dawnbench recipes` lists it; the path of a recipe's file, `my.toml`; or
        MODULE:ATTRIBUTE, a recipe in a module; the working directory is importable. Or a recipe.
      **changes: new values of settings by flat name, e.g. `learning_rate`, `schedule_epochs`.

    Raises:
      TypeError: a name in `changes` is not a setting (the message suggests the nearest), or `name`
        is no text and no recipe.
      Refusal: no recipe has this name (the message suggests the nearest), its file or module is
        invalid, or the changed recipe is.
    """
    if isinstance(name, Recipe):
        return changed(name, **changes) if changes else name
    if not isinstance(name, str):
        raise TypeError(f"`recipe` should be a Recipe or the name of one. Received: {name!r}")
    if recipe_files.is_path(name):
        return changed(_from_file(Path(name)), **changes)
    if ":" in name:
        return changed(_from_module(name), **changes)
    return changed(_row(name), **changes)


def _row(name: str) -> Recipe:
    recipes = {**rows(), **{recipe.name: recipe for recipe in _rows_of(own)}}
    if name not in recipes:
        names = dict.fromkeys(recipes) | {task: f"`dawnbench recipes {task}`" for task in TASKS}
        near = get_close_matches(name, names, n=1, cutoff=0.4)
        hint = "`dawnbench recipes` lists all"
        if near:
            hint = f"did you mean {names[near[0]] or near[0]}?"
        refuse("recipe", name, f"no such recipe; {hint}")
    return recipes[name]


def _from_file(path: Path, based_on: tuple[Path, ...] = ()) -> Recipe:
    """Returns the recipe of a TOML file; `based_on` it are the files of which it is the base."""
    if path.resolve() in based_on:
        raise Refusal(f"{path}: is based on itself, through its base")
    file, base = recipe_files.read(path), None
    if recipe_files.is_path(file["base"]):  # relative to the file
        base = _from_file(path.parent / file["base"], (*based_on, path.resolve()))
    try:
        base = base or _row(file["base"])
        own_name = file["name"].partition("/")[0]
        kind = file["task"] or base.whole_task.reader * bool(own_name)
        task = {"task": find_task(kind, name=own_name)} if kind else {}
        recipe = changed(base, **task, **file["settings"])
    except Refusal as refusal:  # names the file: `FILE: setting=value: expected`
        raise Refusal(f"{path}: {str(refusal).removeprefix('--')}") from None
    name = file["name"] or recipe_files.default_name(path, recipe.task_row.name)
    # Evidence is of the base's settings, and stays with them.
    return replace(recipe, name=name, evidence=base.evidence if recipe == base else ())


def _from_module(name: str) -> Recipe:
    """Imports a user's MODULE:ATTRIBUTE; the working directory is importable, as by `python -m`."""
    module_name, _, attribute = name.partition(":")
    if not all(map(str.isidentifier, (*module_name.split("."), attribute))):
        refuse("recipe", name, "should be MODULE:ATTRIBUTE, as mypackage.recipes:FLOWERS")
    # A module may import TensorFlow, which reads this once; the commands train with tf-keras.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    try:
        module = user_modules.load(module_name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {one_line(error, 120)}"
        source = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        refuse("recipe", name, f"importing {module_name} raised {reason} ({source})")
    recipe = getattr(module, attribute, None)
    if not isinstance(recipe, Recipe) or not recipe.task or not recipe.model:
        names = [key for key, value in vars(module).items() if isinstance(value, Recipe)]
        listed = one_line(", ".join(names) or "none")
        reason = f"{module_name} has no recipe {attribute} with a task and a model"
        refuse("recipe", name, f"{reason}; its recipes: {listed}")
    return recipe


def base_of(task: Task) -> str:
    """Returns the name of the recipe that a task of the user's own starts from, by its examples."""
    if task.inputs == "questions":
        return "own/questions"
    return "own/photos" if task.jpegs else "own/images"


def named_by(recipe: Recipe, data_dir: str, name: str = "") -> Recipe:
    """Returns a recipe whose task of your own has a name: if it had none, this or its data's."""
    task = recipe.whole_task
    kind = task.reader.partition(":")[0]
    if not (data_dir or name) or not kind or task.name != kind:
        return recipe
    name = find_task(task.reader, data_dir, name).name
    recipe_name = f"{name}/{recipe.name.partition('/')[2]}"
    return recipe.with_values(task=replace(task, name=name, folder=name), name=recipe_name)


def network(setting: str, name: str) -> models.Variant:
    """Returns a catalogue row by its name, a flag's value; refuses the flag."""
    try:
        return models.get(name)
    except ValueError as error:
        text, _, _ = str(error).removeprefix("`name` ").partition(" Received: ")
        refuse(setting, name, text.replace("names() lists them", "`dawnbench models` lists them"))


def _variant(recipe: Recipe, setting: str, name: str) -> models.Variant:
    """Returns a catalogue row that takes the inputs of the recipe's task; refuses `setting`."""
    variant = network(setting, name)
    if variant.inputs != recipe.task_row.inputs:
        reason = f"takes {variant.inputs}, and {recipe.task_row.name} has {recipe.task_row.inputs}"
        refuse(setting, name, f"{reason}; `dawnbench models` lists all")
    return variant


def changed(recipe: Recipe, **changes: Any) -> Recipe:
    """Returns a copy of a recipe with some of its settings changed, checked against its model."""
    task = changes.get("task")
    arrays = isinstance(recipe.data, Images) and not recipe.jpegs
    if isinstance(task, Task) and task.reader.startswith("tfds:") and arrays:
        changes["task"] = replace(task, jpegs=False, image_size=0)  # arrays, as the recipe takes
    recipe = recipe.with_values(**changes)
    for name in filter(USED_BY.get, changes):
        if recipe.optimizer.name not in USED_BY[name]:
            refuse(name, changes[name], f"is for --optimizer={', '.join(USED_BY[name])}")
    if changes.get("pad_mode", "zeros") != "zeros" and not getattr(recipe.data, "pad", 0):
        refuse("pad_mode", changes["pad_mode"], "requires --pad")
    for name in ("channel_mean", "channel_deviation"):
        if changes.get(name) and getattr(recipe.data, "standardize", "") != "channel":
            refuse(name, changes[name], "requires --standardize=channel")
    if not recipe.task:
        refuse("task", "", f"is needed for {recipe.name}: {READER_TEXT}")
    variant = _variant(recipe, "model", recipe.model)
    if recipe.data.proxy:
        _variant(recipe, "proxy", recipe.data.proxy)
    tokenizer = recipe.data.tokenizer if isinstance(recipe.data, Questions) else ""
    if variant.wordpieces != (tokenizer == "wordpiece"):
        expected = "should be wordpiece" if variant.wordpieces else "should not be wordpiece"
        tokens = "WordPieces" if variant.wordpieces else "words"
        refuse("tokenizer", tokenizer, f"{expected}: {recipe.model} reads {tokens}")
    return recipe


def table(pattern: str = "*") -> str:
    """Returns the text of `dawnbench recipes`: a line for each recipe, its evidence below.

    Args:
      pattern: pattern of names, e.g. "cifar10/*resnet*"; or a task's name, for all its recipes.

    Raises:
      Refusal: no recipe's name matches the pattern.
    """
    chosen = fnmatch.filter(rows(), pattern if set("*/") & set(pattern) else f"{pattern}/*")
    if not chosen:
        refuse("recipe", pattern, f"no recipe matches; tasks: {', '.join(TASKS)}")
    lines = [f"{'recipe':29} {'model':21} {'goal':>4}  {'batch size':13} epochs"]
    for recipe in map(_row, chosen):
        sizes = " to ".join(map(str, sorted({min(recipe.batch_sizes), max(recipe.batch_sizes)})))
        lines.append(
            f"{recipe.name:29} {recipe.model:21} {recipe.goal:4g}  {sizes:13} {recipe.epochs:6g}"
        )
        lines += [f"    {_evidence(item)}" for item in recipe.evidence]
    return "\n".join(lines)


def description(recipe: Recipe | str, everything: bool = False) -> str:
    """Returns a recipe's settings as flags, part by part, with their source and the evidence.

    Args:
      recipe: recipe to describe, or its name.
      everything: whether to include the settings that have their default values.
    """
    recipe = get(recipe)
    goal = f"{recipe.goal:g}" if recipe.goal else "of --threshold"
    lines = [f"{recipe.name}: {recipe.task_row.metric} {goal}"]
    kind = JPEGS if recipe.jpegs else ONE_SIZE
    for title, part in {"recipe": recipe, **parts(recipe)}.items():
        default = flat(type(part)())
        shown = [
            flag_text(name, value)
            for name, value in flat(part).items()
            if value is not None
            and (everything or value != default[name])
            and ONLY_FOR.get(name, kind) == kind
        ]
        lines += [f"{title}:", *(f"  {text}" for text in shown)] if shown else []
    if rows().get(recipe.name) == recipe:
        home = next(module.__name__ for module in _modules() if recipe in _rows_of(module))
        lines.append(f"source: see the comments of {home.replace('.', '/')}.py")
    lines += ["evidence:"] * bool(recipe.evidence)
    for item in recipe.evidence:
        lines += ["  " + wrapped(_evidence(item), 78, 6)]
        if not isinstance(item, Reported):
            lines += [f"    {item.entry if isinstance(item, Published) else item.command}"]
    return "\n".join(lines)


def _evidence(item: Published | Reported | Measured) -> str:
    if isinstance(item, Published):
        score, hours = (float(item.facts[name]) for name in ("score", "hours"))
        text = f"published: {score:g} after {hours:.4f} h, {item.facts['hardware']}"
        return f"{text}; {item.note}" if item.note else text
    if isinstance(item, Reported):
        return f"reported: {item.score:g} ({item.source})"
    several, note = item.runs > 1, item.note and f"; {item.note}"
    time = "never" if item.seconds is None else f"{item.seconds:g} s on the clock"
    return (
        f"measured {item.date}: reached in {item.reached} of {counted(item.runs, 'run')}, "
        f"{'median ' * several}{time}, {item.mean:g}{f' (sd {item.sd:g})' * several}, "
        f"{item.machine}{note}"
    )
