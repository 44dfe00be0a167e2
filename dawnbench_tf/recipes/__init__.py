"""All recipes, by name: rows of `Recipe`; a variant is `replace(ROW, ...)` with its differences.

A module for each task; what it calls RECIPES is all its rows.

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


def rows() -> dict[str, Recipe]:
    """All recipes by name, task by task."""
    modules = [import_module(f"{__name__}.{task}") for task in sorted(TASKS)]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def get(name: str, **changes: Any) -> Recipe:
    """The recipe of that name, with some of its settings changed, by flat name.

    Raises:
      TypeError: there is no setting of such a name.
      Refusal: there is none of that name (the nearest is named), or the changed recipe is none.
    """
    recipes = rows()
    if name not in recipes:
        near = get_close_matches(name, recipes, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else "`dawnbench recipes` lists all"
        refuse("recipe", name, f"no such recipe; {hint}")
    return changed(recipes[name], **changes)


def changed(recipe: Recipe, **changes: Any) -> Recipe:
    """A recipe with some of its settings changed, by flat name: `learning_rate`, `schedule_epochs`.

    Raises:
      TypeError: there is no setting of such a name.
      Refusal: the changed recipe is none, or its model is not in the catalogue or not for its task.
    """
    recipe = recipe.with_values(**changes)
    try:
        variant = models.get(recipe.model)
    except ValueError as error:
        refuse("model", recipe.model, str(error))
    if variant.inputs != recipe.task_row.inputs:
        takes = f"takes {variant.inputs}, and {recipe.task} has {recipe.task_row.inputs}"
        refuse("model", recipe.model, f"{takes}; docs/MODELS.md lists all")
    tokenizer = recipe.data.tokenizer if isinstance(recipe.data, Questions) else ""
    if variant.wordpieces != (tokenizer == "wordpiece"):
        reads = "WordPieces: wordpiece" if variant.wordpieces else "words: any but wordpiece"
        refuse("tokenizer", tokenizer, f"{recipe.model} reads {reads} would run")
    return recipe


def table() -> str:
    """All recipes, a line each, with their evidence below."""
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
    """A recipe's settings by part, as flags, where they come from, and its evidence.

    Args:
      recipe: to describe.
      everything: also settings that are as by default.
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
    lines.append(f"source: dawnbench_tf/recipes/{recipe.task}.py, whose comments name it")
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
