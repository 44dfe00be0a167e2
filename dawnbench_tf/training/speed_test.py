"""Speed tests: times the start, some steps and an evaluation of a recipe; writes no run."""

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import models, recipes, terminal
from dawnbench_tf.clock import Clock, beating
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipes import speed
from dawnbench_tf.recipes.speed import SpeedTest
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.training import (
    evaluation,
    fitting,
    profiling,
    progress,
    session,
    strategies,
    utilization,
)
from dawnbench_tf.tta import TimeToAccuracy

__all__ = ["measure"]

SECONDS_FOR_CALLS = 5.0  # of a limited test, for its fewest calls
CALLS = 4  # fewest calls into TensorFlow, if there are as many steps
STEPS_SHARE = 0.7  # of the time; the rest is for the evaluation
MOST_SECONDS = 20.0  # of steps of one phase
TEST_EXAMPLES = 1000  # an evaluation is timed on at most this number of examples
READER_STEPS = 3  # steps_per_execution of readers on CPUs, whose operations are not known
_LAPS = 12  # calls into TensorFlow that a phase should have
_EXPECTED_SHARE = 0.3  # share of the peak that a network may reach, to choose steps_per_execution


class _Laps(tf.keras.callbacks.Callback):
    """Records seconds and steps of each call into TensorFlow; stops `fit` when its time is over."""

    # The time between two epochs is part of the next epoch's first call. After the first call the
    # others have a share of the time to `end`, a moment, or inf; `fit` is not stopped before there
    # are `CALLS` or twice the time has passed. `parts` are the clock's at the first call's end.

    def __init__(self, end: float, phases: int, clock: Clock) -> None:
        super().__init__()
        self.laps: list[tuple[float, int]] = []
        self.parts: dict[str, float] = {}
        self._end, self._phases, self._clock = end, phases, clock

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._begin = time.monotonic()
        self._last = self._latest = math.inf

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        now = time.monotonic()  # the loss is on the host: the call has ended
        self.laps.append((now - self._begin, batch + 1 - self._step))
        self._begin, self._step = now, batch + 1
        if len(self.laps) == 1:
            self.parts = self._clock.parts()
            if self._end < math.inf:
                limit = min(MOST_SECONDS, (self._end - now) / self._phases)
                self._last, self._latest = now + limit, now + max(2 * limit, SECONDS_FOR_CALLS)
        if now >= (self._last if len(self.laps) > CALLS else self._latest):
            self.model.stop_training = True
        terminal.status(f"{sum(steps for _, steps in self.laps)} steps", logged=False)


