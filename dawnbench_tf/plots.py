"""Figures of results, as files."""

from pathlib import Path

from matplotlib.figure import Figure

from dawnbench_tf import files
from dawnbench_tf.entries import TrainingEntry


def accuracy_over_time(entry: TrainingEntry, path: Path) -> None:
    """Draws a run's metric over its seconds on the clock, with threshold and first row there.

    Args:
      entry: at least one row.
      path: of the picture; its suffix decides the format.

    Raises Refusal if it can't be written.
    """
    metric, hit = entry.task.metric, entry.first_hit()
    seconds = [row["hours"] * 3600 for row in entry.rows]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(seconds, [row[metric] for row in entry.rows], "o-", color="#0b6fa4", markersize=4)
    axes.axhline(entry.task.threshold, color="#8a8a8a", linestyle="--", linewidth=1)
    axes.annotate(
        f"threshold {entry.task.threshold:g}",
        (0, entry.task.threshold),
        xytext=(4, -13),
        textcoords="offset points",
        color="#5a5a5a",
    )
    data = "synthetic data" if entry.fields["misc"]["recipe"]["synthetic"] else entry.task.folder
    title = f"{entry.fields['model']} on {data}, {entry.fields['hardware']}"
    if hit:
        axes.plot(hit["hours"] * 3600, hit[metric], "o", color="#c8441b", markersize=9)
        title += f"\n{hit[metric]:g} after {hit['hours'] * 3600:.1f} s on the clock"
    axes.set(title=title, xlabel="seconds on the clock", ylabel=metric)
    axes.set_xlim(0, seconds[-1] * 1.03)
    axes.set_ylim(0, entry.task.highest * 1.03)
    axes.grid(alpha=0.25)
    try:
        figure.savefig(path)
    except OSError as error:
        raise files.cannot_write(path, error) from None
