"""All recipes, by name: rows of `Recipe`; a variant is `replace(ROW, ...)` with its differences."""

from difflib import get_close_matches

from dawnbench_tf import tasks
from dawnbench_tf.recipe import Published, Recipe
from dawnbench_tf.recipes import cifar10, digits, qa_mini, squad
from dawnbench_tf.settings import refuse

DEFAULT = "digits/resnet8"


def rows() -> dict[str, Recipe]:
    """All recipes by name."""
    return {
        recipe.name: recipe
        for recipe in (*digits.RECIPES, *qa_mini.RECIPES, *cifar10.RECIPES, *squad.RECIPES)
    }


def get(name: str) -> Recipe:
    """The recipe of that name. Raises Refusal, with the nearest name, if there is none."""
    known = rows()
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else "--list_recipes shows them all"
        refuse("recipe", name, f"no such recipe; {hint}")
    return known[name]


def table() -> str:
    """All recipes, a line each, with their evidence below."""
    lines = []
    for recipe in rows().values():
        task = tasks.TASKS[recipe.task]
        goal = f"{task.metric} {recipe.threshold or task.threshold:g}"
        lines.append(
            f"{recipe.name:28} {recipe.model:20} {goal:16} "
            f"batch {recipe.batch_size}, {recipe.epochs} epochs"
        )
        lines += [f"    {_evidence(item)}" for item in recipe.evidence]
    return "\n".join(lines)


def _evidence(item):
    if isinstance(item, Published):
        return f"published: {item.hours:.4f} h, best {item.best:g}, {item.hardware}"
    return (
        f"measured {item.date}: reached in {item.reached} of {item.runs} runs, "
        f"median {item.seconds:g} s on the clock, {item.mean:g} (sd {item.sd:g}), {item.machine}"
    )
