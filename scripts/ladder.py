"""The ladder of docs/cifar10_experiments.md: CIFAR-10 recipes by year, computation and time here.

.venv/bin/python scripts/ladder.py    # draws docs/ladder.png; doc_tables.py writes the table
"""

import csv
import math
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.training import utilization


class Step(NamedTuple):
    """A recipe of the ladder."""

    year: int  # of its publication
    name: str  # the recipe's, without its task
    idea: str


STEPS = (
    Step(2017, "resnet20_tf", "He et al.'s network in DAWNBench's seed; it does not reach 94 %"),
    Step(2017, "resnet164_nb_tf", "deep and narrow; three falls of the learning rate"),
    Step(2018, "basenet", "pre-activation ResNet-18; one cycle of the learning rate"),
    Step(2018, "wrn_22_6", "one cycle of learning rate and momentum; mirrored test views"),
    Step(2018, "resnet9_24ep", "few wide convolutions with pools between; Cutout"),
    Step(2019, "resnet9_kakao", "crops of 30 pixels, a first convolution of stride 2"),
    Step(2019, "baidunet9", "256 filters in place of 512 in the last stage"),
    Step(2019, "resnet9_10ep", "patch whitening, ghost BN, CELU, label smoothing, averages"),
    Step(2020, "resnet9_apple", "resnet9_10ep for large batches on eight GPUs"),
    Step(2024, "airbench94", "identity initialization, lookahead, alternating flips, six views"),
    Step(2024, "airbench94_muon", "orthogonal updates of the kernels (Muon)"),
    Step(2025, "hiverge94", "kernels normalized ever more rarely, jitter, SiLU"),
    Step(2026, "airbench94_12ep", "two epochs more: half of the runs of airbench94 miss 94 %"),
    Step(2026, "cpu94", "hiverge94 on 16 pixels, then on the hardest two thirds of the images"),
    Step(2024, "airbench96", "94 % is passed on the way to 96 %: wider, deeper, Cutout"),
    Step(2024, "airbench96_faster", "a proxy picks the half of each batch with the largest loss"),
)
TRAINED = 50_000  # examples of an epoch
DOCS = Path(__file__).parents[1] / "docs"
GPU_RUNS = DOCS / "measured/gpus.csv"


def petaflop(recipe: Recipe) -> float:
    """Returns the operations of a recipe's whole training."""
    sizes = [recipe.in_epoch(epoch).batch_size for epoch in range(math.ceil(recipe.epochs))]
    whole = math.floor if recipe.drop_remainder else math.ceil
    return utilization.training_flops(recipe, [whole(TRAINED / size) for size in sizes]) / 1e15


def measured(recipe: Recipe, gpu: bool = False) -> Measured | None:
    """Returns the measurement of the most runs on CPUs or a GPU: of several the earliest."""
    items = [item for item in recipe.evidence if isinstance(item, Measured)]
    items = [item for item in items if ("GPU" in item.machine) == gpu]
    return max(items, key=lambda item: item.runs, default=None)


def csv_rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Reads the rows of a CSV file with a header."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def gpu_runs(name: str) -> list[dict[str, str]]:
    """Returns a recipe's rows of docs/measured/gpus.csv, without those that XLA compiled."""
    rows = csv_rows(GPU_RUNS)
    return [row for row in rows if row["recipe"] == name and row["jit_compile"] == "0"]


def reached(recipe: Recipe) -> str:
    """Formats the share of a recipe's runs that reached its threshold: on CPUs, else on a GPU."""
    if item := measured(recipe):
        return f"{item.reached} of {item.runs}"
    runs = gpu_runs(recipe.name)
    if not runs:
        return ""
    threshold = f" to {runs[0]['goal']} %" if float(runs[0]["goal"]) != recipe.goal else ""
    return f"{sum(int(run['reached']) for run in runs)} of {len(runs)}{threshold}, GPU"


def table() -> str:
    """Formats a row for each step of the ladder."""
    lines = [
        "| year | recipe | PFLOP | s here | reached | what is new |",
        "|--:|---|--:|--:|---|---|",
    ]
    for step in STEPS:
        recipe = recipes.rows()[f"cifar10/{step.name}"]
        item = measured(recipe)
        seconds = f"{item.seconds:,.4g}" if item and item.seconds else ""
        figures = f"{petaflop(recipe):.3g} | {seconds} | {reached(recipe)}"
        lines.append(f"| {step.year} | `{step.name}` | {figures} | {step.idea} |")
    return "\n".join(lines) + "\n"


def draw() -> None:
    """Draws docs/ladder.png: computation of each step, and seconds of those that were measured."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    rows_from_top = range(len(STEPS), 0, -1)
    rows = [recipes.rows()[f"cifar10/{step.name}"] for step in STEPS]
    axes.barh(rows_from_top, [petaflop(row) for row in rows], color="#0b6fa4")
    for y, row in zip(rows_from_top, rows, strict=True):
        item = measured(row)
        time = f", {item.seconds:,.0f} s here" if item and item.seconds else ""
        axes.text(petaflop(row) * 1.08, y, f"{petaflop(row):.3g}{time}", va="center", fontsize=8)
    names = [f"{step.name} ({step.year})" for step in STEPS]
    axes.set_yticks(rows_from_top, names, fontsize=8)
    axes.set(xscale="log", xlabel="computation of all epochs, PFLOP", xlim=(0.1, 100))
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(DOCS / "ladder.png")


if __name__ == "__main__":
    draw()
