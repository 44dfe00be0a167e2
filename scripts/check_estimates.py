"""Holds estimates against training: predicted and actual seconds on the clock of each recipe.

    .venv/bin/python scripts/check_estimates.py --output_dir=DIR --imagenette=DIR --cifar10=DIR

Each recipe is estimated, then trained to its threshold; the prediction is for the epochs that this
run needed. A recipe whose data has no folder is left out. The second table compares the medians of
the evidence, which other machines may have measured. Run it on a quiet machine.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf import recipes, runs
from dawnbench_tf.estimates import prediction, process
from dawnbench_tf.estimates.sample import Sample
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured

NAMES = (
    "digits/resnet8",
    "qa_mini/fastfusionnet",
    "qa_mini/drqa",
    "qa_mini/bidaf",
    "imagenette/resnet18",
    "cifar10/airbench94_12ep",
)
TASKS_WITH_FILES = ("cifar10", "imagenette")


class Check(NamedTuple):
    """A recipe's prediction beside a run of it."""

    recipe: Recipe
    sample: Sample
    epochs: float  # of the run: to its threshold, or all
    actual: float  # seconds on the clock at the end of these epochs
    parts: dict[str, float]  # of the run's clock

    def line(self) -> str:
        """Formats predicted and actual seconds: in all, and of the start."""
        predicted = prediction.clock_seconds(self.sample, self.epochs)
        start = sum(self.parts.get(name, 0.0) for name in ("load", "build", "compile"))
        ours = sum(self.sample.start.get(name, 0.0) for name in ("load", "build", "compile"))
        steps = round(self.epochs * self.sample.phases[0].steps_per_epoch)
        each = 1e3 * self.parts["train"] / steps
        means = [phase.seconds_per_step * 1e3 for phase in self.sample.phases]
        return (
            f"{self.recipe.name:24} {self.epochs:6g} {predicted:10.1f} {self.actual:8.1f} "
            f"{predicted / self.actual - 1:+7.1%}  {ours:6.1f} {start:6.1f}  "
            f"{'/'.join(f'{mean:.4g}' for mean in means)} {each:.4g}"
        )


def check(recipe: Recipe, data_dir: str, folder: Path, seconds: float) -> Check:
    """Estimates a recipe, then trains it.

    Args:
      recipe: the recipe.
      data_dir: folder of its data; "" for an embedded data set.
      folder: of the run; a finished one is not trained again.
      seconds: time for the estimate.
    """
    sample = process.take_sample(recipe, RunOptions(data_dir=data_dir), seconds)
    data = [f"--data_dir={data_dir}"] if data_dir else []
    command = [sys.executable, "-m", "dawnbench_tf.train", f"--recipe={recipe.name}"]
    subprocess.run(
        [*command, *data, f"--output_dir={folder}", f"--seed={recipe.seed}"], check=False
    )
    run = runs.read(folder)
    row = run.first_hit or run.rows[-1]
    return Check(recipe, sample, row["epoch"], row["hours"] * 3600, run.clock)


def evidence_line(recipe: Recipe, sample: Sample) -> str:
    """Formats predicted and measured seconds of the evidence's runs."""
    item = [row for row in recipe.evidence if isinstance(row, Measured) and row.epochs][-1]
    middle = statistics.median(item.epochs)
    predicted = prediction.clock_seconds(sample, middle)
    measured = item.seconds or float("inf")
    error = predicted / measured - 1
    return f"{recipe.name:24} {middle:6g} {predicted:10.1f} {measured:8.1f} {error:+7.1%}"


def main() -> None:
    """Prints both tables; a line as soon as its run has ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--output_dir", required=True, help="a new folder, for the runs")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each estimate")
    parser.add_argument("--seed", type=int, default=0)
    for task in TASKS_WITH_FILES:
        parser.add_argument(f"--{task}", default="", help=f"folder of {task}")
    options = parser.parse_args()
    checks = []
    for name in options.names:
        recipe = recipes.get(name, seed=options.seed)
        data_dir = getattr(options, recipe.task, "")
        if recipe.task in TASKS_WITH_FILES and not data_dir:
            print(f"{name}: left out; --{recipe.task}=DIR has its data")
            continue
        folder = Path(options.output_dir) / name.replace("/", "-")
        checks.append(check(recipe, data_dir, folder, options.seconds))
        print(checks[-1].line(), flush=True)
    print(f"\n{'recipe':24} epochs  predicted   actual   error   start actual  ms a step, actual")
    for item in checks:
        print(item.line())
    print("\nthe evidence's median:")
    for item in checks:
        print(evidence_line(item.recipe, item.sample))


if __name__ == "__main__":
    main()
