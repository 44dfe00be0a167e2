"""Entries: the JSON and TSV pair that DAWNBench ranks, in the published form and naming.

`Dataset/train/AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json`, and its .tsv with a row per evaluation.
What may not be ranked is written all the same, with the reasons, to `not_an_entry/`: a miss is a
result too.
"""

import datetime
import json
import re
from dataclasses import dataclass
from pathlib import Path

from dawnbench_tf import files
from dawnbench_tf.clock import DAWNBENCH
from dawnbench_tf.tasks import Task

NOT_RANKED = "not_an_entry"


@dataclass(frozen=True)
class TrainingEntry:
    """A training run as published: the JSON's fields, and the TSV's rows."""

    task: Task
    name: str  # of both files, without suffix
    threshold: float
    fields: dict
    rows: list[dict]

    def violations(self) -> list[str]:
        """Why this may not be ranked; empty if it may."""
        found = []
        if self.fields["misc"]["recipe"]["synthetic"]:
            found.append("trained on synthetic data")
        if self.first_hit() is None:
            found.append(f"{self.task.metric} never reached {self.task.threshold:g}")
        return found

    def first_hit(self) -> dict | None:
        """The first row at the task's threshold, or past it: its hours are the entry's time."""
        return next(
            (row for row in self.rows if row[self.task.metric] >= self.task.threshold), None
        )


def training(task, recipe, run, timer, described: dict) -> TrainingEntry:
    """Makes the entry of a run.

    Args:
      task, recipe, run: what was trained, how, where.
      timer: its TimeToAccuracy.
      described: "hardware", "tag" and "software", as `hardware.py` finds them.
    """
    software = dict(described["software"])
    framework = f"TensorFlow {software['tensorflow']}"
    parts = timer.clock.parts()
    fields = {
        "version": "v1.0",
        "author": run.author,
        "authorEmail": run.author_email,
        "framework": framework,
        "model": recipe.model,
        "hardware": run.hardware or described["hardware"],
        "costPerHour": run.cost_per_hour,
        "timestamp": datetime.date.today().isoformat(),
        "misc": {
            "gitRevision": software.pop("gitRevision"),
            "versions": software,
            "seed": recipe.seed,
            "recipe": recipe.values(),
            "strategy": run.strategy,
            "dataFormat": run.data_format,
            "stepsPerExecution": run.steps_per_execution,
            "examplesPerSecond": timer.examples_per_second,
            "testExamples": task.test_examples,
            "benchmark": task.benchmark,
            "clockSeconds": {name: round(seconds, 3) for name, seconds in parts.items()},
            "clockCounts": sorted(DAWNBENCH),
        },
    }
    if run.cost_per_hour is None:
        del fields["costPerHour"]  # the rules: left out, never null
    name = "_".join(
        map(_slug, (run.author, recipe.model, run.hardware_tag or described["tag"], framework))
    )
    return TrainingEntry(task, name, timer.threshold, fields, timer.rows)


def _slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", text.lower().removesuffix(".0")).strip("-.")


def write(folder: Path, entry: TrainingEntry) -> Path:
    """Writes an entry's two files below `folder`; returns the JSON's path."""
    violations = entry.violations()
    home = folder / NOT_RANKED if violations else folder / entry.task.folder / "train"
    fields = (
        {**entry.fields, "misc": {**entry.fields["misc"], "violations": violations}}
        if violations
        else entry.fields
    )
    files.make_folder(home)
    columns = ("epoch", "hours", entry.task.metric)
    lines = [
        "\t".join(columns),
        *("\t".join(str(row[column]) for column in columns) for row in entry.rows),
    ]
    files.write_whole(home / f"{entry.name}.tsv", "\n".join(lines) + "\n")
    path = home / f"{entry.name}.json"
    files.write_whole(path, json.dumps(fields, indent=4) + "\n")
    return path


def summary(entry: TrainingEntry, reached: dict | None) -> str:
    """What came of a run, in one line; `reached` is the row that met the run's own threshold."""
    clock, metric = entry.fields["misc"]["clockSeconds"], entry.task.metric
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in clock.items())
    whole = f"{sum(clock.values()):.1f} s in all ({parts})"
    if reached is None:
        best = max((row[metric] for row in entry.rows), default=0)
        counted = sum(clock.get(part, 0) for part in DAWNBENCH)
        spent = f"{counted:.1f} s on the clock, {whole}"
        return f"did not converge: best {metric} {best:g} of {entry.threshold:g}; {spent}"
    price = entry.fields.get("costPerHour")
    cost = "" if price is None else f", ${reached['hours'] * price:.4f}"
    seconds = reached["hours"] * 3600
    head = f"reached {metric} {reached[metric]:g} in epoch {reached['epoch']:g}"
    return f"{head}: {seconds:.1f} s on the clock{cost}, {whole}"
