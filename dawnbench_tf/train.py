"""Train a model until it is good enough; time it; leave a DAWNBench entry.

    python -m dawnbench_tf.train     # embedded digits to 98 %, no download
    python -m dawnbench_tf.train --recipe=cifar10/resnet56_tf --data_dir=DIR --strategy=mirrored

Flags replace the recipe's own settings, which `dawnbench recipes NAME` shows.
Exit status: 0 the threshold was reached, 3 it was not, 1 bad input or environment.
"""

import math
import shlex
import signal
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dawnbench_tf import flags, recipes, runs, tensorflow_env, terminal
from dawnbench_tf.clock import Clock
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.runs import Run
from dawnbench_tf.settings import setting
from dawnbench_tf.submission import of_run, prices

SECONDS_TO_UNWIND = 3  # of an interrupted run, at most; saving its clock takes 0.02


COMMON = (  # flags that --help shows
    "recipe list_recipes threshold epochs batch_size learning_rate seed precision data_dir "
    "download strategy num_gpus output_dir author hardware cost_per_hour instance"
).split()


@dataclass(frozen=True)
class Options:
    """What to train, and where; each setting of a recipe is a flag as well."""

    GROUP: ClassVar[str] = "what to train"
    recipe: str = setting(recipes.DEFAULT, "what to train, TASK/NAME")
    list_recipes: bool = setting(False, "list the recipes and what is known of them, then exit")
    run: RunOptions = RunOptions()


def main(_: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _interrupt)
    command = ["python", "-m", "dawnbench_tf.train", *sys.argv[1:]]
    try:
        options = flags.read(Options)
        if options.list_recipes:
            terminal.end_quietly()
            print(recipes.table())
            return 0
        if options.run.credits.instance == "?":
            terminal.end_quietly()
            terminal.say(prices.table(), sys.stdout)
            return 0
        replaced = flags.replacements(Recipe)
        recipe = _recipe(options, replaced)
        run = _priced(options.run)
        folder = run.output_dir
        if not folder:
            folder = f"runs/{recipe.name.replace('/', '-')}-{time.strftime('%Y%m%d-%H%M%S')}"
            command.append(f"--output_dir={folder}")
        return train(recipe, run, Path(folder), replaced)
    except Refusal as refusal:
        terminal.exit_with(str(refusal), at_once="tensorflow" in sys.modules)
    except KeyboardInterrupt as interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        line = f"interrupted; to continue: {shlex.join(command)}"
        terminal.exit_with(line, 128 + number, at_once="tensorflow" in sys.modules)


def _recipe(options, replaced):
    """The recipe that flags name; without `--recipe` that of the run in `--output_dir`, if any."""
    folder = Path(options.run.output_dir)
    if options.run.output_dir and not flags.is_given("recipe") and (folder / runs.RECIPE).exists():
        return recipes.changed(runs.recipe_of(folder), **replaced)
    return recipes.get(options.recipe, **replaced)


def _priced(run):
    """The options with the price of `--instance`, which is one machine's."""
    credits, line = prices.of_instance(run.credits)
    if line and run.strategy == "multi_worker_mirrored":
        right = "is one machine's price; give --cost_per_hour of all workers, and --hardware"
        refuse("instance", credits.instance, right)
    if line:
        terminal.say(line)
    return replace(run, credits=credits)


def _interrupt(number, frame):
    """Ends the run; asks again, should a destructor of TensorFlow swallow the exception."""
    signal.signal(signal.SIGALRM, lambda *_: _interrupt(number, frame))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_UNWIND)
    raise KeyboardInterrupt(number)


