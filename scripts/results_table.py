"""Writes the table of measured results in README.md, from the recipes' evidence.

.venv/bin/python scripts/results_table.py
"""

from pathlib import Path

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Measured, Published, Recipe

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- results: scripts/results_table.py -->\n", "<!-- /results -->"


def page(text: str) -> str:
    """README.md's text with the table as the recipes have it."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}"


def table() -> str:
    """A row for each measurement of ours, then for each published entry that a recipe repeats."""
    lines = ["| recipe | to | reached | time on the clock | score | hardware |"]
    lines.append("|---|---|---|---|---|---|")
    pairs = [(recipe, item) for recipe in recipes.rows().values() for item in recipe.evidence]
    for kind in (Measured, Published):
        lines += [_row(recipe, item) for recipe, item in pairs if isinstance(item, kind)]
    return "\n".join(lines) + "\n"


def _row(recipe: Recipe, item: Measured | Published) -> str:
    goal = f"{recipe.task_row.metric} {recipe.goal:g}"
    if isinstance(item, Measured):
        share = f"{item.reached} of {item.runs} runs"
        time = f"{item.seconds:g} s, the median"
        score, where = f"{item.mean:g} (sd {item.sd:g})", f"{item.machine}, {item.date}"
    else:
        share, time = "its published entry", f"{item.hours:.2f} h"
        score, where = f"{item.best:g} at best", item.hardware
    return f"| `{recipe.name}` | {goal} | {share} | {time} | {score} | {where} |"


if __name__ == "__main__":
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8")
