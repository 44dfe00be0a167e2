"""Estimates time and dollars to the threshold, from a few steps.

    dawnbench estimate                      # the recipes that were measured
    dawnbench estimate cifar10/airbench94 imagenet/resnet50 --cost_per_hour=0.9
    dawnbench estimate --output=HERE.json   # also as JSON
    dawnbench estimate --compare HERE.json THERE.json   # machines side by side

Examples are generated unless --data_dir is given. Flags replace settings of every recipe.
Exit status: 0; 1 for bad input, or if no recipe could be estimated.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import ClassVar, NoReturn

from dawnbench_tf import flags, machine, recipes, terminal
from dawnbench_tf.estimates import comparison, layout, process
from dawnbench_tf.estimates.comparison import Comparison, Machine
from dawnbench_tf.estimates.prediction import Estimate
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.settings import check, setting
from dawnbench_tf.submission import prices

__all__ = ["estimate", "estimate_all", "compare", "Options"]

COMMON = (  # flags that --help shows
    "seconds json output compare batch_size precision data_dir strategy num_gpus "
    "steps_per_execution cost_per_hour instance"
).split()


@dataclass(frozen=True)
class Options:
    """The flags of the command; each setting of a recipe is a flag as well.

    Attributes:
      run: devices, data directory and price.
    """

    GROUP: ClassVar[str] = "this command"
    seconds: float = setting(
        300.0, "time for all recipes, in seconds; each has an equal part of what is left", above=0
    )
    json: bool = setting(False, "print JSON in place of the table")
    output: str = setting("", "file to write the estimates to, as JSON")
    compare: bool = setting(False, "compare the files of several machines: --compare A.json B.json")
    run: RunOptions = RunOptions()

    def __post_init__(self) -> None:
        check(self)


def main(names: list[str]) -> int:
    try:
        options = flags.read(Options)
        if options.compare:
            return _compare(options, [Path(name) for name in names])
        if options.run.credits.instance == "?":
            terminal.end_quietly()
            terminal.say(prices.format_table(), sys.stdout)
            return 0
        credits, line = prices.with_instance_price(options.run.credits)
        run = replace(options.run, credits=credits)
        changes = flags.replacements(Recipe)
        chosen = [
            recipes.named_by(recipes.get(name, **changes), run.data_dir)
            for name in names or measured_recipes()
        ]
        _check(options, chosen)
        if line:
            terminal.say(line)
        return _estimate(options, chosen, run)
    except Refusal as refusal:
        terminal.exit_with(str(refusal))


def measured_recipes() -> list[str]:
    """Returns the names of the recipes that were measured to their threshold."""
    return [
        name
        for name, recipe in recipes.rows().items()
        if any(isinstance(item, Measured) for item in recipe.evidence)
    ]


def _check(options: Options, chosen: Sequence[Recipe]) -> None:
    """Raises Refusal for flags that these recipes or this command can't have."""
    if options.run.max_steps:
        refuse("max_steps", options.run.max_steps, "is for train; --seconds limits an estimate")
    if options.run.data_dir and len({recipe.whole_task.name for recipe in chosen}) > 1:
        refuse("data_dir", options.run.data_dir, "is one task's data; name recipes of that task")
    if options.output and not Path(options.output).absolute().parent.is_dir():
        refuse("output", options.output, "should be a file in a folder that exists")


def _estimate(options: Options, chosen: Sequence[Recipe], run: RunOptions) -> int:
    """Estimates, prints rows as they come, and what is done after Ctrl-C; returns the status."""
    rows: list[Estimate] = []
    status = 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        estimate_all(chosen, run, options.seconds, rows.append)
    except KeyboardInterrupt as interrupt:
        status = 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
        terminal.status("")
        terminal.say(f"interrupted after {len(rows)} of {len(chosen)} recipes")
    if rows:
        own = _machine(rows, run)
        text = json.dumps(own.facts(), indent=1) if options.json else layout.format_table(rows)
        terminal.say(text, sys.stdout)
        if options.output:
            comparison.write(Path(options.output), own)
            terminal.say(f"written: {options.output}")
    return status or (0 if any(not row.reason for row in rows) else 1)


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # the rows are printed, then the command ends
    raise KeyboardInterrupt(number)


def _machine(rows: list[Estimate], run: RunOptions) -> Machine:
    """Returns the rows with this machine, the versions and the date, as --output has them."""
    hardware = run.credits.hardware or next((row.hardware for row in rows if row.hardware), "")
    software = next((row.software for row in rows if row.software), {})
    hardware = hardware or f"{machine.cpus()} CPU {machine.cpu_name()}"
    price = run.credits.cost_per_hour
    return Machine("", hardware, software, comparison.today(), price, rows)


def estimate(
    recipe: Recipe | str, options: RunOptions = RunOptions(), seconds: float = 60.0
) -> Estimate:
    """Times some steps of a recipe on this machine, and predicts time and cost to its threshold.

    The steps run in a separate process, so this one does not import TensorFlow. Examples are
    generated unless the data set is embedded or `options.data_dir` has it.

    Args:
      recipe: the recipe: `recipes.get("digits/resnet8", batch_size=128)`, or its name.
      options: devices, data directory and price (`RunOptions(credits=Credits(cost_per_hour=1))`).
      seconds: time for it, with the import of TensorFlow.

    Returns:
      The estimate: hours and USD with their intervals, epochs and their spread, the steps' time,
      throughput, share of the device's peak and memory.

    Raises:
      Refusal: the recipe can't be trained on this machine, or no step ended in this time.
    """
    return process.estimate(recipes.get(recipe), options, seconds)


def estimate_all(
    chosen: Sequence[Recipe],
    options: RunOptions = RunOptions(),
    seconds: float = 300.0,
    report: Callable[[Estimate], None] = lambda _: None,
) -> list[Estimate]:
    """Estimates several recipes, one after another. What fails is a row with its `reason`.

    Args:
      chosen: the recipes.
      options: devices, data directory and price, for all of them.
      seconds: time for all of them; each has an equal part of what is left.
      report: called with each estimate as soon as it is there.

    Returns:
      An estimate for each recipe.
    """
    return process.estimate_all(chosen, options, seconds, report)


def compare(paths: Sequence[str | os.PathLike[str]]) -> Comparison:
    """Compares the estimates of several machines.

    Args:
      paths: JSON files that `dawnbench estimate --output` wrote.

    Returns:
      The machines, with their estimates, and the recipes that two of them have in common.

    Raises:
      Refusal: a file can't be read or has other keys than an estimate; it names file and key.
    """
    return comparison.compare([Path(path) for path in paths])


def _compare(options: Options, paths: list[Path]) -> int:
    """Prints machines side by side; returns the status."""
    if len(paths) < 2:
        raise Refusal("--compare: should be followed by two files or more, of --output")
    terminal.end_quietly()
    compared = compare(paths)
    print(comparison.format_text(compared))
    return 0


if __name__ == "__main__":
    flags.run(main, Options, files=True, replaces=Recipe, common=COMMON)
