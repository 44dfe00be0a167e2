"""Samples of timed steps for tests, with round numbers."""

from dawnbench_tf.estimates.sample import Phase, Sample

START = {"import": 4.0, "build": 1.0, "load": 2.0, "compile": 3.0, "train": 0.5, "other": 9.0}


def sample(laps=((1.0, 10), (1.0, 10)), **changes):
    """Returns a sample of 100 ms a step, 20 steps of 64 an epoch, 6.5 s of start on the clock."""
    facts = {
        "start": START,
        "first_steps": 10,
        "generated": False,
        "phases": [Phase(32, 64, 20, 0, 30.0, list(laps), 1e9)],
        "peak_flops": 1e12,
        "peak_from": "a convolution",
        "process_gib": 1.5,
        "device_gib": None,
        "input_wait": 0.01,
        "evaluation_seconds": 2.0,
        "first_evaluation_seconds": 1.0,
        "hardware": "2 CPU",
        "software": {"tensorflow": "2.20.0"},
    }
    return Sample(**{**facts, **changes})
