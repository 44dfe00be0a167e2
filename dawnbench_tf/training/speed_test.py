"""A speed test: times a few steps of a recipe, and extrapolates to time and cost of training."""

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import recipes, terminal
from dawnbench_tf.money import dollars
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse
from dawnbench_tf.training import (
    fitting,
    memory,
    profiling,
    progress,
    session,
    strategies,
    utilization,
)
from dawnbench_tf.tta import TimeToAccuracy

__all__ = ["measure", "SpeedTest", "Laps"]

SECONDS_FOR_CALLS = 5.0  # of a limited test, for its fewest calls
CALLS = 4  # fewest calls into TensorFlow, if there are as many steps


class Laps(tf.keras.callbacks.Callback):
    """A Keras callback that records seconds and steps of each call into TensorFlow.

    The time between two epochs is part of the next epoch's first call.

    Args:
      limit: `limit()` returns, after the first call, the seconds that the other calls may take;
        `fit` is then stopped, but not before there are `CALLS` or twice the time has passed. None:
        no limit.
    """

    def __init__(self, limit: Callable[[], float] | None = None) -> None:
        super().__init__()
        self.laps: list[tuple[float, int]] = []
        self._limit = limit

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._begin = time.monotonic()
        self._last = self._latest = math.inf

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        now = time.monotonic()  # the loss is on the host: the call has ended
        self.laps.append((now - self._begin, batch + 1 - self._step))
        self._begin, self._step = now, batch + 1
        if self._limit and len(self.laps) == 1:
            limit = self._limit()
            self._last, self._latest = now + limit, now + max(2 * limit, SECONDS_FOR_CALLS)
        if now >= (self._last if len(self.laps) > CALLS else self._latest):
            self.model.stop_training = True
        terminal.status(f"{sum(steps for _, steps in self.laps)} steps", logged=False)


class SpeedTest(NamedTuple):
    """The result of a speed test; `str()` gives lines for people.

    Attributes:
      recipe: the recipe whose steps were timed.
      steps_per_epoch: steps in an epoch of the first batch and image size, which are timed.
      laps: seconds and number of steps of each call into TensorFlow.
      used: utilization of the machine, as an entry's `misc` has it.
      cost_per_hour: price in USD per hour; None if not given.
      chief: whether this worker reports the result.
      need: predicted memory of training; None: not predicted.
      available: bytes of memory that training may take.
      profile: what the operations of a step take, with `options.profile_steps`; else None.
    """

    recipe: Recipe
    steps_per_epoch: int
    laps: list[tuple[float, int]]
    used: dict[str, Any]
    cost_per_hour: float | None
    chief: bool
    need: memory.Need | None
    available: float
    profile: profiling.Profile | None = None

    @property
    def seconds_per_step(self) -> float:
        """Median over the calls, without the first one, which compiles, if there are others."""
        return float(np.median([took / n for took, n in self.laps[1:] or self.laps]))

    @property
    def seconds(self) -> float:
        """Estimated seconds of all training steps of the recipe, without evaluations.

        An epoch of another batch or image size is taken to last as long as one of the first;
        `estimate` times each.
        """
        return self.recipe.total_steps([self.steps_per_epoch]) * self.seconds_per_step

    @property
    def usd(self) -> float | None:
        """Estimated cost of the training steps in USD; None without a price."""
        return None if self.cost_per_hour is None else self.cost_per_hour * self.seconds / 3600

    def facts(self) -> dict[str, Any]:
        """Returns the content of trial.json."""
        figures = {
            "steps": sum(steps for _, steps in self.laps),
            "secondsPerStep": self.seconds_per_step,
            "hoursOfAllEpochs": self.seconds / 3600,
            "usd": self.usd,
        }
        if self.need:
            figures["predictedGiB"] = self.need.total / 2**30
            figures["largestBatch"] = self.need.largest_batch(self.available)
        return {**self.used, **figures, "recipe": self.recipe.values()}

    def __str__(self) -> str:
        (seconds, count), *later = self.laps
        each, recipe = self.seconds_per_step, self.recipe
        cost = "" if self.usd is None else f", {dollars(self.usd)}"
        need = f"\n{self.need.text(self.available)}" if self.need else ""
        return (
            f"{sum(n for _, n in self.laps)} steps: {each * 1e3:.4g} ms a step at the median, "
            f"{recipe.batch_size / each:,.0f} examples/s; the first {count} with compiling "
            f"{seconds:.1f} s{'' if later else ', which is all there were: ask for more'}\n"
            f"so an epoch's {self.steps_per_epoch:,} steps take "
            f"{progress.duration(self.steps_per_epoch * each)}, all {recipe.epochs:g} epochs "
            f"{progress.duration(self.seconds)}, without evaluations{cost}{need}"
        )


def measure(recipe: Recipe | str, options: RunOptions, examples: Any = None) -> SpeedTest:
    """Trains `options.max_steps` steps of a recipe and times them.

    Writes no files, but for the profile of `options.profile_steps`, to `options.output_dir`.

    Args:
      recipe: the recipe to train, or its name.
      options: number of steps, data, strategy and the other run options.
      examples: examples to use in place of loaded ones, as `train` takes them.

    Returns:
      A `SpeedTest`: the steps' times, the utilization, and estimates for the whole recipe.

    Raises:
      Refusal: the recipe can't be trained on this machine, or its data are missing.
    """
    recipe = recipes.get(recipe)
    strategy = strategies.build(options)
    strategies.check(strategy, options, recipe)
    timer, laps = _timer(recipe), Laps()
    data = session.prepare(recipe, options, timer.clock, strategy, examples)
    recipe, in_phase = data.recipe, data.in_epoch(0)  # the first sizes alone are timed
    count = min(options.max_steps, recipe.total_steps(in_phase.epoch_steps))
    terminal.status("building the model")
    most = max(1, min(options.steps_per_execution, count // CALLS))
    model = fitting.build(data, most, jit_compile=options.jit_compile)
    need, available = memory.predict(model, data), memory.limit()
    if need and need.total > available:
        refuse("batch_size", need.batch, need.text(available))
    terminal.status("")
    terminal.say(progress.summary(data, model, strategies.machine_of(strategy).hardware))
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    terminal.status("compiling and first steps")
    with fitting.refusing(recipe, None), tempfile.TemporaryDirectory() as folder:
        logs = Path(options.output_dir or folder) / "tensorboard"
        steps = options.profile_steps
        profilers = [profiling.Profiler(logs, steps, timer)] if steps else []
        model.fit(
            in_phase.training_batches(),
            steps_per_epoch=count,
            verbose=0,
            callbacks=[timer, meter, laps, *profilers],
        )
        used = meter.facts()  # every worker has to call it
    terminal.status("")
    price, chief = options.credits.cost_per_hour, strategies.is_chief(strategy)
    profile, in_epoch = profilers[0].profile if profilers else None, data.epoch_steps[0]
    return SpeedTest(recipe, in_epoch, laps.laps, used, price, chief, need, available, profile)


def _timer(recipe: Recipe) -> TimeToAccuracy:
    """Returns a timer that measures examples per second, for the utilization; it scores nothing."""
    metric = recipe.task_row.metric
    return TimeToAccuracy(
        recipe.goal, metric, evaluate=lambda: {metric: 0.0}, step_examples=recipe.batch_size
    )