def train(
    recipe: Recipe, run: RunOptions, output: Path, replaced: Collection[str] | None = None
) -> int:
    """Trains `recipe` the way `run` says, in folder `output`. Returns the exit status.

    `replaced` names the fields of the recipe that differ from the library's row by the user's wish;
    None: each may. A run that began with another row goes on with that one, except for these.
    """
    clock = Clock()  # from here every second belongs to one named part
    terminal.status("importing TensorFlow")
    with clock.part("import"), tensorflow_env.importing():  # recorded, not counted
        from dawnbench_tf import tta
        from dawnbench_tf.data import inputs, waits
        from dawnbench_tf.training import (
            checkpoints,
            claims,
            curve,
            devices,
            evaluation,
            fitting,
            mllog,
            progress,
            pulse,
            strategies,
            trial,
            utilization,
        )

    if run.max_steps:
        return trial.run(recipe, run)
    with clock.part("build"):
        strategy = strategies.build(run)  # before anything else touches a device
    chief = strategies.is_chief(strategy)
    with fitting.refusing(recipe, output):  # before one claims the folder, and another is refused
        fitting.check_agreement(strategy, recipe, run, epochs_done=0)
    claim = claims.claim(output, recipe, writer=chief, replaced=replaced)
    recipe = claim.recipe
    folder = checkpoints.Folder(output, recipe, writer=chief)
    newest = folder.newest()
    recorded = folder.recorded(newest)  # seconds of earlier processes
    clock.carry_on(recorded)
    task, waited = recipe.task_row, waits.Waits()
    placement = inputs.Placement(strategy, run.data_format, waited)
    of_task = inputs.of(task)
    finished = newest is not None and checkpoints.is_finished(newest, recipe)
    beats = [checkpoints.beat(folder, clock)] if chief and not finished else []
    # Whatever ends it: no second is forgotten.
    with pulse.beating(*beats), fitting.refusing(recipe, output):
        with claim.given_back_if_refused():
            strategies.check(strategy, run, recipe)
            fitting.check_agreement(strategy, recipe, run, newest.epochs if newest else 0)
            terminal.status("loading the data")
            with clock.part("load"):
                splits = inputs.load(recipe, run.data_dir, run.download)
            if chief:
                of_task.save(splits, output)  # what inference needs besides recipe and weights
            terminal.status("building the model")
            with clock.part("build"):
                model = fitting.build(recipe, splits, placement, run.steps_per_execution)

        steps = of_task.steps(splits, recipe)
        evaluate = evaluation.Evaluator(recipe, model, splits, placement)
        timer = tta.TimeToAccuracy(  # evaluates off the clock, stops at the threshold
            recipe.goal,
            task.metric,
            evaluate=evaluate,
            every=recipe.eval_every,
            clock=clock,
            log=folder.rows if chief else None,
            last_step=recipe.steps(steps),
            step_examples=recipe.batch_size,
            cost_per_hour=run.credits.cost_per_hour,
        )
        saver = checkpoints.Saver(folder, model, timer)  # weights, rows, clock: one rename
        epochs_done = saver.restore(newest)
        meter = utilization.Utilization(recipe, run, strategy, timer, waited)
        callbacks = [timer, saver, meter]  # order matters: row, then save, then measure and show
        machine, ticks = devices.machine_of(strategy), []
        if chief:
            terminal.status("")
            terminal.say(progress.summary(recipe, model, splits, machine.hardware))
            terminal.say(progress.begins(folder, newest, recorded))
            line = progress.Line(timer, recipe.epochs, steps)
            callbacks, ticks = [*callbacks, line], [line.tick, meter.tick]
        if chief and run.mllog:
            callbacks.append(mllog.Mllog(output, recipe, run.credits, machine.hardware, timer))
        if chief and (run.tensorboard or run.profile_steps):
            callbacks.append(fitting.tensorboard(output, run.profile_steps))

        if not finished:
            with pulse.beating(*ticks), clock.part("train"):
                model.fit(
                    of_task.train(splits, recipe, placement, epochs_done),
                    initial_epoch=epochs_done,
                    epochs=math.ceil(recipe.epochs),
                    steps_per_epoch=steps,
                    verbose=0,
                    callbacks=callbacks,
                )
            used = meter.facts()  # all workers take part
        else:
            used = folder.used()
        with clock.part("eval"):
            held_out = evaluation.of_held_out(recipe, model, splits, placement)
    status = 0 if timer.reached else 3
    if not chief:
        terminal.say(f"this worker is done; worker 0 writes the results to {output}", sys.stdout)
        return status

    # A process that finds the run finished is no part of it: the clock is that of the run.
    result = Run(recipe, timer.rows, recorded if finished else clock.parts())
    folder.save_used(used)
    facts: dict[str, object] = {
        "data": of_task.origin(splits).facts(),
        "utilization": used,
        "heldOut": held_out,
    }
    if before := runs.epochs_before(output):
        facts |= {"epochsBefore": before}  # rates of the first ones are those of shorter schedules
    entry = of_run.training(result, run, machine, used.get("examplesPerSecond"), facts)
    path, why_not = of_run.write(output, entry)
    evaluate.save(output)
    curve.draw(result, entry.hardware, output / "accuracy.png")
    terminal.say(of_run.summary(result, run.credits.cost_per_hour), sys.stdout)
    terminal.say(utilization.line(used), sys.stdout)
    terminal.say(of_run.outcome(task, path, why_not), sys.stdout)
    terminal.say(_next(result, output, run.data_dir), sys.stdout)
    return status


def _next(run: Run, output: Path, data_dir: str) -> str:
    """The picture that a run left, and the command that goes on from it."""
    data = [f"--data_dir={data_dir}"] if data_dir else []
    command = ["python", "-m", "dawnbench_tf.infer", f"--model={output}", *data]
    what = "to time its answers"
    if not run.reached and run.recipe.epochs == int(run.recipe.epochs):
        epochs = f"--epochs={2 * run.recipe.epochs:g}"
        command = [*command[:2], "dawnbench_tf.train", f"--output_dir={output}", *data, epochs]
        what = "to train it longer"
    return f"picture: {output / 'accuracy.png'}; {what}: {shlex.join(command)}"


if __name__ == "__main__":
    flags.run(main, Options, replaces=Recipe, common=COMMON)
