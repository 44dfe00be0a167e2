"""Holds predictions against training: seconds on the clock, for the epochs that the run needed.

    .venv/bin/python scripts/check_estimates.py OUTPUT_DIR [TASK/NAME[=DATA_DIR] ...]

Run it on a quiet machine. A finished run in OUTPUT_DIR is not trained again.
"""

import subprocess
import sys
from pathlib import Path

from dawnbench_tf import recipes, runs
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipes import speed

NAMES = ("digits/resnet8", "qa_mini/fastfusionnet", "qa_mini/drqa", "qa_mini/bidaf")
SECONDS = 60.0  # for each speed test


def main(output: str, *names: str) -> None:
    """Prints a line for each recipe as soon as its run has ended."""
    print(f"{'recipe':24} epochs  predicted   actual   error   start actual")
    for text in names or NAMES:
        name, _, data_dir = text.partition("=")
        recipe, folder = recipes.get(name), Path(output) / name.replace("/", "-")
        test = speed.take(recipe, RunOptions(data_dir=data_dir), SECONDS)
        command = [sys.executable, "-m", "dawnbench_tf.train", f"--recipe={name}"]
        data = [f"--data_dir={data_dir}"] if data_dir else []
        subprocess.run([*command, *data, f"--output_dir={folder}"], check=False)
        run = runs.read(folder)
        row = run.first_hit or run.rows[-1]
        predicted, actual = test.clock_seconds(row["epoch"]), row["hours"] * 3600
        start = sum(run.clock.get(part, 0.0) for part in ("load", "build", "compile"))
        # A run's first call has one step.
        first = test.start_seconds - (test.phases[0].first[1] - 1) * test.phases[0].seconds_per_step
        print(
            f"{name:24} {row['epoch']:6g} {predicted:10.1f} {actual:8.1f} "
            f"{predicted / actual - 1:+7.1%}  {first:6.1f} {start:6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
