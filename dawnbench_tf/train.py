"""Trains a model to its threshold, times it, and writes an entry.

    dawnbench train [FILE.toml]   # your recipe; or embedded digits, no download
    dawnbench train --recipe=cifar10/wrn_22_6 --data_dir=DIR --strategy=mirrored

Flags replace the recipe's own settings, which `dawnbench recipes NAME` shows.
Exit status: 0 threshold reached, 3 not reached, 1 bad input or environment.
"""

import os
import shlex
import signal
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dawnbench_tf import files, flags, machine, recipes, run_folder, runs, tasks, terminal
from dawnbench_tf.clock import Clock, beating
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions, to_record, with_recorded
from dawnbench_tf.recipes import recipe_files
from dawnbench_tf.refusals import Refusal, refuse, shown
from dawnbench_tf.runs import Run, run_entry
from dawnbench_tf.settings import flag_text, setting
from dawnbench_tf.submission import prices

if TYPE_CHECKING:
    import tensorflow as tf

    from dawnbench_tf.training.session import Session

__all__ = ["train"]

PROGRAM = ("dawnbench", "train")
MISTAKES = "mistakes.png"
COMMON = (  # flags that --help shows
    "recipe task threshold epochs batch_size learning_rate seed precision data_dir "
    "download strategy num_gpus output_dir author hardware cost_per_hour instance"
).split()

OWN_DATA = (  # flags that --help shows in addition, with --task
    "model validation_share class_weights image_sizes pretrained frozen_parts backbone_rate "
    "task_name"
).split()


@dataclass(frozen=True)
class Options:
    """The flags of the command; each setting of a recipe is a flag as well."""

    GROUP: ClassVar[str] = "what to train"
    recipe: str = setting(recipes.DEFAULT, "TASK/NAME, FILE.toml or MODULE:ATTRIBUTE")
    task: str = setting(
        "", f"your own data: {tasks.READER_TEXT}; --task=folder --help has its flags"
    )
    task_name: str = setting(
        "", "name of a task of your own in entries; default: that of --data_dir, or NAME"
    )
    run: RunOptions = RunOptions()


def main(options: Options, arguments: list[str]) -> int:
    options = _with_file(options, arguments)
    replaced = flags.replacements(Recipe)
    recipe = _recipe(options, replaced, bool(arguments))
    run = _as_it_began(options.run)
    if run.credits.instance and run.strategy == "multi_worker_mirrored":
        expected = "is one machine's price; give --cost_per_hour of all workers, and --hardware"
        refuse("instance", run.credits.instance, expected)
    run = replace(run, credits=prices.with_instance_price(run.credits))
    if run.max_steps:
        return _test_speed(recipe, run)
    folder = run.output_dir or _new_folder(recipe)
    # The user wrote every setting of a file or a module: a run of others is refused.
    compared = None if ":" in options.recipe or recipe_files.is_path(options.recipe) else replaced
    try:
        return _report(train(recipe, run, folder, replaced=compared), run)
    except KeyboardInterrupt as interrupt:
        command = [*PROGRAM, *sys.argv[1:]]
        command += [] if run.output_dir else [f"--output_dir={folder}"]
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        raise KeyboardInterrupt(number, f"to continue: {shlex.join(command)}") from None


def _common() -> list[str]:
    """Returns the flags that --help shows; a --task on the command line is checked."""
    texts = [text for text in sys.argv if text.partition("=")[0] == "--task"]
    for text in texts:
        if "=" in text:
            tasks.check_reader(text.partition("=")[2])
    return [*COMMON, *OWN_DATA] if texts else COMMON


def _with_file(options: Options, arguments: list[str]) -> Options:
    """Returns the options with the recipe's file, if the command line names one without a flag."""
    if not arguments:
        return options
    first = arguments[0]
    if len(arguments) > 1 or not recipe_files.is_path(first):
        hint = "flags are written --name=value, a recipe's file FILE.toml"
        if first in recipes.rows():
            hint = f"did you mean --recipe={first}?"
        elif (Path(first) / run_folder.RECIPE).is_file():
            hint = f"did you mean --output_dir={first}?"
        raise Refusal(f"{arguments[-1]}: not a flag; {hint}")
    if flags.is_given("recipe"):
        refuse("recipe", options.recipe, f"and {first} both name a recipe; choose one")
    return replace(options, recipe=first)


