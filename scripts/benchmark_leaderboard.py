"""Measures time and memory of validating, ranking and rendering thousands of generated entries.

.venv/bin/python scripts/benchmark_leaderboard.py [ENTRIES]
"""

import datetime
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from dawnbench_tf import entries
from dawnbench_tf.ranking import pages, results, tables
from dawnbench_tf.submission.entry import Entry, write_entry
from dawnbench_tf.submission.rules import Grade
from dawnbench_tf.tasks import RANKED

ROWS = 87  # rows below the threshold; with the last one 88, the average of published entries


def generate(folder: Path, count: int) -> None:
    """Writes entries of all data sets; 70 % are training entries."""
    draw = random.Random(0)
    for number in range(count):
        dataset = draw.choice(list(RANKED))
        task = RANKED[dataset]
        hours, rows = draw.expovariate(1) + 1e-3, []
        for epoch in range(1, ROWS + 1):
            share = 1 - (1 - task.threshold / task.highest) * (ROWS / epoch) ** 0.5
            scores = [max(0.0, share) * task.highest] * (len(task.columns) - 2)
            rows.append((float(epoch), hours * epoch, *scores))
        training = number % 10 < 7
        price = draw.choice((None, 3.06))
        figures = {"rows": (*rows, (ROWS + 1.0, hours * (ROWS + 1), *[task.highest] * len(scores)))}
        if training:
            figures["cost_per_hour"] = price
        else:
            figures = {"latency": hours, "cost": price, "score": task.highest}
        entry = Entry(
            dataset=dataset,
            phase="train" if training else "inference",
            name=f"author{number % 97}_model{number}_hardware_framework",
            author=f"author {number % 97}",
            author_email="a@example.org",
            framework="framework",
            model=f"model {number}",
            hardware="1 V100 (p3.2xlarge)",
            timestamp=datetime.date(2017, 10, 1) + datetime.timedelta(days=draw.randrange(3000)),
            misc={"batchSize": 128, "learningRate": 0.1, "optimizer": "SGD"},
            **figures,
        )
        write_entry(folder, entry, unchecked=True)


def main(count: int = 10_000) -> None:
    """Prints the seconds of each part, and the peak memory."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        generate(tree, count)
        start = time.monotonic()
        checked, violations = entries.check_tree(tree, Grade.REVIEW)
        validated = time.monotonic()
        ranked, problems = results.read_tree(tree)
        rankings = tables.rank(ranked)
        done = time.monotonic()
        pages.write(tree / "site", rankings, ranked)
        shown = time.monotonic()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    counts = f"{len(violations)} violations, {len(problems)} problems, {len(rankings)} tables"
    print(f"{checked:,} entries, {counts}")
    print(f"validate {validated - start:.1f} s, rank {done - validated:.1f} s, ", end="")
    print(f"pages {shown - done:.1f} s, peak {memory:.2f} GiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
