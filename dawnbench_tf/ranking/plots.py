"""Plots of training results: cost over time and accuracy over time."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from dawnbench_tf import files, terminal
from dawnbench_tf.ranking import tables
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.refusals import refuse
from dawnbench_tf.tasks import Task

MAX_NAMED = 6  # coloured results of a data set, at most: yours first, then the fastest


def draw(results: list[Result], path: Path) -> None:
    """Draws the training results of each data set: cost over time, and accuracy over time.

    After Figures 7 and 6 of the paper. Your own runs are in colour, then the fastest entries.

    Args:
      results: results; those of inference are ignored.
      path: the image file; its suffix determines the format.

    Raises:
      Refusal: no training result reached its threshold, or the image can't be written.
    """
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


def _legend_label(result: Result) -> str:
    yours = f"yours, {terminal.cut(result.folder, 20)}: " if result.mine else ""
    return _escape_dollars(
        f"{yours}{terminal.cut(result.model, 28)}, {terminal.cut(result.hardware, 34)}"
    )


def _escape_dollars(text: str) -> str:
    """Escapes $, which matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


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
            colour, label = f"C{named.index(result)}", _legend_label(result)
            axes.plot(hours, values, color=colour, label=label, linewidth=1.6, zorder=3)
        else:
            axes.plot(hours, values, color="#c3cad0", linewidth=0.8)
    axes.axhline(task.threshold, color="#5a5a5a", linestyle="--", linewidth=1)
    span = task.highest - task.threshold
    top = min(task.highest, max(result.score or 0.0 for result in rows) + span / 2)
    axes.set(xscale="log", ylim=(max(0, task.threshold - 4 * span), top))
    axes.set(xlabel="hours", ylabel=task.metric, title=f"{task.folder}: accuracy over time")
    axes.set_xlim(left=min(result.hours or 0.0 for result in rows) / 20)
    _set_ticks(axes.xaxis)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    axes.grid(alpha=0.25)
