"""A training run under way: made ready, claimed and resumed before `fit`, recorded after it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import terminal, tta
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data, Placement, Splits
from dawnbench_tf.data.waits import Waits
from dawnbench_tf.machine import Machine
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import (
    checkpoints,
    claims,
    devices,
    evaluation,
    fitting,
    progress,
    pulse,
    strategies,
    utilization,
)
from dawnbench_tf.training.checkpoints import Folder


@dataclass
class Session:
    """What `fit` takes, and what is recorded of it."""

    recipe: Recipe
    options: RunOptions
    folder: Folder
    data: Data
    model: tf.keras.Model
    timer: tta.TimeToAccuracy
    evaluate: evaluation.Evaluator
    meter: utilization.Utilization
    callbacks: list[tf.keras.callbacks.Callback]  # in this order: row, save, measure, show
    ticks: list[Callable[[], None]]  # to be called every second of `fit`
    machine: Machine  # that an entry describes
    epochs_done: int  # that earlier processes trained
    finished: bool  # before this process: nothing is left to train
    used: dict[str, Any] = field(default_factory=dict)  # of the machine, as an entry has it
    held_out: dict[str, float] = field(default_factory=dict)  # scores of held-out examples

    def measure(self) -> None:
        """Measures what was used, and scores what was held out. All workers take part."""
        self.used = self.folder.used() if self.finished else self.meter.facts()
        with self.timer.clock.part("eval"):
            if self.recipe.held_out:
                self.held_out = evaluation.Evaluator(self.data.held_out(), self.model)()


def prepare(
    recipe: Recipe,
    options: RunOptions,
    clock: Clock,
    strategy: tf.distribute.Strategy,
    splits: Splits | None = None,
) -> Data:
    """Loads the data set of a recipe, or takes `splits`, for the devices of a strategy."""
    # A pipeline that is deterministic may ask no clock.
    waits = None if options.deterministic else Waits()
    placement = Placement(strategy, options.data_format, waits)
    terminal.status("loading the data")
    with clock.part("load"):
        if splits is None:
            splits = dataset.load(recipe, options.data_dir, options.download)
    return dataset.from_splits(recipe, splits, placement)


@contextmanager
def open_session(
    recipe: Recipe,
    options: RunOptions,
    output: Path,
    clock: Clock,
    splits: Splits | None = None,
    replaced: Collection[str] | None = None,
) -> Iterator[Session]:
    """Makes a run ready, in a folder that is claimed for it, or goes on with the one there.

    The clock is written every second of the body. What ends the body for reasons that a user can
    mend is a Refusal, as is what can't be run; a folder that was new is then as it was.

    Args:
      recipe, options, splits, replaced: as `dawnbench_tf.train.train` takes them.
      output: folder of the run.
      clock: of this process.
    """
    with clock.part("build"):
        strategy = strategies.build(options)  # before anything else touches a device
    chief = strategies.is_chief(strategy)
    with fitting.refusing(recipe, output):  # before one claims the folder, and another is refused
        fitting.check_agreement(strategy, recipe, options, epochs_done=0)
    claim = claims.claim(output, recipe, writer=chief, replaced=replaced)
    recipe = claim.recipe
    folder = Folder(output, recipe, writer=chief)
    newest = folder.newest()
    recorded = folder.recorded(newest)  # seconds of earlier processes
    clock.carry_on(recorded)
    finished = newest is not None and checkpoints.is_finished(newest, recipe)
    beats = [checkpoints.clock_writer(folder, clock)] if chief and not finished else []
    # Whatever ends it: no second is forgotten.
    with pulse.beating(*beats), fitting.refusing(recipe, output):
        with claim.given_back_if_refused():
            strategies.check(strategy, options, recipe)
            fitting.check_agreement(strategy, recipe, options, newest.epochs if newest else 0)
            data = prepare(recipe, options, clock, strategy, splits)
            if chief:
                data.save(output)  # what inference needs besides recipe and weights
            terminal.status("building the model")
            with clock.part("build"):
                model = fitting.build(data, options.steps_per_execution)
        session = _session(options, folder, data, model, clock, newest, finished)
        if chief:
            terminal.status("")
            terminal.say(progress.summary(data, model, session.machine.hardware))
            terminal.say(progress.describe_start(folder, newest, recorded))
        yield session


def _session(options, folder, data, model, clock, newest, finished):
    """Timer, saver and meter around a model, restored from the newest checkpoint."""
    recipe, strategy = data.recipe, data.placement.strategy
    evaluate = evaluation.Evaluator(data, model)
    timer = tta.TimeToAccuracy(  # evaluates off the clock, stops at the threshold
        recipe.goal,
        recipe.task_row.metric,
        evaluate=evaluate,
        every=recipe.eval_every,
        clock=clock,
        log=folder.rows if folder.writer else None,
        last_step=recipe.total_steps(data.steps_per_epoch),
        step_examples=recipe.batch_size,
        cost_per_hour=options.credits.cost_per_hour,
    )
    saver = checkpoints.Saver(folder, model, timer)  # weights, rows, clock: one rename
    saver.restore(newest)
    if newest and finished:
        saver.complete(newest)
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    callbacks, ticks = [timer, saver, meter], []
    if folder.writer:
        line = progress.Line(timer, recipe.epochs, data.steps_per_epoch)
        callbacks, ticks = [*callbacks, line], [line.tick, meter.tick]
        if options.tensorboard or options.profile_steps:
            callbacks.append(fitting.tensorboard(folder.path, options.profile_steps))
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
        devices.machine_of(strategy),
        newest.epochs if newest else 0,
        finished,
    )
