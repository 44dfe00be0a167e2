"""All recipes by name: a module for each task, whose RECIPES lists its rows of `Recipe`.

A row that varies another is `replace(ROW, ...)` with its differences.

May import: models (the catalogue), recipe, the shared modules. Never: TensorFlow, data, training,
inference, submission, ranking.
"""

import math
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from dawnbench_tf import models
from dawnbench_tf.recipe import Questions, Recipe
from dawnbench_tf.recipe.evidence import Measured, Published, Reported
from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import flag_text, flat, parts
from dawnbench_tf.tasks import TASKS

__all__ = ["DEFAULT", "rows", "get", "changed", "table", "description"]

DEFAULT = "digits/resnet8"
"""The recipe that `dawnbench train` trains without --recipe."""


def rows() -> dict[str, Recipe]:
    """Returns all recipes by name, sorted by task."""
    modules = [import_module(f"{__name__}.{task}") for task in sorted(TASKS)]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def get(name: str, **changes: Any) -> Recipe:
    """Returns a recipe by name, with some of its settings changed.

    >>> get("cifar10/resnet56_tf", batch_size=256).batch_size
    256

    Args:
      name: TASK/NAME, as `dawnbench recipes` lists it.
      **changes: new values of settings by flat name, e.g. `learning_rate`, `schedule_epochs`.

    Raises:
      TypeError: a name in `changes` is not a setting.
      Refusal: no recipe has this name (the message suggests the nearest), or the changed recipe is
        invalid.
    """
    recipes = rows()
    if name not in recipes:
        near = get_close_matches(name, recipes, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else "`dawnbench recipes` lists all"
        refuse("recipe", name, f"no such recipe; {hint}")
    return changed(recipes[name], **changes)


def changed(recipe: Recipe, **changes: Any) -> Recipe:
    """Returns a copy of a recipe with some of its settings changed, checked against its model.

    Args:
      recipe: recipe to change.
      **changes: new values of settings by flat name, e.g. `learning_rate`, `schedule_epochs`.

    Raises:
      TypeError: a name in `changes` is not a setting.
      Refusal: a value is invalid, or the model is not in the catalogue or not for this task.
    """
    recipe = recipe.with_values(**changes)
    try:
        variant = models.get(recipe.model)
    except ValueError as error:
        refuse("model", recipe.model, str(error))
    if variant.inputs != recipe.task_row.inputs:
        reason = f"takes {variant.inputs}, and {recipe.task} has {recipe.task_row.inputs}"
        refuse("model", recipe.model, f"{reason}; docs/MODELS.md lists all")
    tokenizer = recipe.data.tokenizer if isinstance(recipe.data, Questions) else ""
    if variant.wordpieces != (tokenizer == "wordpiece"):
        expected = "should be wordpiece" if variant.wordpieces else "should not be wordpiece"
        tokens = "WordPieces" if variant.wordpieces else "words"
        refuse("tokenizer", tokenizer, f"{expected}: {recipe.model} reads {tokens}")
    return recipe


def table() -> str:
    """Returns the text of `dawnbench recipes`: a line for each recipe, its evidence below."""
    lines = []
    for recipe in rows().values():
        goal = f"{recipe.task_row.metric} {recipe.goal:g}"
        lines.append(
            f"{recipe.name:28} {recipe.model:20} {goal:16} "
            f"batch {recipe.batch_size}, {recipe.epochs:g} epochs"
        )
        lines += [f"    {_evidence(item)}" for item in recipe.evidence]
    return "\n".join(lines)


def description(recipe: Recipe, everything: bool = False) -> str:
    """Returns a recipe's settings as flags, part by part, with their source and the evidence.

    Args:
      recipe: recipe to describe.
      everything: whether to include the settings that have their default values.
    """
    lines = [f"{recipe.name}: {recipe.task_row.metric} {recipe.goal:g}"]
    for title, part in {"recipe": recipe, **parts(recipe)}.items():
        default = flat(type(part)())
        shown = [
            flag_text(name, value)
            for name, value in flat(part).items()
            if value is not None and (everything or value != default[name])
        ]
        lines += [f"{title}:", *(f"  {text}" for text in shown)] if shown else []
    lines.append(f"source: see the comments of dawnbench_tf/recipes/{recipe.task}.py")
    lines += ["evidence:"] * bool(recipe.evidence)
    for item in recipe.evidence:
        lines += [f"  {_evidence(item)}"]
        if not isinstance(item, Reported):
            lines += [f"    {item.entry if isinstance(item, Published) else item.command}"]
    return "\n".join(lines)


def _evidence(item: Published | Reported | Measured) -> str:
    if isinstance(item, Published):
        return f"published: {item.hours:.4f} h, best {item.best:g}, {item.hardware}"
    if isinstance(item, Reported):
        return f"reported: {item.score:g} ({item.source})"
    seconds = math.inf if item.seconds is None else item.seconds
    return (
        f"measured {item.date}: reached in {item.reached} of {item.runs} runs, "
        f"median {seconds:g} s on the clock, {item.mean:g} (sd {item.sd:g}), {item.machine}"
    )