@fitting.freeing_graphs()
def measure(
    recipe: Recipe | str,
    options: RunOptions,
    examples: Any = None,
    seconds: float | None = None,
    clock: Clock | None = None,
    report: Callable[[SpeedTest], None] = lambda _: None,
) -> SpeedTest:
    """Trains `options.max_steps` steps of a recipe, or for some seconds, and times them.

    Writes no files, but for the profile of `options.profile_steps`, to `options.output_dir`.

    Args:
      recipe: the recipe to train, or its name.
      options: number of steps, data, strategy and the other run options.
      examples: examples to use in place of loaded ones, as `train` takes them.
      seconds: time for the test, with what the clock has, in place of a number of steps: each phase
        of training images and batches is then timed, and an evaluation if there is time left.
        Without data the examples are generated.
      clock: this process's, with the import; None: a new one.
      report: called with the test when the steps are done, before the evaluation.

    Returns:
      The times, the utilization, and what follows for the epochs of the timed sizes.

    Raises:
      Refusal: the recipe can't be trained on this machine, or its data are missing.
    """
    clock, recipe = clock or Clock(), recipes.get(recipe)
    if seconds is None and not options.max_steps:
        refuse("max_steps", 0, "should be at least 1, unless `seconds` is given")
    end = math.inf
    if seconds is not None:
        end = time.monotonic() - sum(clock.parts().values()) + seconds
        recipe = without_files(recipe, options)
    with clock.part("build"):
        strategy = strategies.build(options, clock)
    strategies.check(strategy, options, recipe)
    with fitting.refusing(recipe, strategy):
        fitting.check_agreement(strategy, recipe, options)
        data = session.prepare(recipe, options, clock, strategy, examples)
    recipe = data.recipe
    changes = {*recipe.shape_changes, *(p.start for p in fitting.phases(recipe, 0, strategy))}
    begins = sorted(epoch for epoch in changes if epoch < recipe.epochs)
    sides = [utilization.shape_in(recipe, begin)[1] for begin in begins]  # 0: questions
    bounds = list(zip(sides, begins, [*begins[1:], recipe.epochs], strict=True))  # of each phase
    if seconds is None:  # the first sizes alone
        shape = utilization.shape_in(recipe, 0)
        later = (begin for _, begin, _ in bounds if utilization.shape_in(recipe, begin) != shape)
        bounds = [(bounds[0][0], 0, next(later, recipe.epochs))]
        count = min(options.max_steps, recipe.total_steps(data.in_epoch(0).epoch_steps))
        most = max(1, min(options.steps_per_execution, count // CALLS))
    else:
        count, most = 0, _steps_per_call(data, options, STEPS_SHARE * seconds, len(bounds))
    terminal.status("building the model")
    with clock.part("build"):
        # In little time XLA by its own choice would leave none for the steps.
        by_xla = options.jit_compile if seconds is None else bool(options.jit_compile)
        model = fitting.build(data, most, jit_compile=by_xla)
    machine = strategies.machine_of(strategy)
    if seconds is None:
        terminal.status("")
        terminal.say(progress.summary(data, model, machine.hardware), is_prose=True)

    metric = recipe.task_row.metric  # the timer is for the utilization; it scores nothing
    timer = TimeToAccuracy(recipe.goal, metric, evaluate=lambda: {metric: 0.0}, clock=clock)
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    phases: list[speed.Phase] = []
    timed = "lower it; dawnbench train --max_steps=20 finds one that does"
    advice = (lambda: timed) if seconds else partial(_smaller_batch, recipe, options, examples)
    with fitting.refusing(recipe, strategy, None, advice), tempfile.TemporaryDirectory() as folder:
        logs, steps = Path(options.output_dir or folder) / "tensorboard", options.profile_steps
        profilers = [profiling.Profiler(logs, steps, timer)] if steps else []
        for number, (side, begin, until) in enumerate(bounds):
            in_phase = data.in_epoch(begin)
            size, per_epoch = in_phase.recipe.batch_size, in_phase.steps_per_epoch
            timer.step_examples = size
            last = end - (1 - STEPS_SHARE) * (seconds or 0.0)
            laps = _Laps(last, len(bounds) - number, clock)
            fitting.begin_phase(model, recipe, begin)
            terminal.status(f"from epoch {begin} on" if number else "compiling and first steps")
            with clock.part("train"), beating(meter.tick):
                model.fit(
                    in_phase.training_batches(begin),
                    initial_epoch=begin,
                    epochs=max(begin + 1, math.ceil(until)) if seconds else 1,
                    steps_per_epoch=count or per_epoch,
                    verbose=0,
                    callbacks=[timer, *([] if number else [meter]), laps, *profilers],
                )
            if not number:
                used, start = meter.facts(), laps.parts  # every worker's
            flops = (
                utilization.step_flops(model, size, side) if seconds else used["flopsPerExample"]
            )
            first, *rest = laps.laps
            own = rest or [first]
            phases.append(speed.Phase(side, size, per_epoch, begin, until, own, flops, first))
        terminal.status("")
        test = SpeedTest(
            recipe=recipe,
            start=start,
            phases=phases,
            used={**used, **utilization.memory()},
            hardware=machine.hardware,
            software=machine.software,
            options=options,
            chief=strategies.is_chief(strategy),
            profile=profilers[0].profile if profilers else None,
        )
        if seconds is None:
            return test
        report(test)
        if end - time.monotonic() < 0.1 * seconds:
            return test
        terminal.status("evaluating")
        tested = recipe.task_row.test_examples
        few = min(tested, TEST_EXAMPLES)
        moment = time.monotonic()
        evaluate = evaluation.Evaluator(data.sample(few)[1], model)
        evaluate()
        compiled = time.monotonic()
        evaluate()
        each = time.monotonic() - compiled
    return test._replace(
        evaluation_seconds=each * tested / few,
        first_evaluation_seconds=max(0.0, compiled - moment - each),
        used={**test.used, **utilization.memory()},
    )


def _smaller_batch(recipe: Recipe, options: RunOptions, examples: Any) -> str:
    """Returns advice if a batch does not fit: the largest half, quarter, ... of it that does."""
    size = recipe.batch_size // 2
    if not size or options.strategy == "multi_worker_mirrored":
        return "lower it" if size else "one example does not fit either"
    try:
        once = replace(options, max_steps=1, profile_steps=())
        measure(recipe.with_values(batch_size=size), once, examples)
    except Refusal as refusal:  # which says what fits, if it is for lack of memory
        return str(refusal).rpartition("; ")[2]
    return f"{size} does fit"


def without_files(recipe: Recipe, options: RunOptions) -> Recipe:
    """Returns the recipe with generated examples if its data set is neither embedded nor named."""
    if recipe.synthetic or options.data_dir or recipe.task_row.embedded:
        return recipe
    if recipe.whole_task.is_own:
        refuse("data_dir", "", f"is needed for {recipe.whole_task.name}, a task of your own")
    return recipe.with_values(synthetic="jpeg" if recipe.jpegs else "decoded")


def _steps_per_call(data: Data, options: RunOptions, seconds: float, phases: int) -> int:
    """Returns steps_per_execution, lowered if a phase would have too few calls in its time."""
    recipe, most = data.recipe, options.steps_per_execution
    variant = models.get(recipe.model)
    if not variant.multiply_adds:
        return most if tf.config.list_logical_devices("GPU") else min(most, READER_STEPS)
    forward = 2 * variant.multiply_adds * (max(recipe.sizes) / variant.image_size) ** 2
    flops = utilization.flops_per_example(forward) * max(recipe.batch_sizes)
    rate = options.peak_tflops * 1e12 or utilization.measure_peak(recipe.precision)[0]
    lap = min(seconds / phases, MOST_SECONDS) / _LAPS
    return max(1, min(most, int(lap * rate * _EXPECTED_SHARE / flops)))
