"""Runs the two sides of a benchmark in turn, each in its own process; prints medians and ratio.

A benchmark's main is `side_by_side.main(__file__, {"ours": ours, "theirs": theirs}, ...)`.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

Side = Callable[[str], float]


def main(script: str, sides: dict[str, Side], cases: Sequence[str], unit: str, rounds: int = 5):
    """Prints a line for each case: both medians, and the ratio first / second over rounds.

    Args:
      script: path of the benchmark; with a side's name and a case as arguments it prints a figure.
      sides: name -> function from a case to a figure; two sides.
      cases: the cases to measure, e.g. precisions.
      unit: unit of the figures.
      rounds: number of rounds; a single argument of the command line replaces it.
    """
    if len(sys.argv) == 3:
        print(json.dumps(sides[sys.argv[1]](sys.argv[2])))
        return
    rounds = int(sys.argv[1]) if sys.argv[1:] else rounds
    first, second = sides
    print(f"{'':16} {first:>14} {second:>14}  {unit}; {first} / {second}: median (min to max)")
    for case in cases:
        pairs = [[_run(script, side, case) for side in sides] for _ in range(rounds)]
        ratios = [a / b for a, b in pairs]
        medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{case:16} {medians[0]:14,.2f} {medians[1]:14,.2f}  {spread}", flush=True)


def seconds(call: Callable[[], object]) -> float:
    """Returns the wall-clock seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _run(script, side, case):
    command = [sys.executable, script, side, case]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])
