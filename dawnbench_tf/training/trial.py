"""A few steps of a recipe, timed: how fast this machine would train it. No run, no entry."""

import sys
import time

import numpy as np
import tensorflow as tf

from dawnbench_tf import terminal
from dawnbench_tf.data import inputs
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import devices, fitting, progress, strategies, utilization

CALLS = 4  # into TensorFlow, at least, where there are so many steps


class _Laps(tf.keras.callbacks.Callback):
    """Seconds and steps of each call into TensorFlow; each ends with its loss on the host."""

    def __init__(self):
        super().__init__()
        self.laps: list[tuple[float, int]] = []

    def on_train_begin(self, logs=None):
        self._at, self._step = time.monotonic(), 0

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        self.laps.append((now - self._at, batch + 1 - self._step))
        self._at, self._step = now, batch + 1
        terminal.status(f"{batch + 1} steps", logged=False)


def run(recipe: Recipe, options: RunOptions) -> int:
    """Trains `options.max_steps` steps, prints how long they took; returns the exit status.

    Raises:
      Refusal: the recipe can't be trained here, or its data are not there.
    """
    strategy = strategies.build(options)
    strategies.check(strategy, options, recipe)
    terminal.status("loading the data")
    splits = inputs.load(recipe, options.data_dir, options.download)
    placement = inputs.Placement(strategy, options.data_format)
    kind = inputs.of(recipe.task_row)
    steps = kind.steps(splits, recipe)
    count = min(options.max_steps, recipe.steps(steps))
    terminal.status("building the model")
    in_a_call = max(1, min(options.steps_per_execution, count // CALLS))
    model = fitting.build(recipe, splits, placement, in_a_call)
    terminal.status("")
    terminal.say(progress.summary(recipe, model, splits, devices.machine_of(strategy).hardware))
    laps = _Laps()
    terminal.status("compiling and first steps")
    with fitting.refusing(recipe, None):
        model.fit(
            kind.train(splits, recipe, placement, 0),
            steps_per_epoch=count,
            verbose=0,
            callbacks=[laps],
        )
    terminal.status("")
    if strategies.is_chief(strategy):
        terminal.say(_report(recipe, steps, laps.laps), sys.stdout)
    return 0


def _report(recipe, steps, laps):
    first, *later = laps
    seconds, count = first
    each = float(np.median([took / n for took, n in later or laps]))
    used = utilization.memory()
    of_gpus = f", a GPU {used['deviceGiB']:.2f} GiB" if "deviceGiB" in used else ""
    lines = [
        f"{sum(n for _, n in laps)} steps: {each * 1e3:.4g} ms a step at the median, "
        f"{recipe.batch_size / each:,.0f} examples/s; the first {count} with compiling "
        f"{seconds:.1f} s{'' if later else ', which is all there were: ask for more'}",
        f"so an epoch's {steps:,} steps take {progress.duration(steps * each)}, all "
        f"{recipe.epochs:g} epochs {progress.duration(recipe.steps(steps) * each)}, "
        "without evaluations",
        f"process {used['processGiB']:.2f} GiB at its peak{of_gpus}",
    ]
    return "\n".join(lines)
