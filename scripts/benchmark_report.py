"""Measures time and memory of reporting a study of 1,000 runs; the goals are 10 s and 500 MB.

.venv/bin/python scripts/benchmark_report.py [RUNS]
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dawnbench_tf.studies import grid, outcomes, store
from dawnbench_tf.studies.grid import Factor, Level, Study
from dawnbench_tf.studies.outcomes import Outcome

SETTINGS, ROWS = 50, 30  # settings of the grid; rows of each run
STATUSES = (*[outcomes.REACHED] * 17, outcomes.MISSED, outcomes.DIVERGED, outcomes.CRASHED)


def main(runs: str = "1000") -> None:
    """Writes random outcomes, reports them, and prints the seconds and the peak memory."""
    sizes = tuple(Level("", {"batch_size": 8 + number}) for number in range(SETTINGS))
    study = Study(
        name="benchmark",
        question="How long does a report take?",
        recipe="digits/resnet8",
        trials=int(runs) // SETTINGS,
        factors=(Factor("batch size", sizes),),
        figure="tradeoff",
    )
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with store.claimed(folder, study):
            pass
        for planned in grid.plan(study):
            (folder / planned.name).mkdir(parents=True)
            outcomes.write(folder / planned.name, _draw_outcome(planned, draw))
        begin = time.monotonic()
        command = [sys.executable, "-m", "dawnbench_tf.study", "report", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
    mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{runs} runs in {SETTINGS} settings, {ROWS} rows each: {seconds:.1f} s, {mb:.0f} MB")


def _draw_outcome(planned, draw):
    status = draw.choice(STATUSES)
    best = 99.0 if status == outcomes.REACHED else 80.0
    pace = draw.gauss(10, 1) / ROWS
    rows = [
        {"epoch": epoch, "hours": pace * epoch / 3600, "top1Accuracy": best * epoch / ROWS}
        for epoch in range(1, ROWS + 1)
    ]
    facts = {"examplesPerSecond": draw.gauss(1000, 50), "hardware": "drawn at random"}
    ended = (status, "drawn", "top1Accuracy", planned.recipe.goal, rows, {"train": 10.0}, facts)
    return Outcome(dict(planned.settings), planned.seed, *ended, 20.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
