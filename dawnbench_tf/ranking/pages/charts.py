"""Coordinates of charts for the SVG template: lines, dots and ticks.

The template draws them, so that they follow the page's colours and thousands take seconds.
"""

import datetime
import math
from collections.abc import Iterable
from typing import NamedTuple

from matplotlib.ticker import MaxNLocator

from dawnbench_tf.ranking.results import Result
from dawnbench_tf.ranking.tables import Figure, Table, records

WIDTH, HEIGHT = 480, 276
LEFT, RIGHT, TOP, BOTTOM = 70, 14, 28, 42  # margins, for the labels
BOX = {  # plot area; the template draws axes and labels around it
    "left": LEFT,
    "right": WIDTH - RIGHT,
    "bottom": HEIGHT - BOTTOM,
    "width": WIDTH,
    "height": HEIGHT,
}
_TICKS = MaxNLocator(5, steps=[1, 2, 5, 10])
_DURATIONS = (  # tick values in seconds, and their labels
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (36000, "10 h"),
    (86400, "1 day"), (864000, "10 days"), (8640000, "100 days"),
)  # fmt: skip


class Chart(NamedTuple):
    """A chart for the SVG template; coordinates in SVG units, y downwards."""

    title: str
    description: str  # text alternative
    x_label: str
    y_label: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    line: str  # points of a polyline
    dots: list[tuple[float, float, str, str]]  # x, y, class, label
    threshold: float | None  # y of the threshold's line


class _Axis(NamedTuple):
    low: float
    high: float
    start: float  # coordinate of low
    end: float  # coordinate of high

    def position(self, value: float) -> float:
        """Returns the coordinate of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return round(self.start + share * (self.end - self.start), 1)


def _x(low: float, high: float) -> _Axis:
    return _Axis(low, high, LEFT, WIDTH - RIGHT)


def _y(low: float, high: float) -> _Axis:
    return _Axis(low, high, HEIGHT - BOTTOM, TOP)


def _polyline(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in pairs)


def curve_chart(result: Result) -> Chart | None:
    """Returns the chart of a training entry's metric over time; None without a curve.

    A dot marks the first row that reaches the threshold.
    """
    if not result.curve:
        return None
    task = result.task
    last = result.curve[-1][0]
    scale, unit = next(
        (scale, unit)
        for least, scale, unit in ((2, 1, "hours"), (2 / 60, 60, "minutes"), (0, 3600, "seconds"))
        if last >= least
    )
    values = [value for _, value in result.curve]
    low = min(task.threshold, *values)
    span = (max(task.threshold, *values) - low) or 1
    x, y = _x(0, last * scale), _y(max(0, low - 0.05 * span), low + 1.08 * span)
    points = [(x.position(hours * scale), y.position(value)) for hours, value in result.curve]
    dots = []
    if result.hours is not None and result.score is not None:
        label = f"{result.score:g} after {result.hours * scale:.4g} {unit}"
        dots = [(x.position(result.hours * scale), y.position(result.score), "hit", label)]
    course = f"{task.metric} from {values[0]:g} to {values[-1]:g}, best {max(values):g}"
    reached = f"; {dots[0][3]}" if dots else "; the threshold was not reached"
    return Chart(
        title=f"{task.metric} over time",
        description=f"{course}, threshold {task.threshold:g}{reached}.",
        x_label=f"{unit} of training",
        y_label=task.metric,
        x_ticks=[(x.position(tick), f"{tick:g}") for tick in _ticks(x)],
        y_ticks=[(y.position(tick), f"{tick:g}") for tick in _ticks(y)],
        line=_polyline(points),
        dots=dots,
        threshold=y.position(task.threshold),
    )


def _ticks(axis: _Axis) -> list[float]:
    return [
        tick for tick in _TICKS.tick_values(axis.low, axis.high) if axis.low <= tick <= axis.high
    ]


def record_chart(table: Table) -> Chart:
    """Returns the chart of a table's record over the years: entries as dots, record as a line."""
    figure, best = table.figure, records(table)
    shown = [  # on a logarithmic axis
        (row, _day(row.date), math.log10(_seconds(figure, row)))
        for row in table.rows
        if figure.value(row) > 0
    ]
    days = [day for _, day, _ in shown] or [_day("2020-01-01")]
    logs = [log for _, _, log in shown] or [0.0]
    x = _x(min(days) - 30, max(days) + 30)
    y = _y(min(logs) - 0.2, max(logs) + 0.2)
    dots = [
        (
            x.position(day),
            y.position(log),
            "record" if row in best else "entry",
            _label(figure, row),
        )
        for row, day, log in shown
    ]
    steps: list[tuple[float, float]] = []
    for row in (row for row in best if figure.value(row) > 0):
        point = x.position(_day(row.date)), y.position(math.log10(_seconds(figure, row)))
        # The record stays level until the date of the next one.
        steps += [(point[0], steps[-1][1]), point] if steps else [point]
    if steps:
        steps.append((x.position(x.high), steps[-1][1]))
    first, last = best[0], best[-1]
    return Chart(
        title=f"Record of {table.dataset} {figure.name} over the years",
        description=(
            f"The record fell from {figure.format(figure.value(first))} ({first.date}) "
            f"to {figure.format(figure.value(last))} ({last.date}); {len(best)} records in all."
        ),
        x_label="date of the entry",
        y_label=figure.name,
        x_ticks=[(x.position(day), text) for day, text in _years(x)],
        y_ticks=[(y.position(log), text) for log, text in _levels(figure, y)],
        line=_polyline(steps),
        dots=dots[-2000:],
        threshold=None,
    )


def _day(date: str) -> int:
    return datetime.date.fromisoformat(date).toordinal()


def _seconds(figure: Figure, row: Result) -> float:
    """Returns a figure in the unit of its axis: training times in seconds."""
    return figure.value(row) * 3600 if figure.name == "training time" else figure.value(row)


def _label(figure: Figure, row: Result) -> str:
    return f"{figure.format(figure.value(row))}, {row.model}, {row.date}"


def _years(axis: _Axis) -> list[tuple[int, str]]:
    first = datetime.date.fromordinal(int(axis.low)).year
    last = datetime.date.fromordinal(int(axis.high)).year
    step = max(1, (last - first) // 6)
    days = [
        (datetime.date(year, 1, 1).toordinal(), f"{year}") for year in range(first, last + 1, step)
    ]
    return [(day, text) for day, text in days if axis.low <= day <= axis.high]


def _levels(figure: Figure, axis: _Axis) -> list[tuple[float, str]]:
    if figure.name == "training time":
        levels = [(math.log10(seconds), text) for seconds, text in _DURATIONS]
    else:
        unit = "{} ms" if figure.name == "inference latency" else "${}"
        powers = range(math.floor(axis.low), math.ceil(axis.high) + 1)
        levels = [(power, unit.format(f"{10.0**power:,.10g}")) for power in powers]
    inside = [(level, text) for level, text in levels if axis.low <= level <= axis.high]
    if inside:
        return inside
    middle = (axis.low + axis.high) / 2  # all within a decade: one level suffices
    value = 10**middle / (3600 if figure.name == "training time" else 1)
    return [(middle, figure.format(value))]
