"""Tries for long what tests/faults tries in short: kills, failing files, damaged files.

    .venv/bin/python scripts/faults.py --hours=1 [--kills=1000] [--mutations=10000]

Prints a table of how many faults were tried and held, and each that did not.
"""

import random
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dawnbench_tf import flags, tensorflow_env
from dawnbench_tf.settings import setting


@dataclass(frozen=True)
class Options:
    """How long, and how much of each kind."""

    hours: float = setting(1.0, "hours after which nothing new is tried", above=0)
    kills: int = setting(1000, "kills, and as many failing files, at most", low=0)
    mutations: int = setting(10_000, "damaged files of each kind, at most", low=0)
    seed: int = setting(0, "seed of what is chosen", low=0)


def main(_: list[str]) -> int:
    options = flags.read(Options)
    end = time.monotonic() + options.hours * 3600
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        rows += _killed(options, Path(folder), end)
        rows += _damaged(options, Path(folder), end)
    print("| fault | tried | held |\n|---|---|---|")
    for name, tried, held in rows:
        print(f"| {name} | {tried:,} | {held:,} |")
    return 0 if all(tried == held for _, tried, held in rows) else 1


def _killed(options, home, end):
    from tests.faults import kills

    chosen = random.Random(options.seed)
    counts = {"kill": [0, 0], "failing file": [0, 0]}
    with kills.victims(home) as victims:
        operations = victims.train("whole").operations
        wanted, errors = victims.left("whole"), cycle(kills.ERRORS)
        for name, count in counts.items():
            while count[0] < options.kills and time.monotonic() < end:
                folder = f"{name.replace(' ', '-')}-{count[0]}"
                deaths = kills.several(chosen, len(operations))
                if name == "kill":
                    text = kills.killed(victims, folder, wanted, deaths)
                else:
                    deaths = deaths[:1]
                    text = kills.failed(victims, folder, wanted, deaths[0], next(errors))
                _count(count, text, f"{name} at {deaths}", len(deaths))
    return [(name, *count) for name, count in counts.items()]


def _damaged(options, home, end):
    with tensorflow_env.importing():
        from tests.faults import mutations
    rows = []
    for make in mutations.KINDS:
        kind, count = make(home), [0, 0]
        while count[0] < options.mutations and time.monotonic() < end:
            seed = options.seed + count[0]
            _count(count, kind.trial(random.Random(seed)), f"{kind.name}, seed {seed}")
        rows.append((f"damaged {kind.name}", *count))
    return rows


def _count(count, wrong, what, faults=1):
    count[0] += faults
    count[1] += 0 if wrong else faults
    if wrong:
        print(f"{what}: {wrong}", flush=True)


if __name__ == "__main__":
    flags.run(main, Options)
