"""Plots of results: pictures of cost and accuracy over time, and the charts of the HTML pages."""

import base64
import io
from datetime import date
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from dawnbench_tf import files, terminal
from dawnbench_tf.ranking import tables
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.ranking.tables import Table
from dawnbench_tf.refusals import refuse
from dawnbench_tf.tasks import Task

MAX_NAMED = 6  # coloured results of a data set, at most: yours first, then the fastest
MOST_DOTS = 2000  # of a record's chart
LEAST, MOST = 1e-12, 1e12  # figures that are drawn: matplotlib's ticks overflow far outside
INK, LINE = "#727d88", "#2484b8"  # legible on the pages, light or dark
PAGE: Any = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "grid.color"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **{"axes.spines.top": False, "axes.spines.right": False, "grid.alpha": 0.3},
    **{"svg.fonttype": "none", "svg.hashsalt": "dawnbench_tf"},  # text, and equal files each time
}


def draw(results: list[Result], path: Path) -> None:
    """Draws the training results of each data set: cost over time, and accuracy over time."""
    # After Figures 7 and 6 of the paper. Your own runs are in colour, then the fastest entries.
    files.check_figure(path)
    trained = [result for result in results if result.hours and not result.reasons]
    tasks = tables.order(result.task for result in trained)
    if not tasks:
        refuse("plot", path, "needs a training entry that reached its threshold; there is none")
    figure = Figure(figsize=(15, 4.2 * len(tasks)), dpi=110, layout="constrained")
    grid = figure.subplots(len(tasks), 2, squeeze=False)
    for task, (costs, curves) in zip(tasks, grid, strict=True):
        rows = [result for result in trained if result.task.comparable == task]
        rows = sorted(rows, key=lambda result: result.hours or 0.0)
        named = sorted(rows, key=lambda result: not result.mine)[:MAX_NAMED]
        _draw_costs(costs, task.folder, rows, named)
        _draw_curves(curves, task, rows, named)
    files.save_figure(figure, path)


def draw_curves(results: list[Result], path: Path) -> None:
    """Draws the accuracy over time of training results of one data set. Raises Refusal."""
    files.check_figure(path, "curve")
    rows = [result for result in results if any(hours > 0 for hours, _ in result.curve)]
    tasks = tables.order(result.task for result in rows)
    if not tasks:
        refuse("curve", path, "needs training results, of --dataset if it is set; there are none")
    if len(tasks) != 1:
        titles = "; ".join(tables.title(task) for task in tasks)
        text = f"needs training results of one data set; these are of {titles}"
        refuse("curve", path, f"{text}: --dataset or fewer folders choose one")
    figure = Figure(figsize=(11, 4.2), dpi=110, layout="constrained")
    _draw_curves(figure.add_subplot(), tasks[0], rows, rows)
    files.save_figure(figure, path)


