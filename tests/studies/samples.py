"""Sample studies and outcomes for tests."""

import json
import sys
from pathlib import Path

from dawnbench_tf import recipes
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import Factor, Level, Study
from dawnbench_tf.studies.outcomes import Outcome

METRIC = "top1Accuracy"
GRID = """
question = "Does a projection pay?"
recipe = "digits/resnet8"
trials = 2
thresholds = [98, 95]
figure = "curves"
[settings]
epochs = 20
author = "somebody"
[factors]
batch_size = [32, 128]
[factors.shortcuts]
padded = {model = "resnet8_v1_pad"}
projected = {model = "resnet8_v1_proj", learning_rate = 0.05}
"""
RECIPE = """
base = "imagenette/resnet18"
name = "flowers/mine"
[settings]
epochs = 20
image_sizes = [64]
image_size_epochs = []
learning_rate = 1
"""


def study(**changes):
    fields = {"name": "sample", "question": "Is it so?", "recipe": "digits/resnet8", "trials": 3}
    levels = Level("", {"batch_size": 32}), Level("", {"batch_size": 64})
    return Study(**{**fields, "factors": (Factor("batch size", levels),), **changes})


def outcome(labels=("32",), seed=0, seconds=10.0, status=outcomes.REACHED, goal=98.0, **facts):
    """Returns an outcome whose last row came after `seconds`, at the goal unless it missed it."""
    last = 99.0 if status == outcomes.REACHED else 50.0
    rows = [{"epoch": 1, "hours": seconds / 2 / 3600, METRIC: 40.0}]
    rows.append({"epoch": 2, "hours": seconds / 3600, METRIC: last})
    reason = "" if status == outcomes.REACHED else f"why it {status}"
    facts = {"examplesPerSecond": 1000.0, "hardware": "2 CPU", "framework": "TensorFlow", **facts}
    settings, clock = {"recipe": "digits/resnet8", "seed": seed}, {"train": seconds}
    ended = status, reason, METRIC, goal, rows
    return Outcome(settings, seed, *ended, clock, facts, wall_seconds=2 * seconds)


def write(folder, study, make_outcome):
    """Writes a study's folder with an outcome `make_outcome(planned)` of each run; returns it."""
    from dawnbench_tf.studies import grid, store

    with store.claimed(folder, study):
        pass
    for planned in grid.plan(study):
        (folder / planned.name).mkdir(parents=True)
        outcome = make_outcome(planned)._replace(settings=dict(planned.settings))
        outcomes.write(folder / planned.name, outcome)
    return folder


def launcher(home):
    """Writes a program that runs `stand_in` in place of `train`; returns its launch template."""
    (home / "recipe.json").write_text(json.dumps(recipes.get("digits/resnet8").values()))
    path, program = home / "launch", Path(__file__).with_name("stand_in.py")
    command = f'{sys.executable} -S {program} {home}/recipe.json "$@"'
    path.write_text(f"#!/bin/sh\nshift 3\nexec {command}\n")
    path.chmod(0o755)
    return f"{path} {{command}}"
