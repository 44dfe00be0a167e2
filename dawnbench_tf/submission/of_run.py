"""The entry of a run: what was trained, where, how long it took; what may not be ranked, and why.

What may not be ranked is written all the same, with the reasons, to `not_an_entry/`: a miss is a
result too.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import files
from dawnbench_tf.clock import DAWNBENCH, seconds_of
from dawnbench_tf.machine import Machine
from dawnbench_tf.money import dollars
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.runs import NOT_RANKED, Run
from dawnbench_tf.submission import checksums
from dawnbench_tf.submission.entry import Entry, check, write_entry
from dawnbench_tf.submission.field_rules import MS_PER_HOUR
from dawnbench_tf.tasks import Task


def training(
    run: Run,
    options: RunOptions,
    machine: Machine,
    examples_per_second: float | None,
    facts: Mapping[str, Any] | None = None,
) -> Entry:
    """Makes the entry of a training run.

    Args:
      run: what was trained, its rows and its clock.
      options: where and how it was trained, and who says so.
      machine: what was found of it.
      examples_per_second: of training steps, if that was measured.
      facts: what else is known, for misc: where the data came from, what was used.
    """
    task = run.recipe.task_row
    versions = dict(machine.software)
    misc = {
        "gitRevision": versions.pop("gitRevision"),
        "versions": versions,
        "seed": run.recipe.seed,
        "recipe": run.recipe.values(),
        "strategy": options.strategy,
        "dataFormat": options.data_format,
        "stepsPerExecution": options.steps_per_execution,
        "examplesPerSecond": examples_per_second,
        "data": {},
        **(facts or {}),
        "testExamples": task.test_examples,
        "benchmark": task.benchmark,
        "clockSeconds": {name: round(seconds, 3) for name, seconds in run.clock.items()},
        "clockCounts": sorted(DAWNBENCH),
    }
    framework = f"TensorFlow {versions['tensorflow']}"
    rows = tuple(tuple(float(row[column]) for column in task.columns) for row in run.rows)
    misc[checksums.KEY] = checksums.of_training(rows)
    return replace(
        _entry(run.recipe, "train", options.credits, machine, framework),
        cost_per_hour=options.credits.cost_per_hour,
        rows=rows,
        misc=misc,
    )


class Timing(NamedTuple):
    """A trained model's latency, as its entry states it."""

    runtime: str  # what ran the model
    precision: str
    latency_ms: float  # mean for one example of the whole test
    score: float  # of the outputs that were timed, in the task's metric
    facts: dict[str, Any]  # what else was measured and set, for misc


def inference(recipe: Recipe, credits: Credits, machine: Machine, timing: Timing) -> Entry:
    """Makes the entry of a trained run's latency.

    Args:
      recipe: of the run.
      credits: who says so, and the price.
      machine: what was found of it.
      timing: what was measured.
    """
    runtime, precision, latency_ms, score, facts = timing
    task, price = recipe.task_row, credits.cost_per_hour
    versions = dict(machine.software)
    framework = f"TensorFlow {versions['tensorflow']}"
    entry = replace(
        _entry(recipe, "inference", credits, machine, f"{framework}, {runtime} {precision}"),
        latency=latency_ms,
        score=score,
        misc={
            "gitRevision": versions.pop("gitRevision"),
            "versions": versions,
            "recipe": recipe.values(),
            "benchmark": task.benchmark,
            "testExamples": task.test_examples,
            "batchSize": 1,
            "runtime": runtime,
            "precision": precision,
            **facts,
            checksums.KEY: checksums.of_inference(latency_ms, score),
        },
    )
    return entry if price is None else priced(entry, price)


def priced(entry: Entry, cost_per_hour: float) -> Entry:
    """The entry at another price of its hardware, in USD per hour: all that follows from it."""
    if entry.phase == "train":
        return replace(entry, cost_per_hour=cost_per_hour)
    if entry.latency is None:
        raise Refusal(f"{entry.name}: has no latency, so a price gives no cost")
    cost = cost_per_hour * entry.latency / MS_PER_HOUR
    return replace(entry, cost=cost, misc={**(entry.misc or {}), "costPerHour": cost_per_hour})


