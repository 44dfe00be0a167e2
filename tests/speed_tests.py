"""Speed tests with round numbers, in place of timed ones."""

from dataclasses import replace

from dawnbench_tf import recipes
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.recipes.speed import Phase, SpeedTest

DIGITS = recipes.get("digits/resnet8")
FIRST = (3.5, 10)  # seconds and steps of the first call
START = {"import": 4.0, "build": 1.0, "load": 2.0, "compile": 3.0, "train": 0.5, "other": 9.0}


def speed_test(laps=((1.0, 10), (1.0, 10)), recipe=DIGITS, cost_per_hour=None, **changes):
    """Returns a test of 100 ms a step, 20 steps of 64 an epoch, 6.5 s of start on the clock."""
    used = {"peakFlopsPerSecond": 1e12, "peakFrom": "a convolution", "processGiB": 1.5}
    facts = {
        "recipe": recipe,
        "start": START,
        "phases": [Phase(32, 64, 20, 0, 30.0, list(laps), 1e9, FIRST)],
        "used": {**used, "inputWaitShare": 0.01},
        "evaluation_seconds": 2.0,
        "first_evaluation_seconds": 1.0,
        "hardware": "2 CPU",
        "software": {"tensorflow": "2.20.0"},
        "options": RunOptions(credits=Credits(cost_per_hour=cost_per_hour)),
    }
    return SpeedTest(**{**facts, **changes})


def measured(*epochs, runs, date="2026-01-01"):
    """Returns evidence with the epochs of its hits."""
    return Measured(date, "here", runs, len(epochs), 99.0, 0.1, 1.0, "train", epochs)


def with_evidence(*rows):
    """Returns the digits' recipe with other evidence."""
    return replace(DIGITS, evidence=rows)
