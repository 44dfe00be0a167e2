"""A training session: claims a folder, builds or restores a run before `fit`, measures after it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import terminal, tta
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data, Placement
from dawnbench_tf.data.waits import Waits
from dawnbench_tf.machine import Machine
from dawnbench_tf.options import RunOptions, to_record
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.phases import Phase
from dawnbench_tf.refusals import refuse
from dawnbench_tf.training import (
    checkpoints,
    claims,
    evaluation,
    fitting,
    profiling,
    progress,
    pulse,
    strategies,
    utilization,
)
from dawnbench_tf.training.checkpoints import Checkpoint, Folder
from dawnbench_tf.training.claims import Claim


@dataclass
class Session:
    """A run that is ready for `fit`: data, model, callbacks, and the results to record."""

    recipe: Recipe
    options: RunOptions
    folder: Folder
    data: Data
    model: tf.keras.Model
    timer: tta.TimeToAccuracy
    evaluate: evaluation.Evaluator
    meter: utilization.Utilization
    callbacks: list[tf.keras.callbacks.Callback]  # of `fit`, the timer first
    ticks: list[Callable[[], None]]  # functions to call every second of `fit`
    machine: Machine  # hardware and software of this process
    machines: list[Machine]  # those that trained, in order; grows with the first checkpoint
    epochs_done: int  # epochs that earlier processes trained
    finished: bool  # whether earlier processes trained all
    release: Callable[[], None]  # releases the folder, once the results are written
    used: dict[str, Any] = field(default_factory=dict)  # utilization, as in an entry's misc
    held_out: dict[str, float] = field(default_factory=dict)  # scores of held-out examples

    def phases(self) -> Iterator[Phase]:
        """Yields the phases that are left. One `fit` trains a phase before the next is yielded."""
        strategy = self.data.placement.strategy
        for phase in fitting.phases(self.recipe, self.epochs_done, strategy):
            self.timer.step_examples = phase.batch_size
            fitting.begin_phase(self.model, self.recipe, phase.start)
            yield phase
            if self.model.stop_training:
                return
            self.timer.restore(self.timer.state())  # the next `fit` goes on

    def measure(self) -> None:
        """Sets `used` and `held_out`, after `fit`; every worker has to call it."""
        self.used = self.folder.read_utilization() if self.finished else self.meter.facts()
        name = self.data.answers_file
        if self.finished and name and not (self.folder.path / name).exists():  # killed before
            with self.timer.clock.part("eval"):
                self.evaluate()
        with self.timer.clock.part("eval"):
            if self.recipe.held_out:
                self.held_out = evaluation.Evaluator(self.data.held_out(), self.model)()


def prepare(
    recipe: Recipe,
    options: RunOptions,
    clock: Clock,
    strategy: tf.distribute.Strategy,
    examples: Any = None,
) -> Data:
    """Loads a recipe's data set for the devices of a strategy; the time counts as "load".

    The recipe of the result has its task's numbers of examples and classes, from the data.

    Args:
      recipe: the recipe.
      options: folder of the data, image layout.
      clock: clock of this process.
      strategy: distribution strategy.
      examples: examples to use in place of those in the folder, as in `train`.

    Raises:
      Refusal: files are missing or damaged, or a task of the user's own has no threshold.
    """
    # A deterministic tf.data pipeline can't read the time.
    waits = None if options.deterministic else Waits()
    placement = Placement(strategy, options.data_format, waits)
    if examples is None:
        dataset.check_files(recipe, options.data_dir)
    terminal.status("loading the data")
    with clock.part("load"):
        recipe, splits = dataset.load_completed(
            recipe, options.data_dir, options.download, examples
        )
    if not recipe.goal:
        refuse("threshold", "", f"is needed for {recipe.task_row.name}, a task of your own")
    return dataset.from_splits(recipe, splits, placement)


@contextmanager
def open_session(
    recipe: Recipe,
    options: RunOptions,
    output: Path,
    clock: Clock,
    examples: Any = None,
    replaced: Collection[str] | None = None,
) -> Iterator[Session]:
    """Claims a folder and builds a run in it, or restores the run that the folder holds.

    clock.json is written every second of the body. The caller releases the folder.

    Args:
      recipe: the recipe to run.
      options: strategy, data, layout and the other run options.
      output: folder of the run.
      clock: clock of this process.
      examples: examples to use in place of those in the folder, as in `train`.
      replaced: names of the recipe's fields that the user set; None: all.

    Raises:
      Refusal: building or the body fails for a reason that a user can fix. If building fails, a new
        folder is restored as it was.
    """
    with clock.part("build"):
        strategy = strategies.build(options)  # before any other use of a device
    chief = strategies.is_chief(strategy)
    if examples is not None and not recipe.whole_task.is_own:
        recipe = recipe.with_values(task=recipe.whole_task.without_counts())
    # Before the claim: the chief must not claim the folder for a recipe that other workers lack.
    with fitting.refusing(recipe, output):
        fitting.check_agreement(strategy, recipe, options, epochs_done=0)
    claim = claims.claim(output, recipe, chief, replaced, to_record(options))
    try:
        with _opened(claim, options, clock, strategy, examples) as session:
            yield session
    except BaseException:
        claim.unlock()
        raise


@contextmanager
def _opened(
    claim: Claim,
    options: RunOptions,
    clock: Clock,
    strategy: tf.distribute.Strategy,
    examples: Any,
) -> Iterator[Session]:
    """Builds or restores the run of a claimed folder; see `open_session`."""
    recipe, output, chief = claim.recipe, claim.path, strategies.is_chief(strategy)
    folder = Folder(output, recipe, writer=chief)
    newest = folder.newest()
    recorded = folder.read_clock(newest)  # seconds of earlier processes
    clock.carry_on(recorded)
    finished = newest is not None and checkpoints.is_finished(newest, recipe)
    beats = [checkpoints.clock_writer(folder, clock)] if chief and not finished else []
    # `beating` writes the clock once more at the end, however the body ends.
    with pulse.beating(*beats), fitting.refusing(recipe, output):
        with claim.released_if_refused():
            if newest is None and recipe.whole_task.any_size and not recipe.synthetic:
                recipe = recipe.with_values(task=recipe.whole_task.without_counts())
            data, model = _build(recipe, options, strategy, clock, folder, newest, examples)
            session = _make_session(options, folder, data, model, clock, newest, claim.unlock)
            if chief:
                claim.record(data.recipe, to_record(options))
        if chief:
            terminal.status("")
            terminal.say(progress.summary(data, model, session.machine.hardware))
            terminal.say(progress.describe_start(folder, newest, recorded))
        with dataset.refusing_damage(data.describe_damage):
            yield session


def _build(
    recipe: Recipe,
    options: RunOptions,
    strategy: tf.distribute.Strategy,
    clock: Clock,
    folder: Folder,
    newest: Checkpoint | None,
    examples: Any,
) -> tuple[Data, tf.keras.Model]:
    """Returns data set and model, after checks of the recipe against devices and other workers."""
    strategies.check(strategy, options, recipe)
    fitting.check_agreement(strategy, recipe, options, newest.epochs if newest else 0)
    data = prepare(recipe, options, clock, strategy, examples)
    if not recipe.whole_task.is_whole:  # its numbers are of the data, which each worker has read
        fitting.check_agreement(strategy, data.recipe, options, newest.epochs if newest else 0)
    if newest:
        data.check_saved(folder.path)
    elif folder.writer:
        data.save(folder.path)  # for inference: the vocabulary, or the names of the classes
    terminal.status("building the model")
    with clock.part("build"):
        model = fitting.build(
            data, options.steps_per_execution, newest is not None, options.jit_compile
        )
    return data, model


def _make_session(
    options: RunOptions,
    folder: Folder,
    data: Data,
    model: tf.keras.Model,
    clock: Clock,
    newest: Checkpoint | None,
    release: Callable[[], None],
) -> Session:
    """Makes timer, saver and meter, and restores the newest checkpoint."""
    recipe, strategy = data.recipe, data.placement.strategy
    finished = newest is not None and checkpoints.is_finished(newest, recipe)
    evaluate = evaluation.Evaluator(data, model)
    timer = _make_timer(options, folder, data, evaluate, clock)
    machine = strategies.machine_of(strategy)
    # Weights, rows and clock are in one checkpoint.
    saver = checkpoints.Saver(folder, model, timer, machine)
    saver.restore(newest)
    if newest and finished:
        saver.complete(newest)
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    callbacks, ticks = [timer, fitting.LastCall(timer), saver, meter], []
    if folder.writer:
        line = progress.Line(timer, recipe.epochs)
        callbacks, ticks = [*callbacks, line], [line.tick, meter.tick]
        logs = folder.path / "tensorboard"
        if options.tensorboard:
            callbacks.append(
                tf.keras.callbacks.TensorBoard(logs, profile_batch=0, write_graph=False)
            )
        if options.profile_steps:
            callbacks.append(profiling.Profiler(logs, options.profile_steps, timer))
    return Session(
        recipe,
        options,
        folder,
        data,
        model,
        timer,
        evaluate,
        meter,
        callbacks,
        ticks,
        machine,
        saver.machines,
        newest.epochs if newest else 0,
        finished,
        release,
    )


def _make_timer(
    options: RunOptions, folder: Folder, data: Data, evaluate: evaluation.Evaluator, clock: Clock
) -> tta.TimeToAccuracy:
    """Makes the timer: it evaluates off the clock, and stops at the threshold."""
    recipe = data.recipe
    return tta.TimeToAccuracy(
        recipe.goal,
        recipe.task_row.metric,
        evaluate=evaluate,
        every=recipe.eval_every,
        first=recipe.eval_from,
        clock=clock,
        log=folder.rows if folder.writer else None,
        last_step=recipe.total_steps(data.epoch_steps),
        step_examples=recipe.batch_size,
        cost_per_hour=options.credits.cost_per_hour,
    )