def _recipe(options: Options, replaced: dict[str, Any], named: bool) -> Recipe:
    """Returns the recipe of the flags; without one, that of the run in --output_dir."""
    folder = Path(options.run.output_dir)
    named = named or flags.is_given("recipe")
    same = not named and not options.task
    data_dir, task_name = options.run.data_dir, options.task_name
    if options.run.output_dir and same and (folder / run_folder.RECIPE).exists():
        recipe = recipes.changed(run_folder.owner_of(folder).recipe, **replaced)
    elif options.task:
        task = tasks.find_task(options.task, data_dir, task_name)
        name = options.recipe if named else recipes.base_of(task)
        recipe = recipes.get(name, task=task, **replaced)
    else:
        if options.run.output_dir and same and not options.run.max_steps:
            terminal.say(f"{folder} holds no run to continue; one of {options.recipe} begins there")
        recipe = recipes.named_by(recipes.get(options.recipe, **replaced), data_dir, task_name)
    if task_name not in ("", recipe.whole_task.name):
        refuse("task_name", task_name, f"is for data of your own; this is {recipe.whole_task.name}")
    return recipe


def _as_it_began(run: RunOptions) -> RunOptions:
    """Returns the options; those without a flag are as the run in --output_dir records them."""
    if not run.output_dir or not (Path(run.output_dir) / run_folder.RECIPE).exists():
        return run
    recorded = to_record(run_folder.owner_of(Path(run.output_dir)).options)
    missing = {name: value for name, value in recorded.items() if not flags.is_given(name)}
    if flags.is_given("strategy") and run.strategy != recorded.get("strategy", "off"):
        devices = {"logical_cpus", "tpu", *["num_gpus"] * (missing.get("num_gpus", 0) > 1)}
        missing = {name: value for name, value in missing.items() if name not in devices}
    if flags.is_given("cost_per_hour"):  # one price: the flag's, else the instance's
        missing.pop("instance", None)
    elif flags.is_given("instance") or "instance" in missing:
        missing.pop("cost_per_hour", None)
    if not missing:
        return run
    words = shlex.join(flag_text(name, value) for name, value in missing.items())
    terminal.say(f"goes on with {words}, as it began")
    return with_recorded(run, missing)


