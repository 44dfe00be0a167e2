"""A study's folder, read back and reported: as text, JSON and CSV; two of them side by side."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import estimates, findings, grid, runner, summaries
from dawnbench_tf.studies.findings import seconds
from dawnbench_tf.studies.summaries import Results, Setting


def load(folder: Path) -> Results:
    """What a study has come to so far. Raises Refusal if the folder holds none, or no run yet."""
    study = runner.read(folder)
    planned = grid.plan(study)
    by_name = runner.finished(folder, planned)
    settings = summaries.settings_of(by_name.values())
    if not settings:
        raise Refusal(f"{folder}: no run has ended yet; `dawnbench study` goes on with it")
    thresholds = summaries.thresholds_of(study, settings)
    by_threshold = {t: summaries.summarize(settings, t) for t in thresholds}
    return Results(study, len(planned), settings, thresholds, by_threshold)


def text(results: Results, command: str) -> str:
    """Findings, tables and misses, for people."""
    parts = [findings.sentences(results)]
    for threshold in results.thresholds:
        parts.append(list(_table(results, threshold)))
    missed = summaries.misses(results.settings, results.thresholds[-1])
    if missed:
        parts.append([f"{name}, seed {o.seed}: {o.status}: {o.reason}" for name, o in missed])
    parts += [[text] for text in findings.evidence(results, command)]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _table(results, threshold) -> Iterator[str]:
    yield f"{'to ' + results.metric + f' {threshold:g}':32} reached    median  speed-up  epochs"
    for row in results.by_threshold[threshold]:
        never = not math.isfinite(row.median_seconds)
        speed_up = f"{row.speed_up:.2f}" if row.speed_up else ""
        yield (
            f"{row.setting[:32]:32} {row.reached:3} of {row.runs:<3}"
            f"{'-' if never else seconds(row.median_seconds):>8}  {speed_up:>8}  "
            f"{'-' if never else format(row.epochs, '.3g'):>6}"
        )


def values(results: Results) -> dict[str, Any]:
    """All of it as JSON has it; what is infinite is null there, as is what is not known."""
    return {
        "study": results.study.values(),
        "metric": results.metric,
        "findings": findings.sentences(results),
        "summaries": [
            _plain(r._asdict()) for t in results.thresholds for r in results.by_threshold[t]
        ],
        "runs": [
            _plain({"setting": setting.name, **outcome._asdict()})
            for setting in results.settings
            for outcome in setting.outcomes
        ],
    }


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


COLUMNS = (
    "setting",
    "seed",
    "status",
    "reached",
    "epoch",
    "score",
    "seconds",
    "evaluation",
    "reason",
)


def write_csv(results: Results, file: TextIO) -> None:
    """A row for each run: of the row that ended it, seconds on the clock and of evaluation."""
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for setting in results.settings:
        for outcome in setting.outcomes:
            last = outcome.rows[-1] if outcome.rows else {}
            reached = outcome.row_at(outcome.goal) is not None
            figures = (last.get("epoch"), last.get(outcome.metric), round(outcome.seconds, 1))
            evaluation = round(outcome.clock.get("eval", 0.0), 1)
            row = (setting.name, outcome.seed, outcome.status, int(reached), *figures, evaluation)
            writer.writerow((*row, outcome.reason))


def comparison(ours: Results, theirs: Results, names: tuple[str, str]) -> list[str]:
    """The second study against the first, setting by setting, at the thresholds that both have.

    Args:
      ours, theirs: the two.
      names: what to call them.

    Raises:
      Refusal: they have no metric, no threshold or no setting in common.
    """
    shared = [t for t in ours.thresholds if t in theirs.thresholds]
    if ours.metric != theirs.metric or not shared:
        raise Refusal(
            f"report: {ours.study.name} and {theirs.study.name} have no threshold of a metric in "
            "common; compare studies of one task at one threshold"
        )
    pairs = _pairs(ours.settings, theirs.settings)
    if not pairs:
        raise Refusal(
            f"report: {ours.study.name} and {theirs.study.name} have no setting in common"
        )
    return [_compared(pair, names, ours.metric, t) for t in shared for pair in pairs]


def _pairs(ours: list[Setting], theirs: list[Setting]) -> list[tuple[Setting, Setting]]:
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    by_labels = {setting.labels: setting for setting in theirs}
    return [(s, by_labels[s.labels]) for s in ours if s.labels in by_labels]


def _compared(pair, names, metric, threshold) -> str:
    first, second = (setting.times(threshold) for setting in pair)
    medians = [estimates.median_time(times)[0] for times in (first, second)]
    setting = f"{pair[0].name}: " if pair[0].name != "baseline" else ""
    said = " and ".join(
        f"{name} {seconds(middle)} ({len(times.reached)} of {len(times.seconds)} runs)"
        for name, middle, times in zip(names, medians, (first, second), strict=True)
    )
    faster = estimates.faster(second.seconds, first.seconds)
    speed_up, limits = estimates.ratio(second.seconds, first.seconds)
    text = f"{setting}to {metric} {threshold:g}, {said}."
    if math.isfinite(speed_up):
        between = f" (95 %: {limits[0]:.2f} to {limits[1]:.2f})" if limits else ""
        text += f" {names[1]} is {speed_up:.2f} times as fast{between}."
    p = estimates.p_value(second.seconds, first.seconds)
    text += f" A run of {names[1]} takes less time with probability {faster:.2f}, p = {p:.2g}; "
    return f"{text}{findings.apart(estimates.trials_needed(faster))}."
