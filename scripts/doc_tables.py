"""Writes the tables that documents have from our own rows: results in README.md, the runtimes.

.venv/bin/python scripts/doc_tables.py
"""

import re
from pathlib import Path

import measure_recipe

from dawnbench_tf import recipes
from dawnbench_tf.inference.runtimes import RUNTIMES
from dawnbench_tf.recipe import Measured, Published, Recipe

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs/measured"
TABLE = re.compile(r"(<!-- (\w+): scripts/doc_tables.py -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """What each document with a table of ours should hold."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/*.md")]}
    texts[ROOT / "README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    return {
        path: TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)
        for path, text in texts.items()
        if TABLE.search(text)
    }


def results() -> str:
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


def runtimes() -> str:
    """A row for each inference runtime."""
    lines = ["| runtime | is | precisions |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {row.what} | {', '.join(row.precisions)} |" for name, row in RUNTIMES.items()
    ]
    return "\n".join(lines) + "\n"


def seeds() -> str:
    """A row for each run of docs/measured: what `scripts/measure_recipe.py` wrote."""
    lines = ["| recipe | seed | | in epoch | score | s on the clock | s of evaluation, off it |"]
    lines.append("|---|--:|---|--:|--:|--:|--:|")
    for path in sorted(MEASURED.glob("*.tsv")):
        name = path.stem.replace("-", "/", 1)
        for row in measure_recipe.read(path):
            seed, reached, *figures = (f"{value:g}" for value in row.values())
            verb = "reached" if reached == "1" else "missed"
            lines.append(f"| `{name}` | {seed} | {verb} | {' | '.join(figures)} |")
    return "\n".join(lines) + "\n"


TABLES = {"results": results, "runtimes": runtimes, "seeds": seeds}

if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content, encoding="utf-8")