def train(
    recipe: Recipe | str,
    options: RunOptions = RunOptions(),
    output: str | os.PathLike[str] | None = None,
    data: Any = None,
    callbacks: "Sequence[tf.keras.callbacks.Callback]" = (),
    replaced: Collection[str] | None = None,
) -> Run:
    """Trains a recipe until its threshold is reached; writes the run's folder and its entry.

    Prints nothing; what the command would print goes to the logger "dawnbench_tf". A run that was
    interrupted goes on when this is called again with its folder; `recipe` and `options` of
    `runs.read(folder)` are the arguments that it began with.

    Args:
      recipe: model, data set, optimizer and threshold: `recipes.get("digits/resnet8", epochs=5)`,
        or a recipe's name.
      options: devices, data directory and output; `options.max_steps` has to be 0.
      output: folder of the run; default: `options.output_dir`, else a new one, runs/RECIPE-TIME.
      data: examples to use in place of those in `options.data_dir`: arrays (x_train, y_train,
        x_test, y_test), flat or in pairs, or (x, y) if the recipe has a `validation_share`: images
        uint8 (examples, side, side, 1 or 3) or (examples, side, side), labels whole numbers from 0
        on, (examples,) or (examples, 1); two tf.data data sets of single (image, label) pairs; the
        `splits` of `dataset.open`; or a function without arguments that returns one of these, whose
        time is on the clock. A run with `data` is an entry of a task of your own only.
      callbacks: Keras callbacks for `fit`, called after the library's own. A recipe with
        `later_batch_sizes` has a `fit` for each batch size.
      replaced: names of the settings that the caller changed. A run in `output` goes on with its
        own recipe if only other settings differ; None: any difference is refused.

    Returns:
      The run: its rows and clock, `reached`, `first_hit`, `model()`, `entry`.

    Raises:
      Refusal: the recipe can't be trained with these options, the data is missing or damaged, or
        the folder holds another run.
      ValueError: one of `callbacks` is none, or would change the learning rate.
      KeyboardInterrupt: the folder keeps the last checkpoint; call again to go on.
    """
    if options.max_steps:
        refuse("max_steps", options.max_steps, "is for training.speed_test.measure; here it is 0")
    callbacks = [*callbacks]  # a generator's too serve each phase
    if other := [item for item in callbacks if not hasattr(item, "set_model")]:
        raise ValueError(f"`callbacks` should be Keras callbacks. Received: {other[0]!r}")
    fixed = {"LearningRateScheduler", "ReduceLROnPlateau"}  # would write to a copy of the rate
    if any(fixed & {kind.__name__ for kind in type(item).__mro__} for item in callbacks):
        text = "the rate is the recipe's: schedule, schedule_epochs, schedule_factors"
        raise ValueError(f"`callbacks` should have none of {', '.join(sorted(fixed))}; {text}")
    recipe = recipes.get(recipe)
    clock = Clock()  # from here every second belongs to one named part
    terminal.status("importing TensorFlow")
    with clock.part("import"), machine.importing():  # recorded, not counted
        from dawnbench_tf.training import session

    folder = Path(output or options.output_dir or _new_folder(recipe))
    with session.open_session(recipe, options, folder, clock, data, replaced) as opened:
        if not opened.finished:
            ticks = [item.tick for item in opened.callbacks if hasattr(item, "tick")]
            with beating(*ticks), clock.part("train"):
                for phase in opened.phases():  # one, unless the batches' shape changes
                    opened.model.fit(
                        opened.data.training_batches(phase.start),
                        initial_epoch=phase.start,
                        epochs=phase.end,
                        steps_per_epoch=opened.data.in_epoch(phase.start).steps_per_epoch,
                        verbose=0,
                        callbacks=[*opened.callbacks, *callbacks],
                    )
        used, held_out = opened.measure()
    try:
        return _recorded(opened, used, held_out)
    finally:
        opened.folder.release()


def _new_folder(recipe: Recipe) -> str:
    begun = time.strftime("%Y%m%d-%H%M%S")  # and a random part: two runs may begin in one second
    return f"runs/{recipe.name.replace('/', '-')}-{begun}-{os.urandom(2).hex()}"


def _recorded(session: "Session", used: dict[str, Any], held_out: dict[str, float]) -> Run:
    """Writes entry and picture of a run that has ended; returns the run."""
    from dawnbench_tf.runs import picture

    folder, recipe, saver = session.folder, session.data.recipe, session.saver
    if not folder.writer:
        text = f"this worker is done; worker 0 writes the results to {folder.path}"
        terminal.say(text, sys.stdout)
        return Run(recipe, session.timer.rows, session.timer.clock.parts())
    run = runs.read(folder.path)
    if (answers := session.evaluate.answers) is not None:
        session.data.save_answers(answers, folder.path)
    if used:
        files.write_json(folder.path / run_folder.UTILIZATION, used)
    facts: dict[str, object] = {
        "jitCompile": session.model.jit_compile,
        "data": session.data.origin.facts(),
        "utilization": used,
        "heldOut": held_out,
    }
    if before := run_folder.owner_of(folder.path).epochs_before:
        facts |= {"epochsBefore": before}  # these had the rates of shorter schedules
    is_own = recipe.whole_task.is_own and recipe.task_row.inputs == "images"
    if is_own and answers is not None:
        facts["classAccuracy"] = _by_class(session, answers)
    hardware = list(dict.fromkeys(machine.hardware for machine in saver.machines))
    if len(hardware) > 1:
        facts |= {"machines": hardware}
    options = run.options  # as recorded: this call's devices did not train a finished run
    machine = [saver.machine, *saver.machines][-1]  # perhaps another one trained
    entry = run_entry.training_entry(run, options, machine, used.get("examplesPerSecond"), facts)
    with suppress(Refusal):  # a damaged one
        if session.finished and (earlier := run.entry):  # it has the measurement's day and devices
            how = {n: v for n, v in (earlier.misc or {}).items() if n in run_entry.MEASURED}
            entry = replace(entry, timestamp=earlier.timestamp, misc=(entry.misc or {}) | how)
    run_entry.write(folder.path, entry)
    if run.rows:
        price = options.credits.cost_per_hour
        picture.draw(run, entry.hardware, folder.path / "accuracy.png", price)
    return run


