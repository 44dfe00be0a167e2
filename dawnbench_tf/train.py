"""Trains a model to its threshold, times it, and writes an entry.

    python -m dawnbench_tf.train     # embedded digits to 98 %, no download
    python -m dawnbench_tf.train --recipe=cifar10/resnet56_tf --data_dir=DIR --strategy=mirrored

Flags replace the recipe's own settings, which `dawnbench recipes NAME` shows.
Exit status: 0 the threshold was reached, 3 it was not, 1 bad input or environment.
"""

import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from dawnbench_tf import files, flags, recipes, runs, tensorflow_env, terminal
from dawnbench_tf.clock import Clock
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.runs import Run
from dawnbench_tf.settings import setting
from dawnbench_tf.submission import prices, run_entry

if TYPE_CHECKING:
    import tensorflow as tf

    from dawnbench_tf.data.dataset import Splits
    from dawnbench_tf.training.session import Session

__all__ = ["train"]

SECONDS_TO_UNWIND = 3  # of an interrupted run, at most; saving its clock takes 0.02


COMMON = (  # flags that --help shows
    "recipe threshold epochs batch_size learning_rate seed precision data_dir "
    "download strategy num_gpus output_dir author hardware cost_per_hour instance"
).split()


@dataclass(frozen=True)
class Options:
    """The flags of the command; each setting of a recipe is a flag as well."""

    GROUP: ClassVar[str] = "what to train"
    recipe: str = setting(recipes.DEFAULT, "recipe; `dawnbench recipes` lists all")
    run: RunOptions = RunOptions()


def main(_: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _interrupt)
    command = ["python", "-m", "dawnbench_tf.train", *sys.argv[1:]]
    try:
        options = flags.read(Options)
        if options.run.credits.instance == "?":
            terminal.end_quietly()
            terminal.say(prices.format_table(), sys.stdout)
            return 0
        replaced = flags.replacements(Recipe)
        recipe = _recipe(options, replaced)
        run = _priced(options.run)
        if run.max_steps:
            return _test_speed(recipe, run)
        folder = run.output_dir or _new_folder(recipe)
        if not run.output_dir:
            command.append(f"--output_dir={folder}")
        return _report(train(recipe, run, folder, replaced=replaced), run)
    except Refusal as refusal:
        terminal.exit_with(str(refusal), at_once="tensorflow" in sys.modules)
    except KeyboardInterrupt as interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        line = f"interrupted; to continue: {shlex.join(command)}"
        terminal.exit_with(line, 128 + number, at_once="tensorflow" in sys.modules)


def _recipe(options: Options, replaced: dict[str, Any]) -> Recipe:
    """Returns the recipe of the flags; without --recipe, that of the run in --output_dir."""
    folder = Path(options.run.output_dir)
    if options.run.output_dir and not flags.is_given("recipe") and (folder / runs.RECIPE).exists():
        return recipes.changed(runs.recipe_of(folder), **replaced)
    return recipes.get(options.recipe, **replaced)


