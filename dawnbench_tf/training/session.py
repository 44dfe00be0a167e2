"""A training session: claims a folder, builds or restores a run before `fit`, measures after it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from dawnbench_tf import run_folder, terminal, tta
from dawnbench_tf.clock import Clock, beating
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data, Placement
from dawnbench_tf.data.placement import Waits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions, to_record
from dawnbench_tf.recipe.schedule import Phase
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.run_folder import Checkpoint, RunFolder
from dawnbench_tf.training import (
    checkpoints,
    evaluation,
    fitting,
    profiling,
    progress,
    strategies,
    utilization,
)


@dataclass
class Session:
    """A run that is ready for `fit`: data, model, callbacks, and what measures it."""

    folder: RunFolder
    data: Data  # its recipe is the run's, with the numbers of the data
    model: tf.keras.Model
    timer: tta.TimeToAccuracy
    evaluate: evaluation.Evaluator
    saver: checkpoints.Saver  # its `machines` are those that trained, in order
    meter: utilization.Utilization
    callbacks: list[tf.keras.callbacks.Callback]  # of `fit`, the timer first
    newest: Checkpoint | None  # what earlier processes trained

    @property
    def finished(self) -> bool:
        """Whether earlier processes trained all."""
        return self.newest is not None and self.newest.is_last(self.data.recipe)

    def phases(self) -> Iterator[Phase]:
        """Yields the phases that are left. One `fit` trains a phase before the next is yielded."""
        recipe, strategy = self.data.recipe, self.data.placement.strategy
        for phase in fitting.phases(recipe, self.newest.epochs if self.newest else 0, strategy):
            self.timer.step_examples = phase.batch_size
            fitting.begin_phase(self.model, recipe, phase.start)
            yield phase
            if self.model.stop_training:
                return
            self.timer.restore(self.timer.state())  # the next `fit` goes on

    def measure(self) -> tuple[dict[str, Any], dict[str, float]]:
        """Returns utilization and scores of held-out examples, after `fit`, on every worker."""
        used = run_folder.read_used(self.folder.path) if self.finished else self.meter.facts()
        name, held_out = self.data.answers_file, dict[str, float]()
        with self.timer.clock.part("eval"):
            if self.finished and name and not (self.folder.path / name).exists():  # killed before
                self.evaluate()
            if self.data.recipe.held_out:
                held_out = evaluation.Evaluator(self.data.held_out(), self.model)()
        return used, held_out


def prepare(
    recipe: Recipe,
    options: RunOptions,
    clock: Clock,
    strategy: tf.distribute.Strategy,
    examples: Any = None,
    epochs_done: int | None = None,
) -> Data:
    """Loads a recipe's data set for the devices of a strategy; the time counts as "load"."""
    # The recipe of the result has its task's numbers of examples and classes, from the data. A run
    # that goes on after `epochs_done` needs the numbers of its recipe.
    if recipe.whole_task.any_size and epochs_done is None and not recipe.synthetic:
        recipe = recipe.with_values(task=recipe.whole_task.without_counts())
    if not recipe.goal:
        refuse("threshold", "", f"is needed for {recipe.task_row.name}, a task of your own")
    # A deterministic graph can't read the time. Several devices fetch batches ahead of steps.
    counted = not is_op_determinism_enabled() and strategy.num_replicas_in_sync == 1
    placement = Placement(strategy, options.data_format, Waits() if counted else None)
    if examples is None and recipe.whole_task.module == "own.folder" and not recipe.synthetic:
        from dawnbench_tf.data.own import folder  # brings simplejpeg, which other runs do not need

        folder.check(recipe, options.data_dir)  # decodes all images, before the clock starts
    terminal.status("loading the data")
    with clock.part("load"):
        data = dataset.open(recipe, options.data_dir, options.download, placement, examples)
    # Each worker has read the numbers of the data, and its checkpoint, itself.
    fitting.check_agreement(strategy, data.recipe, options, epochs_done or 0, data)
    return data


