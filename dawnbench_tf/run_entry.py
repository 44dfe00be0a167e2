"""The entry of a run: what was trained, where, how long it took; what may not be ranked, and why.

What may not be ranked is written all the same, with the reasons, to `not_an_entry/`: a miss is a
result too.
"""

import datetime
import re
from dataclasses import replace
from pathlib import Path

from dawnbench_tf import entry as entry_files
from dawnbench_tf import tasks
from dawnbench_tf.clock import DAWNBENCH
from dawnbench_tf.entry import Entry

NOT_RANKED = "not_an_entry"
MS_PER_HOUR = 3_600_000


def training(task, recipe, run, timer, described: dict) -> Entry:
    """Makes the entry of a run.

    Args:
      task, recipe, run: what was trained, how, where.
      timer: its TimeToAccuracy.
      described: "hardware", "tag" and "software", as `hardware.py` finds them.
    """
    software = dict(described["software"])
    framework = f"TensorFlow {software['tensorflow']}"
    parts = timer.clock.parts()
    misc = {
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
    }
    tag = run.hardware_tag or described["tag"]
    columns = tasks.RANKED[task.folder].columns
    return Entry(
        dataset=task.folder,
        kind="train",
        name=name(run.author, recipe.model, tag, framework),
        author=run.author,
        author_email=run.author_email,
        framework=framework,
        model=recipe.model,
        hardware=run.hardware or described["hardware"],
        timestamp=datetime.date.today(),
        cost_per_hour=run.cost_per_hour,
        rows=tuple(tuple(float(row[column]) for column in columns) for row in timer.rows),
        misc=misc,
    )


def inference(task, recipe, run, found, score: dict, described: dict, misc: dict) -> Entry:
    """Makes the entry of a run's latency.

    Args:
      task, recipe: of the run.
      run: author, author_email, hardware, hardware_tag, cost_per_hour, of an `infer.Options`.
      found: `latency.Latencies` of the whole test.
      score: of the outputs that were timed.
      described: "hardware", "tag" and "software", as `hardware.py` finds them.
      misc: how it was run: runtime, threads and the like.
    """
    software = dict(described["software"])
    framework = f"TensorFlow {software['tensorflow']}"
    price, tag = run.cost_per_hour, run.hardware_tag or described["tag"]
    milliseconds = found.mean * 1e3
    figures = {f"p{p}Ms": round(found.percentile(p) * 1e3, 6) for p in (50, 90, 99)}
    return Entry(
        dataset=task.folder,
        kind="inference",
        name=name(
            run.author, recipe.model, tag, f"{framework.removesuffix('.0')} {misc['runtime']}"
        ),
        author=run.author,
        author_email=run.author_email,
        framework=f"{framework}, {misc['runtime']} {misc['numerics']}",
        model=recipe.model,
        hardware=run.hardware or described["hardware"],
        timestamp=datetime.date.today(),
        latency=milliseconds,
        cost=None if price is None else price * milliseconds / MS_PER_HOUR,
        metric=score[task.metric],
        misc={
            "gitRevision": software.pop("gitRevision"),
            "versions": software,
            "recipe": recipe.values(),
            "benchmark": task.benchmark,
            "testExamples": task.test_examples,
            "batchSize": 1,
            "passes": len(found.seconds),
            "warmUpCalls": found.warm_up,
            "confidenceMs": round(found.interval() * 1e3, 6),
            "loopOverheadMs": round(found.overhead * 1e3, 6),
            **figures,
            **misc,
        },
    )


def name(author: str, model: str, hardware_tag: str, framework: str) -> str:
    """Name of an entry's files, without suffix.

    >>> name("Ada Lovelace", "resnet56_tf", "1 V100", "TensorFlow 2.20.0")
    'ada-lovelace_resnet56-tf_1-v100_tensorflow-2.20'
    """
    return "_".join(map(_slug, (author, model, hardware_tag, framework)))


def _slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", text.lower().removesuffix(".0")).strip("-.")


def write(folder: Path, entry: Entry, reasons: tuple[str, ...] = ()) -> tuple[Path, list[str]]:
    """Writes a run's entry below `folder`: the JSON's path, and why it may not be ranked, if so.

    `reasons` are such as the entry itself does not show.
    """
    reasons = [*reasons, *(violation.text for violation in entry_files.violations(entry))]
    if not reasons:
        return entry_files.write(folder, entry), []
    kept = replace(entry, misc={**entry.misc, "violations": reasons})
    return entry_files.put(folder / NOT_RANKED, kept), reasons


def outcome(task, path: Path, reasons: list[str]) -> str:
    """What `write` has written, in one line."""
    if reasons:
        return f"not an entry ({'; '.join(reasons)}): {path}"
    return f"{'entry' if task.benchmark else 'entry of an embedded task, ranked apart'}: {path}"


def summary(entry: Entry, timer) -> str:
    """What came of a run, in one line: of its own threshold, which need not be the data set's."""
    clock, metric = entry.misc["clockSeconds"], entry.ranking.metric
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in clock.items())
    whole = f"{sum(clock.values()):.1f} s in all ({parts})"
    reached = timer.first_hit
    if reached is None:
        best = max((row[metric] for row in timer.rows), default=0)
        counted = sum(clock.get(part, 0) for part in DAWNBENCH)
        spent = f"{counted:.1f} s on the clock, {whole}"
        return f"did not converge: best {metric} {best:g} of {timer.threshold:g}; {spent}"
    price = entry.cost_per_hour
    cost = "" if price is None else f", ${reached['hours'] * price:.4f}"
    seconds = reached["hours"] * 3600
    head = f"reached {metric} {reached[metric]:g} in epoch {reached['epoch']:g}"
    return f"{head}: {seconds:.1f} s on the clock{cost}, {whole}"
