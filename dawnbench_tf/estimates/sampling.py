"""Times a recipe's start, some steps of each image size, and an evaluation; writes no files."""

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dawnbench_tf import models, terminal
from dawnbench_tf.clock import Clock
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.estimates.sample import Phase, Sample
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse
from dawnbench_tf.training import (
    evaluation,
    fitting,
    session,
    speed_test,
    strategies,
    utilization,
)
from dawnbench_tf.tta import TimeToAccuracy

STEPS_SHARE = 0.7  # of the time; the rest is for the evaluation
MOST_SECONDS = 20.0  # of steps of one phase
TEST_EXAMPLES = 1000  # an evaluation is timed on at most this number of examples
READER_STEPS = 3  # steps_per_execution of readers on CPUs, whose operations are not known
_LAPS = 12  # calls into TensorFlow that a phase should have
_EXPECTED_SHARE = 0.3  # share of the peak that a network may reach, to choose steps_per_execution


def without_files(recipe: Recipe, options: RunOptions) -> Recipe:
    """Returns the recipe with generated examples if its data set is neither embedded nor named.

    Raises Refusal for a task of the user's own without `data_dir`: nothing tells its examples.
    """
    if recipe.synthetic or options.data_dir or recipe.task_row.embedded:
        return recipe
    if recipe.whole_task.is_own:
        refuse("data_dir", "", f"is needed for {recipe.whole_task.name}, a task of your own")
    return recipe.with_values(synthetic=recipe.task_row.synthetic)


def sample(
    recipe: Recipe,
    options: RunOptions,
    seconds: float,
    report: Callable[[Sample], None] = lambda _: None,
    clock: Clock | None = None,
) -> Sample:
    """Trains some steps of a recipe as `train` does, and times them.

    Args:
      recipe: the recipe; without a data directory its examples are generated.
      options: data, devices and the other run options.
      seconds: time for all of it, with what the clock has; steps end after `STEPS_SHARE` of it.
      report: called with the sample when the steps are done, before the evaluation.
      clock: this process's, with the import; None: a new one.

    Returns:
      The sample; without an evaluation if there was no time left for one.

    Raises:
      Refusal: the recipe can't be trained on this machine, or its data are missing.
    """
    clock = clock or Clock()
    begun = time.monotonic() - sum(clock.parts().values())
    recipe = without_files(recipe, options)
    with clock.part("build"):
        strategy = strategies.build(options)
    strategies.check(strategy, options, recipe)
    data = session.prepare(recipe, options, clock, strategy)
    most = _steps_per_call(data, options, STEPS_SHARE * seconds)
    terminal.status("building the model")
    with clock.part("build"):
        model = fitting.build(data, most, jit_compile=options.jit_compile)
    with fitting.refusing(recipe, None):
        part = _time_steps(data, model, options, clock, begun + STEPS_SHARE * seconds)
        report(part)
        if time.monotonic() - begun > 0.9 * seconds:
            return part
        terminal.status("evaluating")
        each, first = _time_evaluation(data, model)
    return part._replace(
        evaluation_seconds=each,
        first_evaluation_seconds=first,
        process_gib=utilization.memory()["processGiB"],
    )


def _steps_per_call(data: Data, options: RunOptions, seconds: float) -> int:
    """Returns steps_per_execution, lowered if a phase would have too few calls in its time."""
    recipe = data.recipe
    variant = models.get(recipe.model)
    if not variant.multiply_adds:
        slow = not tf.config.list_logical_devices("GPU")
        return (
            min(options.steps_per_execution, READER_STEPS) if slow else options.steps_per_execution
        )
    scale = (max(recipe.sizes) / variant.image_size) ** 2
    flops = utilization.flops_per_example(2 * variant.multiply_adds * scale) * max(
        recipe.batch_sizes
    )
    rate = options.peak_tflops * 1e12 or utilization.measure_peak(recipe.precision)[0]
    step = flops / (rate * _EXPECTED_SHARE)
    lap = min(seconds / len(_bounds(data)), MOST_SECONDS) / _LAPS
    return max(1, min(options.steps_per_execution, int(lap / step)))


