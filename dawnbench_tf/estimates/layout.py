"""Tables of estimates for people, in 80 columns."""

import math
import textwrap
from collections.abc import Sequence

from dawnbench_tf.estimates.prediction import Estimate
from dawnbench_tf.money import dollars

COLUMNS = 80


def format_table(rows: Sequence[Estimate]) -> str:
    """Returns the text of `dawnbench estimate`: two lines for each recipe, notes below."""
    lines = [
        f"{'recipe':27} {'epochs':>8} {'reached':>8} {'on the clock':>13} {'95 %':>20}",
        f"{'  ms a step':>11} {'examples/s':>12} {'peak':>5} {'memory':>9} {'start':>8}"
        f" {'evaluation':>11} {'in all':>9} {'USD':>8}",
        "-" * COLUMNS,
    ]
    for row in rows:
        lines += format_row(row)
    return "\n".join([*lines, *_notes(rows)])


def format_row(row: Estimate) -> list[str]:
    """Returns the lines of one estimate."""
    if row.reason:
        return _wrap(f"{row.recipe}: {row.reason}")
    epochs = f"<={row.epochs:g}" if row.at_most else _range(row)
    share = f"{row.reached} of {row.runs}" if row.runs else "unknown"
    most = "<=" if row.at_most else ""
    interval = " to ".join(format_hours(bound) for bound in row.hours_interval)
    peak = "-" if row.share_of_peak is None else f"{row.share_of_peak:.0%}"
    memory = max(row.process_gib, row.device_gib or 0.0)
    evaluation = "-" if row.evaluation_seconds is None else f"{row.evaluation_seconds:.1f} s"
    cost = "-" if row.usd is None else most + dollars(row.usd)
    name = row.recipe + "*" * bool(row.changed)
    lines = [
        f"{name:27} {epochs:>8} {share:>8} {most + format_hours(row.hours):>13} {interval:>20}",
        f"{row.step_ms:11.4g} {row.examples_per_second:12,.4g} {peak:>5} {memory:5.1f} GiB"
        f" {row.start_seconds:6.1f} s {evaluation:>11}"
        f" {format_hours(row.wall_hours):>9} {cost:>8}",
    ]
    if len(row.sides) > 1:
        parts = zip(row.sides, row.side_ms, strict=True)
        lines += _wrap(
            "of these " + ", ".join(f"{ms:.4g} ms at {side} pixels" for side, ms in parts)
        )
    return lines


def _range(row: Estimate) -> str:
    """Returns the epochs of the evidence: median, and fewest to most if they differ."""
    if not row.epochs_range:
        return "never"
    low, high = row.epochs_range
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def format_hours(hours: float | None) -> str:
    """Formats hours as seconds, minutes or hours; infinity as "never", None as "-".

    >>> format_hours(0.0019), format_hours(0.25), format_hours(7.5), format_hours(float("inf"))
    ('6.8 s', '15.0 min', '7.50 h', 'never')
    """
    if hours is None:
        return "-"
    if not math.isfinite(hours):
        return "never"
    seconds = hours * 3600
    if seconds < 300:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{hours:,.2f} h"


def _notes(rows: Sequence[Estimate]) -> list[str]:
    """Returns what a reader has to know of these rows."""
    notes = [""]
    done = [row for row in rows if not row.reason]
    if done:
        notes += _wrap(
            "ms a step: median. peak: share of the device's. start: load, build and compile, on "
            "the clock. in all: with imports and evaluations, off the clock.",
        )
    if any(row.generated for row in done):
        names = ", ".join(row.recipe for row in done if row.generated)
        notes += _wrap(
            f"On generated examples, without the time to load the data: {names}. "
            "--data_dir times them on the data set."
        )
    if any(row.at_most for row in done):
        notes += _wrap("<=: no run of it was measured; all its epochs are counted.")
    for row in done:
        if row.changed:
            text = f"* {row.recipe} with another {', '.join(row.changed)}"
            notes += _wrap(f"{text}: epochs are those of the unchanged recipe.")
    return notes if notes[1:] else []


def _wrap(text: str) -> list[str]:

    return textwrap.wrap(text, COLUMNS - 2, initial_indent="", subsequent_indent="  ")