def _entry(recipe, phase, credits, machine, framework):
    tag = credits.hardware_tag or machine.tag
    return Entry(
        dataset=recipe.task_row.folder,
        phase=phase,
        name=name(credits.author, recipe.model, tag, framework),
        author=credits.author,
        author_email=credits.author_email,
        framework=framework,
        model=recipe.model,
        hardware=credits.hardware or _hardware(machine, credits.instance),
        timestamp=datetime.date.today(),
        other=_used_blacklist(recipe),
    )


def _hardware(machine, instance):
    """Returns the description of the machine, with the name of its cloud instance if given."""
    return f"{machine.hardware} ({instance})" if instance else machine.hardware


def _used_blacklist(recipe):
    """ImageNet's entries say whether they were tested on the blacklisted images too."""
    task = recipe.task_row
    return {"usedBlacklist": not recipe.skip_blacklisted} if task.blacklisted else None


def name(author: str, model: str, hardware_tag: str, framework: str) -> str:
    """Name of an entry's files, without suffix.

    >>> name("Ada Lovelace", "resnet56_tf", "1 V100", "TensorFlow 2.20.0")
    'ada-lovelace_resnet56-tf_1-v100_tensorflow-2.20'
    """
    return "_".join(map(_slug, (author, model, hardware_tag, framework)))


def _slug(text):
    text = re.sub(r"(\d)\.0(?![\d.])", r"\1", text.lower())  # 2.20.0 is 2.20
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")[:80]


def write(folder: Path, entry: Entry) -> tuple[Path, list[str]]:
    """Writes a run's entry below its folder, or below `not_an_entry/` there.

    Args:
      folder: of the run.
      entry: what to write. A training's takes the place of those that the run left before, by
        another author's name or with fewer rows.

    Returns:
      Path of the JSON, and all reasons why it may not be ranked; [] if it may.
    """
    why_not = [violation.text for violation in check(entry)]
    if not why_not:
        path = write_entry(folder, entry)
    else:
        annotated = replace(entry, misc={**(entry.misc or {}), "violations": why_not})
        path = write_entry(folder / NOT_RANKED, annotated, unchecked=True)
    if entry.phase == "train":
        _remove_earlier(folder, path.with_suffix(".tsv"))
    return path, why_not


def _remove_earlier(folder, table):
    """Removes what the same run left as entries before, under other names or with fewer rows.

    Theirs are the first rows of the new one's `table`.
    """
    rows = table.read_bytes()
    for root in (folder, folder / NOT_RANKED):
        for other in (root / table.parent.parent.name / "train").glob("*.tsv"):
            if other != table and rows.startswith(other.read_bytes()):
                files.discard(other.with_suffix(".json"))
                files.discard(other)


def outcome(task: Task, path: Path, why_not: list[str]) -> str:
    """What `write` has written, in one line."""
    if why_not:
        return f"not an entry ({'; '.join(why_not)}): {path}"
    return f"{'entry' if task.benchmark else 'entry of an embedded task, ranked apart'}: {path}"


def summary(run: Run, cost_per_hour: float | None) -> str:
    """What came of a run, in one line: of its own goal, which need not be its task's threshold."""
    metric, row = run.recipe.task_row.metric, run.first_hit
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run.clock.items())
    whole = f"{sum(run.clock.values()):.1f} s in all ({parts})"
    if row is None:
        best = max((row[metric] for row in run.rows), default=0)
        counted = seconds_of(run.clock)
        spent = f"{counted:.1f} s on the clock, {whole}"
        return f"did not converge: best {metric} {best:g} of {run.recipe.goal:g}; {spent}"
    cost = "" if cost_per_hour is None else f", {dollars(row['hours'] * cost_per_hour)}"
    seconds = row["hours"] * 3600
    head = f"reached {metric} {row[metric]:g} in epoch {row['epoch']:g}"
    return f"{head}: {seconds:.1f} s on the clock{cost}, {whole}"