@contextmanager
def open_session(
    recipe: Recipe,
    options: RunOptions,
    output: Path,
    clock: Clock,
    examples: Any = None,
    replaced: Collection[str] | None = None,
) -> Iterator[Session]:
    """Claims a folder and builds a run in it, or restores the run that the folder holds."""
    # clock.json is written every second of the body. The caller releases the folder, unless the
    # body raises. Arguments are as in `train`. If building fails, the folder is restored as it was.
    with clock.part("build"):
        strategy = strategies.build(options, clock)  # before any other use of a device
    chief = strategies.is_chief(strategy)
    if examples is not None and not recipe.whole_task.is_own:
        recipe = recipe.with_values(task=recipe.whole_task.without_counts())
    # Before the claim: the chief must not claim the folder for a recipe that other workers lack.
    with fitting.refusing(recipe, strategy, output):
        fitting.check_agreement(strategy, recipe, options)

    folder = run_folder.claim(output, recipe, chief, replaced, to_record(options))
    try:
        recipe, newest = folder.recipe, folder.newest()
        recorded = folder.read_clock(newest)  # seconds of earlier processes
        clock.carry_on(recorded)
        finished = newest is not None and newest.is_last(recipe)
        beats = [partial(folder.write_clock, clock)] if chief and not finished else []
        # `beating` writes the clock once more at the end, however the body ends.
        refusing = partial(fitting.refusing, recipe, strategy, output)
        with beating(*beats), refusing(), fitting.freeing_graphs():
            kind = Refusal if examples is None else Exception  # a crash is a result, and counts
            with folder.restored_on(kind, recorded), refusing():
                session = _build(folder, options, clock, strategy, newest, examples)
                if chief:
                    if finished and folder.owner:  # this call's devices train nothing
                        own, data_dir = options.credits, options.data_dir
                        options = replace(folder.owner.options, credits=own, data_dir=data_dir)
                    folder.record(session.data.recipe, to_record(options))
            if chief:
                machine = session.saver.machine
                terminal.status("")
                summary = progress.summary(session.data, session.model, machine.hardware)
                terminal.say(summary, is_prose=True)
                terminal.say(progress.describe_start(folder, newest, recorded), is_prose=True)
            with dataset.refusing_damage(session.data.describe_damage):
                yield session
    except BaseException:
        folder.release()
        raise


def _build(
    folder: RunFolder,
    options: RunOptions,
    clock: Clock,
    strategy: tf.distribute.Strategy,
    newest: Checkpoint | None,
    examples: Any,
) -> Session:
    """Loads the data, builds the model and what trains and measures it, restores a checkpoint."""
    strategies.check(strategy, options, folder.recipe)
    epochs_done = newest.epochs if newest else None
    data = prepare(folder.recipe, options, clock, strategy, examples, epochs_done)
    recipe = data.recipe
    if newest:
        data.check_saved(folder.path, trains=True)
    elif folder.writer:
        data.save(folder.path)  # for inference: the vocabulary, or the names of the classes
    terminal.status("building the model")
    with clock.part("build"):
        by_xla = options.jit_compile
        # A run goes on as it began, in earlier releases without XLA. A finished one stays as it is.
        if newest and (by_xla is None or newest.is_last(recipe)):
            by_xla = newest.state.get("jitCompile", False) and strategies.is_one_gpu(strategy)
        model = fitting.build(data, options.steps_per_execution, newest is not None, by_xla)

    evaluate = evaluation.Evaluator(data, model)
    timer = tta.TimeToAccuracy(
        recipe.goal,
        recipe.task_row.metric,
        evaluate=evaluate,
        every=recipe.eval_every,
        first=recipe.eval_from,
        clock=clock,
        log=folder.path / run_folder.ROWS if folder.writer else None,
        last_step=recipe.total_steps(data.epoch_steps),
        step_examples=recipe.batch_size,
        cost_per_hour=options.credits.cost_per_hour,
    )
    # Weights, rows and clock are in one checkpoint.
    saver = checkpoints.Saver(folder, model, timer, strategies.machine_of(strategy))
    saver.restore(newest)
    fitting.check_agreement(strategy, recipe, options, model=model)
    if newest and newest.is_last(recipe):
        saver.complete(newest)
    meter = utilization.Utilization(recipe, options, strategy, timer, data.placement.waits)
    callbacks = [timer, fitting.Calls(timer), saver, meter]
    if folder.writer:
        callbacks.append(progress.Line(timer, recipe.epochs))
        logs = folder.path / "tensorboard"
        if options.tensorboard:
            board = tf.keras.callbacks.TensorBoard(logs, profile_batch=0, write_graph=False)
            callbacks.append(board)
        if options.profile_steps:
            # Before the timer, which evaluates.
            callbacks.insert(0, profiling.Profiler(logs, options.profile_steps, timer))
    return Session(folder, data, model, timer, evaluate, saver, meter, callbacks, newest)