def _draw_costs(axes: Axes, dataset: str, rows: list[Result], named: list[Result]) -> None:
    priced = [result for result in rows if result.usd]
    others = [(result.hours, result.usd) for result in priced if result not in named]
    hours, usd = zip(*others, strict=True) if others else ((), ())
    axes.scatter(hours, usd, s=18, color="#9aa4ad")
    for number, result in enumerate(named):
        if result.hours and result.usd:
            size, marker = (90, "*") if result.mine else (36, "o")
            axes.scatter(result.hours, result.usd, s=size, color=f"C{number}", marker=marker)
    axes.set(title=f"{dataset}: cost over time to the threshold")
    if not priced:
        axes.text(0.5, 0.5, "no entry has a price", ha="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="hours to the threshold", ylabel="USD to the threshold")
    for axis in (axes.xaxis, axes.yaxis):
        _set_ticks(axis)
    axes.grid(alpha=0.25)


def _set_ticks(axis: Axis) -> None:
    """Sets few labels on a logarithmic axis, so that they do not overlap."""
    low, high = axis.get_view_interval()
    wide = high > 8 * low
    subs = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=7) if wide else MaxNLocator(4))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _draw_curves(axes: Axes, task: Task, rows: list[Result], named: list[Result]) -> None:
    for result in rows:
        points = [point for point in result.curve if point[0] > 0]
        hours, values = zip(*points, strict=True)
        if result in named:
            label = f"yours, {terminal.cut(result.folder, 20)}: " if result.mine else ""
            label += f"{terminal.cut(result.model, 28)}, {terminal.cut(result.hardware, 34)}"
            colour = f"C{named.index(result)}"
            marker = "o" if len(points) < 30 else ""  # one point has no line
            (line,) = axes.plot(hours, values, color=colour, label=label, linewidth=1.6, zorder=3)
            line.set(marker=marker, markersize=3.5)
        else:
            axes.plot(hours, values, color="#c3cad0", linewidth=0.8)
    axes.axhline(task.threshold, color="#5a5a5a", linestyle="--", linewidth=1)
    span = task.highest - task.threshold
    best = [max(score for _, score in result.curve) for result in rows]
    points = [point for result in rows for point in result.curve if point[0] > 0]
    bottom = max(0, min(task.threshold - 4 * span, min(best) - span))
    if rows == named:  # curves that were chosen are drawn whole
        bottom = min(bottom, *(score for _, score in points))
    axes.set(xscale="log", ylim=(bottom, min(task.highest, max(task.threshold, *best) + span / 2)))
    axes.set(xlabel="hours", ylabel=task.metric, title=f"{task.folder}: accuracy over time")
    axes.set_xlim(left=0.8 * min(hours for hours, score in points if score >= bottom))
    _set_ticks(axes.xaxis)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    axes.grid(alpha=0.25)


@rc_context(PAGE)
def record_chart(table: Table) -> dict[str, str]:
    """Draws a table's record over the years: entries as dots, the record as a line."""
    # Returns the title, the description, and as source the SVG as a data: URL.
    ranked, best = table.figure, tables.records(table)
    figure = Figure(figsize=(6.6, 3.8))
    # Margins by hand: a layout that matplotlib computes takes twice the time.
    axes = figure.add_axes((0.15, 0.14, 0.83, 0.82))
    axes.set(xlabel="date of the entry", ylabel=ranked.name)
    axes.grid(axis="y")
    for rows, colour, alpha in ((table.rows[:MOST_DOTS], INK, 0.45), (best, LINE, 1.0)):
        points = [(_year(row), ranked.value(row)) for row in rows]
        points = [point for point in points if LEAST < point[1] < MOST]
        years, values = zip(*points, strict=True) if points else ((), ())
        axes.plot(years, values, "o", markersize=5, color=colour, alpha=alpha)
    end = max(map(_year, table.rows)) + 0.1
    if years:  # the record stays level until the date of the next one
        axes.step([*years, end], [*values, values[-1]], where="post", color=LINE, linewidth=2)
    axes.set(yscale="log", xlim=(min(map(_year, table.rows)) - 0.1, end))
    _set_ticks(axes.yaxis)
    axes.yaxis.set_major_formatter(lambda value, _: ranked.format(value))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter("{x:.0f}")
    first, last = best[0], best[-1]
    figures = [f"{ranked.format(ranked.value(row))} ({row.date})" for row in (first, last)]
    description = f"The record fell from {figures[0]} to {figures[1]}; {len(best)} records in all."
    if not best[1:]:
        description = f"The record is {figures[0]}."
    title = f"Record of {table.dataset} {ranked.name} over the years"
    stream = io.BytesIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    files.save_figure(figure, stream, format="svg", transparent=True, metadata=metadata)
    # As a picture: scripts and styles in it can't act on the page.
    source = f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"
    return {"title": title, "description": description, "source": source}


def _year(result: Result) -> float:
    """Returns a result's date as a number: 2020.5 is the middle of 2020."""
    day = date.fromisoformat(result.date)
    return day.year + (day.timetuple().tm_yday - 1) / 366