def _by_class(session: "Session", answers: np.ndarray) -> dict[str, float]:
    """Returns the accuracy of each class, and draws the ten most confident mistakes."""
    from dawnbench_tf.data.images import scores, tested
    from dawnbench_tf.runs import picture

    split = session.data.splits.test
    names = session.data.splits.classes or [*map(str, range(answers.shape[1]))]
    files.discard(session.folder.path / MISTAKES)  # of a run that goes on
    if wrong := scores.mistakes(answers, split.labels, 10):
        images = tested.pixels(split, session.data.recipe, np.array([i for i, _, _ in wrong]))
        titles = [
            f"{names[answer]} {probability:.0%}, is {names[split.labels[i]]}"
            + (f"\n{split.names[i][-32:]}" if split.names else "")
            for i, answer, probability in wrong
        ]
        picture.draw_mistakes(images, titles, session.folder.path / MISTAKES)
    return scores.class_accuracies(answers, split.labels, names)


def _report(run: Run, options: RunOptions) -> int:
    """Prints the result of a run, and the command to run next; returns the exit status."""
    from dawnbench_tf.training import utilization

    entry, path, folder = run.entry, run.entry_path, run.folder
    if entry and path and folder:
        misc = entry.misc or {}
        lines = [run_entry.describe_run(run, options.credits.cost_per_hour)]
        if shares := misc.get("classAccuracy", {}):
            worst = ", ".join(f"{shown(name)} {share:.1f}" for name, share in [*shares.items()][:8])
            more = f", and {len(shares) - 8} others" if len(shares) > 8 else ""
            picture = folder / MISTAKES
            drawn = f"; the most confident mistakes: {picture}" if picture.exists() else ""
            lines.append(f"accuracy by class: {worst}{more}{drawn}")
        for name, score in misc.get("heldOut", {}).items():
            lines.append(f"{name} {score:.5g} on the {run.recipe.held_out:,} held-out examples")
        lines.append(utilization.format_line(run.used))
        reasons = misc.get("violations", [])
        lines.append(run_entry.describe_entry(run.recipe.task_row, path, reasons))
        command, purpose = ["dawnbench", "infer", f"--model={folder}"], "to time its answers"
        if not run.reached and run.recipe.epochs == int(run.recipe.epochs):
            epochs = f"--epochs={2 * run.recipe.epochs:g}"
            command, purpose = [*PROGRAM, f"--output_dir={folder}", epochs], "to train it longer"
        for line in lines:
            terminal.say(line, sys.stdout, is_prose=True)
        last = f"picture: {folder / 'accuracy.png'}\n{purpose}: {shlex.join(command)}"
        terminal.say(last, sys.stdout)
    return 0 if run.reached else 3


def _test_speed(recipe: Recipe, options: RunOptions) -> int:
    """Times `max_steps` steps and prints their speed; returns the exit status."""
    terminal.status("importing TensorFlow")
    with machine.importing():
        from dawnbench_tf.training import speed_test, utilization

    test = speed_test.measure(recipe, options)
    if test.chief:
        for line in (str(test), utilization.format_line(test.used)):
            terminal.say(line, sys.stdout, is_prose=True)
    if test.chief and options.output_dir:
        path = Path(options.output_dir) / run_folder.TRIAL
        files.make_folder(path.parent)
        each = test.phases[0].seconds_per_step
        own: dict[str, Any] = {"steps": test.steps, "secondsPerStep": each}
        if test.phases[-1].end == test.recipe.epochs:  # not of other sizes, which were not timed
            own |= {"hoursOfAllEpochs": test.seconds / 3600, "usd": test.usd}
        files.write_json(path, {**test.used, **own, "recipe": test.recipe.values()})
        terminal.say(f"written: {path}", sys.stdout)
    return 0


if __name__ == "__main__":
    flags.run(
        main,
        Options,
        files=True,
        replaces=Recipe,
        common=_common,
        tables={"instance": prices.format_table},
        interrupted="to continue: {command}",
    )
