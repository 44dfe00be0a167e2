"""Makes and writes the training and inference entries of a run.

An entry that breaks rules is written to `not_an_entry/` with the reasons: a miss is a result too.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unicodedata import normalize

from dawnbench_tf import files
from dawnbench_tf.clock import DAWNBENCH, seconds_of
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.run_folder import NOT_RANKED
from dawnbench_tf.runs import Run
from dawnbench_tf.submission import rules
from dawnbench_tf.submission.entry import Entry, check, write_entry
from dawnbench_tf.tasks import Task
from dawnbench_tf.terminal import dollars

# Keys of misc that keep their values when the entry of a finished run is written again.
MEASURED = ("strategy", "dataFormat", "stepsPerExecution", "jitCompile", "classAccuracy")


def training_entry(
    run: Run,
    options: RunOptions,
    machine: Machine,
    examples_per_second: float | None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Entry:
    """Makes the entry of a training run; `facts` are further keys of misc."""
    columns = run.recipe.task_row.columns
    rows = tuple(tuple(float(row[column]) for column in columns) for row in run.rows)
    misc = {
        "seed": run.recipe.seed,
        "strategy": options.strategy,
        "dataFormat": options.data_format,
        "stepsPerExecution": options.steps_per_execution,
        "examplesPerSecond": examples_per_second,
        "data": {},
        **facts,
        "clockSeconds": {name: round(seconds, 3) for name, seconds in run.clock.items()},
        "clockCounts": sorted(DAWNBENCH),
        rules.CHECKSUM: rules.checksum(rows),
    }
    credits = options.credits
    price = credits.cost_per_hour
    return _entry(run.recipe, "train", credits, machine, misc, cost_per_hour=price, rows=rows)


def inference_entry(
    recipe: Recipe,
    credits: Credits,
    machine: Machine,
    latency_ms: float,
    score: float,
    facts: Mapping[str, Any],
) -> Entry:
    """Makes the inference entry of a run, timed one example at a time."""
    # `facts` are further keys of misc; "runtime" and "precision" are needed.
    misc = {"batchSize": 1, **facts, rules.CHECKSUM: rules.checksum((latency_ms, score))}
    entry = _entry(recipe, "inference", credits, machine, misc, latency=latency_ms, score=score)
    return entry if credits.cost_per_hour is None else with_price(entry, credits.cost_per_hour)


def _entry(
    recipe: Recipe,
    phase: str,
    credits: Credits,
    machine: Machine,
    misc: dict[str, Any],
    **figures: Any,
) -> Entry:
    """Makes an entry with what both phases state, and the `figures` of one."""
    task, versions = recipe.task_row, dict(machine.software)
    framework = f"TensorFlow {versions['tensorflow']}"
    if phase == "inference":
        framework += f", {misc['runtime']} {misc['precision']}"
    common = {
        "gitRevision": versions.pop("gitRevision"),
        "versions": versions,
        "recipe": recipe.values(),
        "testExamples": task.test_examples,
        "benchmark": task.benchmark,
    }
    instance = f" ({credits.instance})" if credits.instance else ""
    tag = credits.hardware_tag or machine.tag
    return Entry(
        dataset=task.folder,
        phase=phase,
        name=entry_name(credits.author, recipe.model, tag, framework),
        author=credits.author,
        author_email=credits.author_email,
        framework=framework,
        model=recipe.model,
        hardware=credits.hardware or f"{machine.hardware}{instance}",
        timestamp=datetime.date.today(),
        misc=common | misc,
        other={"usedBlacklist": not recipe.skip_blacklisted} if task.blacklisted else None,
        **figures,
    )


def with_price(entry: Entry, cost_per_hour: float) -> Entry:
    """Returns the entry at another price of its hardware, with the costs that follow from it."""
    if entry.phase == "train":
        return replace(entry, cost_per_hour=cost_per_hour)
    if entry.latency is None:
        raise Refusal(f"{entry.name}: has no latency, so a price gives no cost")
    cost = cost_per_hour * entry.latency / rules.MS_PER_HOUR
    return replace(entry, cost=cost, misc={**(entry.misc or {}), "costPerHour": cost_per_hour})


def entry_name(author: str, model: str, hardware_tag: str, framework: str) -> str:
    """Returns the name of an entry's files, without suffix.

    >>> entry_name("Ada Lovelace", "resnet56_tf", "1 V100", "TensorFlow 2.20.0")
    'ada-lovelace_resnet56-tf_1-v100_tensorflow-2.20'
    """
    texts = (normalize("NFKC", text) for text in (author, model, hardware_tag, framework))
    # 2.20.0 -> 2.20
    short = (re.sub(r"(\d)\.0(?![\d.])", r"\1", text.lower()) for text in texts)
    words = (files.hyphenated(text) or "unnamed" for text in short)
    return "_".join(word.encode()[:60].decode(errors="ignore") for word in words)


def write(folder: Path, entry: Entry) -> tuple[Path, list[str]]:
    """Writes a run's entry to the run's folder, or to `not_an_entry/` there if it breaks rules."""
    # A training entry replaces earlier ones of the same run: those under another name or with fewer
    # rows. Returns the path of the JSON, and the reasons why the entry may not be ranked.
    reasons = [violation.text for violation in check(entry)]
    if reasons:
        entry = replace(entry, misc={**(entry.misc or {}), "violations": reasons})
    path = write_entry(folder / NOT_RANKED if reasons else folder, entry, unchecked=True)
    table = path.with_suffix(".tsv")
    for root in (folder, folder / NOT_RANKED) if entry.phase == "train" else ():
        for other in (root / entry.dataset / "train").glob("*.tsv"):
            # The TSV of an earlier entry of the run is the beginning of the new one's.
            if other != table and table.read_bytes().startswith(other.read_bytes()):
                files.discard(other.with_suffix(".json"))
                files.discard(other)
    return path, reasons


def describe_entry(task: Task, path: Path, reasons: list[str]) -> str:
    """Returns one line that says what `write` wrote: an entry or not, reasons, path."""
    if reasons:
        return f"not an entry ({'; '.join(reasons)}): {path}"
    apart = "" if task.benchmark else " of a task outside DAWNBench, ranked apart"
    return f"entry{apart}: {path}"


def describe_run(run: Run, cost_per_hour: float | None) -> str:
    """Returns a line on a run: whether it reached its recipe's goal, times by clock part, cost."""
    metric, row = run.recipe.task_row.metric, run.first_hit
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run.clock.items())
    whole = f"{sum(run.clock.values()):.1f} s in all ({parts})"
    if row is None:
        best = max((row[metric] for row in run.rows), default=0)
        spent = f"{seconds_of(run.clock):.1f} s on the clock, {whole}"
        return f"did not converge: best {metric} {best:.10g} of {run.recipe.goal:g}; {spent}"
    cost = "" if cost_per_hour is None else f", {dollars(row['hours'] * cost_per_hour)}"
    head = f"reached {metric} {row[metric]:g} in epoch {row['epoch']:g}"
    return f"{head}: {row.seconds:.1f} s on the clock{cost}, {whole}"
