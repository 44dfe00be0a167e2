"""Trains a recipe with one seed after the other, and tells every run: what `Measured` rows say.

    .venv/bin/python scripts/measure_recipe.py RECIPE FOLDER SEEDS [--data_dir=DIR ...]

Seeds 0 to SEEDS - 1, each in FOLDER/seed-N; flags go to `dawnbench train`. What is finished is not
trained again: the same command goes on after any end. FOLDER/measured.tsv has a row for each run,
misses among them; docs/measured/ has those of the recipes that say `Measured`. Nothing else should
run on the machine.
"""

import csv
import statistics
import subprocess
import sys
from pathlib import Path

from dawnbench_tf import runs
from dawnbench_tf.clock import seconds_of
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.runs import Run

COLUMNS = ("seed", "reached", "epoch", "score", "seconds", "evaluation")  # seconds on, off clock


def main(recipe: str, folder: str, seeds: str, *flags: str) -> None:
    """Trains, writes the table of runs, prints what all of them come to."""
    rows = []
    for seed in range(int(seeds)):
        output = Path(folder, f"seed-{seed}")
        command = [sys.executable, "-m", "dawnbench_tf.train", f"--recipe={recipe}"]
        command += [f"--seed={seed}", f"--output_dir={output}", *flags]
        status = subprocess.run(command).returncode
        if status not in (0, 3):  # 3: the threshold was missed, which is a result
            raise SystemExit(status)
        rows.append(facts(seed, runs.read(output)))
        write(Path(folder, "measured.tsv"), rows)
    print(summary(rows))


def facts(seed: int, run: Run) -> dict[str, float]:
    """A finished run, as the row that ended it says."""
    last = run.rows[-1]
    on_clock = seconds_of(run.clock)
    score, evaluation = last[run.recipe.task_row.metric], run.clock.get("eval", 0.0)
    epoch = int(last["epoch"]) if last["epoch"].is_integer() else last["epoch"]
    figures = (epoch, score, round(on_clock, 1), round(evaluation, 1))
    return dict(zip(COLUMNS, (seed, int(run.reached), *figures), strict=True))


def write(path: Path, rows: list[dict[str, float]]) -> None:
    """Writes the table of runs."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def read(path: Path) -> list[dict[str, float]]:
    """A table of runs, read back."""
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [{name: float(value) for name, value in row.items()} for row in rows]


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """What the runs come to, by the names that `Measured` has for it."""
    scores = [row["score"] for row in rows]
    return {
        "runs": len(rows),
        "reached": int(sum(row["reached"] for row in rows)),
        "mean": round(statistics.mean(scores), 2),
        "sd": round(statistics.stdev(scores), 2) if rows[1:] else 0.0,
        "seconds": round(statistics.median(row["seconds"] for row in rows), 1),
    }


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Refusal, TypeError, ValueError) as error:
        raise SystemExit(f"measure_recipe.py: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