def _priced(run: RunOptions) -> RunOptions:
    """Returns the options with the price of --instance, which is one machine's."""
    credits, line = prices.with_instance_price(run.credits)
    if line and run.strategy == "multi_worker_mirrored":
        expected = "is one machine's price; give --cost_per_hour of all workers, and --hardware"
        refuse("instance", credits.instance, expected)
    if line:
        terminal.say(line)
    return replace(run, credits=credits)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Interrupts the run; repeats it in case a destructor of TensorFlow swallows the exception."""
    signal.signal(signal.SIGALRM, lambda *_: _interrupt(number, frame))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_UNWIND)
    raise KeyboardInterrupt(number)


def train(
    recipe: Recipe,
    options: RunOptions = RunOptions(),
    output: str | os.PathLike[str] | None = None,
    data: "Splits | None" = None,
    callbacks: "Sequence[tf.keras.callbacks.Callback]" = (),
    replaced: Collection[str] | None = None,
) -> Run:
    """Trains a recipe until its threshold is reached; writes the run's folder and its entry.

    Prints nothing; what the command would print goes to the logger "dawnbench_tf". A run that was
    interrupted goes on when this is called again with its folder.

    Args:
      recipe: model, data set, optimizer and threshold: `recipes.get("digits/resnet8", epochs=5)`.
      options: devices, data directory and output; `options.max_steps` has to be 0.
      output: folder of the run; default: `options.output_dir`, else a new one, runs/RECIPE-TIME.
      data: examples in the form that `dataset.load` returns; default: loaded from
        `options.data_dir`. A run with `data` can't become an entry.
      callbacks: Keras callbacks for `fit`, called after the library's own.
      replaced: names of the settings that the caller changed. A run in `output` goes on with its
        own recipe if only other settings differ; None: any difference is refused.

    Returns:
      The run: its rows and clock, `reached`, `first_hit`, `model()`, `entry`.

    Raises:
      Refusal: the recipe can't be trained with these options, the data is missing or damaged, or
        the folder holds another run.
      KeyboardInterrupt: the folder keeps the last checkpoint; call again to go on.
    """
    if options.max_steps:
        refuse("max_steps", options.max_steps, "is for training.speed_test.measure; here it is 0")
    clock = Clock()  # from here every second belongs to one named part
    terminal.status("importing TensorFlow")
    with clock.part("import"), tensorflow_env.importing():  # recorded, not counted
        from dawnbench_tf.training import pulse, session

    folder = Path(output or options.output_dir or _new_folder(recipe))
    with session.open_session(recipe, options, folder, clock, data, replaced) as opened:
        if not opened.finished:
            with pulse.beating(*opened.ticks), clock.part("train"):
                opened.model.fit(
                    opened.data.training_batches(opened.epochs_done),
                    initial_epoch=opened.epochs_done,
                    epochs=math.ceil(opened.recipe.epochs),
                    steps_per_epoch=opened.data.steps_per_epoch,
                    verbose=0,
                    callbacks=[*opened.callbacks, *callbacks],
                )
        opened.measure()

    return _recorded(opened)


def _new_folder(recipe: Recipe) -> str:
    return f"runs/{recipe.name.replace('/', '-')}-{time.strftime('%Y%m%d-%H%M%S')}"


def _recorded(session: "Session") -> Run:
    """Writes entry and picture of a run that has ended; returns the run."""
    from dawnbench_tf.training import curve

    folder, recipe, used = session.folder, session.recipe, session.used
    if not folder.writer:
        terminal.say(
            f"this worker is done; worker 0 writes the results to {folder.path}", sys.stdout
        )
        return Run(recipe, session.timer.rows, session.timer.clock.parts())
    run = runs.read(folder.path)
    folder.save_utilization(used)
    facts: dict[str, object] = {
        "data": session.data.origin.facts(),
        "utilization": used,
        "heldOut": session.held_out,
    }
    if before := runs.epochs_before(folder.path):
        facts |= {"epochsBefore": before}  # rates of the first ones are those of shorter schedules
    speed = used.get("examplesPerSecond")
    entry = run_entry.training_entry(run, session.options, session.machine, speed, facts)
    run_entry.write(folder.path, entry)
    session.evaluate.save(folder.path)
    curve.draw(run, entry.hardware, folder.path / "accuracy.png")
    return run


def _report(run: Run, options: RunOptions) -> int:
    """Prints the result of a run; returns the exit status."""
    from dawnbench_tf.training import utilization

    entry, path = run.entry, run.entry_path
    if entry and path:
        problems = (entry.misc or {}).get("violations", [])
        for line in (
            run_entry.describe_run(run, options.credits.cost_per_hour),
            utilization.format_line(run.used),
            run_entry.describe_entry(run.recipe.task_row, path, problems),
            _next(run, options.data_dir),
        ):
            terminal.say(line, sys.stdout)
    return 0 if run.reached else 3


def _test_speed(recipe: Recipe, options: RunOptions) -> int:
    """Times `max_steps` steps and prints their speed; returns the exit status."""
    terminal.status("importing TensorFlow")
    with tensorflow_env.importing():
        from dawnbench_tf.training import speed_test, utilization

    test = speed_test.measure(recipe, options)
    if test.chief:
        terminal.say(str(test), sys.stdout)
        terminal.say(utilization.format_line(test.used), sys.stdout)
    if test.chief and options.output_dir:
        path = Path(options.output_dir) / runs.TRIAL
        files.make_folder(path.parent)
        files.write_json(path, test.facts())
        terminal.say(f"written: {path}", sys.stdout)
    return 0


def _next(run: Run, data_dir: str) -> str:
    """Returns a line with the run's picture and the command to run next."""
    output, data = run.folder, [f"--data_dir={data_dir}"] if data_dir else []
    command = ["python", "-m", "dawnbench_tf.infer", f"--model={output}", *data]
    purpose = "to time its answers"
    if not run.reached and run.recipe.epochs == int(run.recipe.epochs):
        epochs = f"--epochs={2 * run.recipe.epochs:g}"
        command = [*command[:2], "dawnbench_tf.train", f"--output_dir={output}", *data, epochs]
        purpose = "to train it longer"
    picture = Path(output or "") / "accuracy.png"
    return f"picture: {picture}; {purpose}: {shlex.join(command)}"


if __name__ == "__main__":
    flags.run(main, Options, replaces=Recipe, common=COMMON)
