"""Estimates time and dollars to the threshold, from a few steps.

    dawnbench estimate                      # the recipes that were measured
    dawnbench estimate cifar10/cpu94 imagenet/resnet50_v1_5 --cost_per_hour=0.9
    dawnbench estimate --output=HERE.json   # also as JSON
    dawnbench estimate --compare HERE.json THERE.json   # machines side by side

Examples are generated unless --data_dir is given. Flags replace settings of
every recipe.
Exit status: 0; 1 for bad input, or if no recipe could be estimated.
"""

import datetime
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dawnbench_tf import files, flags, recipes, terminal
from dawnbench_tf.clock import in_units
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.recipe.options import OF_A_CALL, RunOptions
from dawnbench_tf.recipes import speed
from dawnbench_tf.recipes.speed import Estimate
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing, shown
from dawnbench_tf.settings import Checked, check_fields, setting
from dawnbench_tf.submission import prices
from dawnbench_tf.terminal import dollars

__all__ = ["estimate", "estimate_all", "compare", "Options"]

COMMON = (  # flags that --help shows
    "seconds json output compare batch_size precision data_dir strategy num_gpus "
    "steps_per_execution cost_per_hour instance"
).split()
COLUMNS = 80
FORMAT = 3  # of the file of --output
LARGEST = 10 << 20  # bytes of such a file


@dataclass(frozen=True)
class Options(Checked):
    """The flags of the command; each setting of a recipe is a flag as well.

    Attributes:
      run: devices, data directory and price.
    """

    seconds: float = setting(
        300.0, "time for all recipes, in seconds; each has an equal part of what is left", above=0
    )
    json: bool = setting(False, "print JSON in place of the table")
    output: str = setting("", "file to write the estimates to, as JSON")
    compare: bool = setting(False, "compare the files of several machines: --compare A.json B.json")
    run: RunOptions = RunOptions()


def main(options: Options, names: list[str]) -> int:
    for name in filter(flags.is_given, OF_A_CALL):
        value = getattr(options.run, name)
        refuse(name, value, "is for train; leave it out")
    if options.compare:
        if len(names) < 2:
            raise Refusal("--compare: should be followed by two files or more, of --output")
        if options.json or options.output:
            refuse("compare", True, "prints a table; leave --json and --output out")
        print(format_comparison(compare(names)))
        return 0
    run = replace(options.run, credits=prices.with_instance_price(options.run.credits))
    changes = flags.replacements(Recipe)
    names = names or [
        name
        for name, recipe in recipes.rows().items()
        if any(isinstance(item, Measured) for item in recipe.evidence)
    ]
    chosen = [recipes.named_by(recipes.get(name, **changes), run.data_dir) for name in names]
    if run.data_dir and len({recipe.whole_task.name for recipe in chosen}) > 1:
        refuse("data_dir", run.data_dir, "is one task's data; name recipes of that task")
    output = Path(options.output).absolute()
    is_other = (output.exists() and not output.is_file()) or not output.parent.is_dir()
    if options.output and (is_other or not os.access(output.parent, os.W_OK)):
        refuse("output", options.output, "should be a file in a folder that can be written")
    rows: list[Estimate] = []
    status = 0
    try:
        estimate_all(chosen, run, options.seconds, rows.append)
    except KeyboardInterrupt as interrupted:  # the rows that are done are printed
        status = 128 + (interrupted.args[0] if interrupted.args else signal.SIGINT)
        terminal.status("")
        terminal.say(f"interrupted after {len(rows)} of {len(chosen)} recipes")
    if rows:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        values = {"format": FORMAT, "date": today, "estimates": [row.facts() for row in rows]}
        print(json.dumps(values, indent=1) if options.json else table(rows), flush=True)
        if options.output:
            files.write_json(output, values)
            terminal.say(f"written: {options.output}")
    return status or (0 if any(not row.reason for row in rows) else 1)


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
      Refusal: the recipe can't be trained on this machine, no step ended in this time, or
        `seconds` is no number over 0.
    """
    seconds = Options(seconds=float(seconds)).seconds  # checked
    return speed.predict(speed.take(recipes.get(recipe), options, seconds))


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
      seconds: time for all of them, over 0; each has an equal part of what is left.
      report: called with each estimate as soon as it is there.

    Returns:
      An estimate for each recipe.

    Raises:
      Refusal: `seconds` is no number over 0.
    """
    last, rows = time.monotonic() + Options(seconds=float(seconds)).seconds, []
    for number, recipe in enumerate(chosen):
        left = max(last - time.monotonic(), 0.0)
        share = left / (len(chosen) - number)
        terminal.status(f"{recipe.name} ({number + 1} of {len(chosen)}): up to {in_units(share)}")
        try:
            patience = min(share / 3, max(left - share, 0.0)) + speed.GRACE
            row = speed.predict(speed.take(recipe, options, share, patience))
        except Refusal as refusal:
            row = Estimate(recipe.name, reason=one_line(refusal))
        terminal.status("")
        rows.append(row)
        report(row)
    return rows


