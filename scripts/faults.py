"""Injects many faults: kills, failing files, damaged files. The long version of tests/faults.

    .venv/bin/python scripts/faults.py --hours=1 --kills=1000 --failures=1000 --mutations=10000

The counts are upper limits. Prints the number of faults tried and held, and each fault that did not
hold. Ctrl-C ends it.
"""

import random
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dawnbench_tf import flags, machine
from dawnbench_tf.settings import setting


@dataclass(frozen=True)
class Options:
    """Limits on time and number of each kind of fault."""

    hours: float = setting(1.0, "hours after which no new fault is tried", above=0)
    kills: int = setting(1000, "kills of training runs, at most", low=0)
    studies: int = setting(1000, "kills of studies, at most", low=0)
    failures: int = setting(1000, "failing file operations, at most", low=0)
    mutations: int = setting(10_000, "damaged files of each kind, at most", low=0)
    seed: int = setting(0, "seed of the random choice of faults", low=0)


def main(options: Options, _: list[str]) -> int:
    """Runs the tests of faults that the flags name."""
    end = time.monotonic() + options.hours * 3600
    counts: dict[str, list[int]] = {}  # fault -> [tried, held]
    with tempfile.TemporaryDirectory() as folder:
        try:
            _killed(options, Path(folder), end, counts)
            _killed_studies(options, Path(folder), end, counts)
            _damaged(options, Path(folder), end, counts)
        except KeyboardInterrupt:
            pass
    print("| fault | tried | held |\n|---|---|---|")
    for name, (tried, held) in counts.items():
        print(f"| {name} | {tried:,} | {held:,} |")
    return 0 if all(tried == held for tried, held in counts.values()) else 1


def _killed(options, home, end, counts):
    from tests.faults import kills

    chosen = random.Random(options.seed)
    with kills.victims(home) as victims:
        operations = victims.train("whole").operations
        wanted, errors = victims.left("whole"), cycle(kills.ERRORS)
        count = counts.setdefault("run killed", [0, 0])
        while count[0] < options.kills and time.monotonic() < end:
            deaths = kills.several(chosen, len(operations))
            text = kills.killed(victims, f"kill-{count[0]}", wanted, deaths)
            _count(count, text, f"killed at {deaths}", len(deaths))
        count = counts.setdefault("file of a run failing", [0, 0])
        while count[0] < options.failures and time.monotonic() < end:
            operation, error = chosen.randrange(len(operations)), next(errors)
            text = kills.failed(victims, f"failure-{count[0]}", wanted, operation, error)
            _count(count, text, f"error {error} at {operation}")


def _killed_studies(options, home, end, counts):
    from tests.faults import studies

    chosen, count = random.Random(options.seed), counts.setdefault("study killed", [0, 0])
    studies.prepare(home)
    while count[0] < options.studies and time.monotonic() < end:
        deaths = chosen.randint(1, 4)
        _count(count, studies.killed(home, chosen, deaths), "study killed", deaths)


def _damaged(options, home, end, counts):
    with machine.importing():
        from tests.faults import mutations
    for make in mutations.KINDS:
        kind = make(home)
        count = counts.setdefault(f"damaged: {kind.name}", [0, 0])
        while count[0] < options.mutations and time.monotonic() < end:
            seed = options.seed + count[0]
            _count(count, kind.trial(random.Random(seed)), f"{kind.name}, seed {seed}")


def _count(count, problem, fault, faults=1):
    count[0] += faults
    count[1] += 0 if problem else faults
    if problem:
        print(f"{fault}: {problem}", flush=True)


if __name__ == "__main__":
    flags.run(main, Options)
