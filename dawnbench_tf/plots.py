"""Figures of results, as files."""

from pathlib import Path

from matplotlib.figure import Figure

from dawnbench_tf import files, tasks
from dawnbench_tf.entry import Entry
from dawnbench_tf.results import Result
from dawnbench_tf.settings import refuse

FORMATS = (".png", ".svg", ".pdf")
NAMED = 6  # curves of a data set that are in colour: yours, and the fastest


def accuracy_over_time(entry: Entry, path: Path) -> None:
    """Draws a run's metric over its seconds on the clock, with threshold and first row there.

    Args:
      entry: at least one row.
      path: of the picture; its suffix decides the format.

    Raises Refusal if it can't be written.
    """
    metric, threshold = entry.ranking.metric, entry.ranking.threshold
    seconds = [hours * 3600 for hours, _ in entry.curve()]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    values = [value for _, value in entry.curve()]
    axes.plot(seconds, values, "o-", color="#0b6fa4", markersize=4)
    axes.axhline(threshold, color="#8a8a8a", linestyle="--", linewidth=1)
    axes.annotate(
        f"threshold {threshold:g}",
        (0, threshold),
        xytext=(4, -13),
        textcoords="offset points",
        color="#5a5a5a",
    )
    data = "synthetic data" if entry.misc["recipe"]["synthetic"] else entry.dataset
    title = f"{entry.model} on {data}, {entry.hardware}"
    if hit := entry.first_hit():
        hours, value = hit
        axes.plot(hours * 3600, value, "o", color="#c8441b", markersize=9)
        title += f"\n{value:g} after {hours * 3600:.1f} s on the clock"
    axes.set(title=title, xlabel="seconds on the clock", ylabel=metric)
    axes.set_xlim(0, seconds[-1] * 1.03)
    axes.set_ylim(0, entry.ranking.highest * 1.03)
    axes.grid(alpha=0.25)
    _save(figure, path)


def batch_sizes(rows: list[tuple[int, float, float]], title: str, path: Path) -> None:
    """Draws milliseconds of a batch, and examples a second, against the size of batches.

    Raises Refusal if it can't be written.
    """
    sizes, milliseconds, throughput = zip(*rows, strict=True)
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    of_batch, of_second = figure.subplots(1, 2)
    of_batch.plot(sizes, milliseconds, "o-", color="#0b6fa4", markersize=4)
    of_batch.set(yscale="log", ylabel="ms for a batch")
    of_second.plot(sizes, throughput, "o-", color="#0b6fa4", markersize=4)
    of_second.set(ylim=(0, 1.1 * max(throughput)), ylabel="examples/s")
    for axes in (of_batch, of_second):
        axes.set(xscale="log", xlabel="batch size")
        axes.set_xticks(sizes, [f"{size}" for size in sizes])
        axes.xaxis.minorticks_off()
        axes.grid(alpha=0.25)
    figure.suptitle(title)
    _save(figure, path)


def results(found: list[Result], path: Path) -> None:
    """Draws training results of each data set: cost over time, and accuracy over time.

    As the paper's Figures 7 and 6. In colour: runs of your own, then the fastest entries.

    Args:
      found: results; those of inference are left out.
      path: of the picture; its suffix decides the format.

    Raises Refusal if it can't be written.
    """
    if path.suffix not in FORMATS:
        refuse("plot", path, f"should end in one of {', '.join(FORMATS)}")
    trained = [it for it in found if it.hours]
    datasets = [name for name in tasks.RANKED if any(it.dataset == name for it in trained)]
    if not datasets:
        refuse("plot", path, "needs a training entry that reached its threshold; there is none")
    figure = Figure(figsize=(15, 4.2 * len(datasets)), dpi=110, layout="constrained")
    grid = figure.subplots(len(datasets), 2, squeeze=False)
    for dataset, (costs, curves) in zip(datasets, grid, strict=True):
        rows = sorted((it for it in trained if it.dataset == dataset), key=lambda it: it.hours)
        named = sorted(rows, key=lambda it: not it.mine)[:NAMED]
        _cost_over_time(costs, dataset, rows, named)
        _curves(curves, dataset, rows, named)
    _save(figure, path)


def _name(result):
    yours = "yours: " if result.mine else ""
    return _plain(f"{yours}{result.model[:28]}, {result.hardware[:34]}")


def _plain(text):
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def _cost_over_time(axes, dataset, rows, named):
    priced = [it for it in rows if it.usd]
    others = [it for it in priced if it not in named]
    axes.scatter([it.hours for it in others], [it.usd for it in others], s=18, color="#9aa4ad")
    for number, it in enumerate(named):
        if it in priced:
            marker = "*" if it.mine else "o"
            axes.scatter(
                it.hours, it.usd, s=90 if it.mine else 36, color=f"C{number}", marker=marker
            )
    axes.set(xscale="log", title=f"{dataset}: cost over time to the threshold")
    axes.set(xlabel="hours to the threshold", ylabel="USD to the threshold")
    if priced:
        axes.set_yscale("log")
    else:
        axes.text(0.5, 0.5, "no entry has a price", ha="center", transform=axes.transAxes)
    axes.grid(alpha=0.25)


def _curves(axes, dataset, rows, named):
    ranking = tasks.RANKED[dataset]
    for it in rows:
        points = [point for point in it.curve if point[0] > 0]
        hours, values = zip(*points, strict=True)
        if it in named:
            colour, label = f"C{named.index(it)}", _name(it)
            axes.plot(hours, values, color=colour, label=label, linewidth=1.6, zorder=3)
        else:
            axes.plot(hours, values, color="#c3cad0", linewidth=0.8)
    axes.axhline(ranking.threshold, color="#5a5a5a", linestyle="--", linewidth=1)
    span = ranking.highest - ranking.threshold
    top = min(ranking.highest, max(it.metric for it in rows) + span / 2)
    axes.set(xscale="log", ylim=(max(0, ranking.threshold - 4 * span), top))
    axes.set(xlabel="hours", ylabel=ranking.metric, title=f"{dataset}: accuracy over time")
    axes.set_xlim(left=min(it.hours for it in rows) / 20)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    axes.grid(alpha=0.25)


def _save(figure, path):
    try:
        figure.savefig(path)
    except OSError as error:
        raise files.cannot_write(path, error) from None