def _time_steps(
    data: Data, model: tf.keras.Model, options: RunOptions, clock: Clock, last: float
) -> Sample:
    """Trains steps of each phase until the moment `last`; returns a sample without evaluation."""
    recipe, strategy = data.recipe, data.placement.strategy
    metric = recipe.task_row.metric
    timer = TimeToAccuracy(
        recipe.goal,
        metric,
        evaluate=lambda: {metric: 0.0},
        clock=clock,
    )
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    bounds = _bounds(data)
    phases: list[Phase] = []
    for number, (side, begin, end) in enumerate(bounds):
        in_phase = data.in_epoch(begin)
        timer.step_examples = in_phase.recipe.batch_size
        share = _limit(last, len(bounds) - number)
        laps, begins = speed_test.Laps(share), _Start(clock)
        fitting.begin_phase(model, recipe, begin)
        terminal.status("compiling and first steps" if not number else f"from epoch {begin} on")
        with clock.part("train"):
            model.fit(
                in_phase.training_batches(begin),
                initial_epoch=begin,
                epochs=max(begin + 1, int(-(-end // 1))),
                steps_per_epoch=in_phase.steps_per_epoch,
                verbose=0,
                callbacks=[timer, *([] if number else [meter]), begins, laps],
            )
        if not number:
            start, used, first = begins.parts, meter.facts(), laps.laps[0][1]
        size, steps = in_phase.recipe.batch_size, in_phase.steps_per_epoch
        flops = utilization.step_flops(model, size, side)
        phases.append(Phase(side, size, steps, begin, end, laps.laps[1:] or laps.laps, flops))
    return _make_sample(data, start, first, phases, used)


def _make_sample(
    data: Data, start: dict[str, float], first: int, phases: list[Phase], used: dict[str, Any]
) -> Sample:
    """Returns the sample of timed steps, without an evaluation."""
    recipe, machine = data.recipe, strategies.machine_of(data.placement.strategy)
    return Sample(
        start=start,
        first_steps=first,
        generated=bool(recipe.synthetic),
        phases=phases,
        peak_flops=used["peakFlopsPerSecond"],
        peak_from=used["peakFrom"],
        process_gib=utilization.memory()["processGiB"],
        device_gib=utilization.memory().get("deviceGiB"),
        input_wait=used["inputWaitShare"],
        evaluation_seconds=None,
        first_evaluation_seconds=None,
        hardware=machine.hardware,
        software=machine.software,
    )


def _limit(last: float, phases: int) -> Callable[[], float]:
    """Returns a function that gives a phase its part of the time until `last`."""
    return lambda: min(MOST_SECONDS, (last - time.monotonic()) / phases)


def _bounds(data: Data) -> list[tuple[int, int, float]]:
    """Returns (side, first epoch, end) of each phase of training; side 0: questions."""
    recipe = data.recipe
    resized = getattr(recipe.data, "image_size_epochs", ())
    phases = fitting.phases(recipe, 0, data.placement.strategy)
    changes = sorted({phase.start for phase in phases} | {*resized})
    begins = [epoch for epoch in changes if epoch < recipe.epochs]
    sides = [recipe.sizes[sum(begin >= epoch for epoch in resized)] for begin in begins]
    return list(zip(sides, begins, [*begins[1:], recipe.epochs], strict=True))


class _Start(tf.keras.callbacks.Callback):
    """A Keras callback that keeps the clock's parts at the end of the first call."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.parts: dict[str, float] = {}
        self._clock = clock

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.parts = self.parts or self._clock.parts()


def _time_evaluation(data: Data, model: tf.keras.Model) -> tuple[float, float]:
    """Returns seconds of an evaluation on all test examples, and of compiling it."""
    examples = data.recipe.task_row.test_examples
    count = min(examples, TEST_EXAMPLES)
    moment = time.monotonic()
    evaluate = evaluation.Evaluator(data.first(count), model)
    evaluate()
    first, moment = time.monotonic() - moment, time.monotonic()
    evaluate()
    each = time.monotonic() - moment
    return each * examples / count, max(0.0, first - each)
