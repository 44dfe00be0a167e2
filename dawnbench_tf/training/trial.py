"""A few steps of a recipe, timed: how fast this machine would train it, and at what price."""

import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, runs, terminal
from dawnbench_tf.data import inputs
from dawnbench_tf.data.waits import Waits
from dawnbench_tf.money import dollars
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import devices, fitting, progress, strategies, utilization
from dawnbench_tf.tta import TimeToAccuracy

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
    waits = Waits()
    placement = inputs.Placement(strategy, options.data_format, waits)
    kind = inputs.of(recipe.task_row)
    steps = kind.steps(splits, recipe)
    count = min(options.max_steps, recipe.steps(steps))
    terminal.status("building the model")
    in_a_call = max(1, min(options.steps_per_execution, count // CALLS))
    model = fitting.build(recipe, splits, placement, in_a_call)
    terminal.status("")
    terminal.say(progress.summary(recipe, model, splits, devices.machine_of(strategy).hardware))
    laps, timer = _Laps(), _timer(recipe)
    meter = utilization.Utilization(recipe, options, strategy, timer, waits)
    terminal.status("compiling and first steps")
    with fitting.refusing(recipe, None):
        model.fit(
            kind.train(splits, recipe, placement, 0),
            steps_per_epoch=count,
            verbose=0,
            callbacks=[timer, meter, laps],
        )
        used = meter.facts()  # all workers take part
    terminal.status("")
    if strategies.is_chief(strategy):
        each = _seconds_per_step(laps.laps)
        price, hours = options.credits.cost_per_hour, recipe.steps(steps) * each / 3600
        cost = None if price is None else price * hours
        terminal.say(_report(recipe, steps, laps.laps, cost), sys.stdout)
        terminal.say(utilization.line(used), sys.stdout)
        if options.output_dir:
            _save(Path(options.output_dir), {**used, "secondsPerStep": each, "usd": cost}, recipe)
    return 0


def _timer(recipe):
    """Measures examples per second for the shares of the peak; scores nothing."""
    metric = recipe.task_row.metric
    return TimeToAccuracy(
        recipe.goal, metric, evaluate=lambda: {metric: 0.0}, step_examples=recipe.batch_size
    )


def _save(folder, facts, recipe):
    files.make_folder(folder)
    files.write_json(folder / runs.TRIAL, {**facts, "recipe": recipe.values()})
    terminal.say(f"written: {folder / runs.TRIAL}", sys.stdout)


def _seconds_per_step(laps):
    """The median; the first call, which compiles, counts only where it is the only one."""
    return float(np.median([took / n for took, n in laps[1:] or laps]))


def _report(recipe, steps, laps, cost):
    first, *later = laps
    seconds, count = first
    each = _seconds_per_step(laps)
    at_most = "" if cost is None else f", {dollars(cost)}"
    lines = [
        f"{sum(n for _, n in laps)} steps: {each * 1e3:.4g} ms a step at the median, "
        f"{recipe.batch_size / each:,.0f} examples/s; the first {count} with compiling "
        f"{seconds:.1f} s{'' if later else ', which is all there were: ask for more'}",
        f"so an epoch's {steps:,} steps take {progress.duration(steps * each)}, all "
        f"{recipe.epochs:g} epochs {progress.duration(recipe.steps(steps) * each)}, "
        f"without evaluations{at_most}",
    ]
    return "\n".join(lines)