def table(rows: Sequence[Estimate]) -> str:
    """Returns the text of `dawnbench estimate`: two lines for each recipe, notes below."""
    lines = [
        f"{'recipe':27} {'epochs':>8} {'reached':>8} {'on the clock':>13} {'95 %':>20}",
        f"{'  ms a step':>11} {'examples/s':>12} {'peak':>5} {'memory':>9} {'start':>8}"
        f" {'evaluation':>11} {'in all':>9} {'USD':>8}",
        "-" * COLUMNS,
    ]
    notes: list[str] = []
    for row in rows:
        if row.reason:
            lines.append(terminal.wrapped(f"{row.recipe}: {row.reason}"))
            continue
        low, high = row.epochs_range or (math.inf, math.inf)
        epochs = "never" if not row.epochs_range else f"{low:g}"
        if low != high:
            epochs = f"{low:.3g} to {high:.3g}"
        if row.at_most:
            epochs = f"all {row.epochs:g}"
            notes.append(
                f"{row.recipe}: the time of all {row.epochs:g} epochs; no run of it was measured, "
                f"so whether it reaches {row.goal} is not known."
            )
        elif row.changed:
            notes.append(
                f"* {row.recipe} with another {', '.join(row.changed)}: epochs are those of the "
                "unchanged recipe."
            )
        share = f"{row.reached} of {row.runs}" if row.runs else "unknown"
        interval = " to ".join(map(_time, row.hours_interval)) or "-"
        peak = "-" if row.share_of_peak is None else f"{row.share_of_peak:.0%}"
        evaluation = "-" if row.evaluation_seconds is None else f"{row.evaluation_seconds:.1f} s"
        name = row.recipe + "*" * bool(row.changed and not row.at_most)
        lines += [
            f"{name}{epochs:>{max(36 - len(name), len(epochs) + 1)}} {share:>8} "
            f"{_time(row.hours):>13} {interval:>20}",
            f"{row.step_ms:11.4g} {float(f'{row.examples_per_second:.4g}'):12,.9g} {peak:>5}"
            f" {max(row.process_gib, row.device_gib or 0.0):5.1f} GiB {row.start_seconds:6.1f} s"
            f" {evaluation:>11} {_time(row.wall_hours):>9} {_cost(row.usd):>8}",
        ]
        sizes = {"{} pixels": row.sides, "batch size {}": row.batch_sizes}
        varied = [[*map(form.format, own)] for form, own in sizes.items() if len({*own}) > 1]
        if varied:
            parts = zip(row.side_ms, *varied, strict=True)
            each = ", ".join(f"{ms:.4g} ms at {' and '.join(names)}" for ms, *names in parts)
            lines.append(terminal.wrapped(f"on average {each}"))
    done = [row for row in rows if not row.reason]
    if done:
        notes.insert(
            0,
            "ms a step: median. peak: share of the device's. start: load, build and compile, on "
            "the clock. in all: with imports and evaluations, off the clock. 95 %: of one further "
            "run; -: too few were measured.",
        )
    if any(row.device_gib for row in done):
        notes.append(
            "On a GPU the steps are timed without XLA, unless --jit_compile is given. On one GPU "
            "`train` uses it where it saves time."
        )
    if generated := ", ".join(row.recipe for row in done if row.generated):
        notes.append(
            f"On generated examples, without the time to load the data: {generated}. "
            "--data_dir times them on the data set."
        )
    return "\n".join([*lines, "", *map(terminal.wrapped, notes)]).rstrip()


def _time(hours: float | None) -> str:
    return "-" if hours is None else in_units(hours * 3600)


def _cost(usd: float | None) -> str:
    return _time(usd) if usd is None or math.isinf(usd) else dollars(usd)


def compare(paths: Sequence[str | os.PathLike[str]]) -> dict[str, dict[str, Estimate]]:
    """Compares the estimates of several machines.

    Args:
      paths: JSON files that `dawnbench estimate --output` wrote.

    Returns:
      path -> name -> estimate, of the recipes that were estimated on two machines or more.

    Raises:
      Refusal: a file can't be read or has other keys than an estimate; it names file and key.
    """
    machines: dict[str, dict[str, Estimate]] = {}
    for path in files.paths(paths):
        values = files.read_json(path, LARGEST, "`dawnbench estimate --output=FILE` writes one")
        with refusing(path, "", ValueError):
            check_fields(values, {"format": int, "date": str, "estimates": list[Any]}, "estimates")
            if values["format"] != FORMAT:
                raise ValueError(f"format should be {FORMAT}, of this version of dawnbench_tf")
        rows: list[Estimate] = []
        for number, facts in enumerate(values["estimates"]):
            with refusing(f"{path}: estimates.{number}", "", ValueError):
                rows.append(Estimate.from_facts(facts))
        machines[str(path)] = {row.recipe: row for row in rows if not row.reason}
    names = [name for own in machines.values() for name in own]
    if not any(names.count(name) > 1 for name in names):
        text = " and ".join(machines)
        raise Refusal(f"{text}: no recipe was estimated on two of these machines")
    if alone := [name for name in names if names.count(name) == 1]:
        terminal.say(f"left out, estimated on one machine alone: {shown(', '.join(alone))}")
    return {
        path: {name: row for name, row in own.items() if names.count(name) > 1}
        for path, own in machines.items()
    }


def format_comparison(machines: Mapping[str, Mapping[str, Estimate]]) -> str:
    """Returns the machines of `compare`, and a line for each recipe and machine, in 80 columns."""
    # A row whose goal, settings, versions or examples differ from the first one's has a "*", and a
    # note that says how.
    lines, notes = [], []
    for number, (path, own) in enumerate(machines.items(), 1):
        row = next(iter(own.values()), Estimate(""))
        price = row.cost_per_hour
        cost = "no price" if price is None else f"{dollars(price)} an hour"
        lines.append(terminal.cut(f"{number}  {shown(path)}: {row.hardware}, {cost}", COLUMNS))
    lines += [
        "",
        f"{'recipe':27} machine {'ms a step':>10} {'to threshold':>15}   speed {'USD':>9}",
    ]
    for name in dict.fromkeys(name for own in machines.values() for name in own):
        rows = {n: own[name] for n, own in enumerate(machines.values(), 1) if name in own}
        (one, first), *_ = rows.items()
        for number, row in rows.items():
            differences = _differences(row, first)
            if differences:
                text = f"* {shown(name)} on {number}, against {one}: {', '.join(differences)}"
                notes.append(terminal.wrapped(text))
            head = terminal.padded(shown(name) if row is first else "", 27)
            ratio = row.examples_per_second / first.examples_per_second
            time_text = _time(row.hours) + " (all)" * row.at_most
            lines.append(
                f"{head} {f'{number}' + '*' * bool(differences):>7} {row.step_ms:10.4g} "
                f"{time_text:>15} {ratio:6.2f}x {_cost(row.usd):>9}"
            )
    if any(row.at_most for own in machines.values() for row in own.values()):
        text = "(all): of all epochs; whether they reach the threshold is not known"
        notes.append(terminal.wrapped(text))
    return "\n".join([*lines, "", *notes]).rstrip()


def _differences(row: Estimate, first: Estimate) -> list[str]:
    """Returns how an estimate's conditions differ from the first machine's."""
    own = {
        "goal": (row.goal, first.goal),
        "examples": tuple("generated" if r.generated else "its data" for r in (row, first)),
    }
    for field, absent in (
        ("changed", "the recipe's"),
        ("options", "the default"),
        ("software", "none"),
    ):
        values = [getattr(each, field) for each in (row, first)]
        for name in (values[0] | values[1]).keys() - {"threshold"}:
            own[name] = tuple(value.get(name, absent) for value in values)
    return [f"{name} {a} instead of {b}" for name, (a, b) in sorted(own.items()) if a != b]


if __name__ == "__main__":
    flags.run(
        main,
        Options,
        files=True,
        replaces=Recipe,
        common=lambda: COMMON,
        tables={"instance": prices.format_table},
    )
