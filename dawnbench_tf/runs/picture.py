"""The training curve of a run: its metric over seconds on the clock."""

from pathlib import Path

from matplotlib.figure import Figure

from dawnbench_tf import files
from dawnbench_tf.runs import Run


def draw(run: Run, hardware: str, path: Path) -> None:
    """Draws a run's training curve, with its threshold and the first row that reaches it.

    Args:
      run: a run with at least one row.
      hardware: one line, for the title.
      path: file of the picture; its suffix decides the format.

    Raises:
      Refusal: the file can't be written.
    """
    recipe, task = run.recipe, run.recipe.task_row
    seconds = [row["hours"] * 3600 for row in run.rows]
    scores = [row[task.metric] for row in run.rows]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(seconds, scores, "o-", color="#0b6fa4", markersize=4)
    axes.axhline(recipe.goal, color="#8a8a8a", linestyle="--", linewidth=1)
    axes.annotate(
        f"threshold {recipe.goal:g}",
        (0, recipe.goal),
        xytext=(4, -13),
        textcoords="offset points",
        color="#5a5a5a",
    )
    data = "synthetic data" if recipe.synthetic else task.folder
    title = f"{recipe.model} on {data}, {hardware}"
    first = next(
        (pair for pair in zip(seconds, scores, strict=True) if pair[1] >= recipe.goal), None
    )
    if first:
        axes.plot(*first, "o", color="#c8441b", markersize=9)
        title += f"\n{first[1]:g} after {first[0]:.1f} s on the clock"
    axes.set(title=title, xlabel="seconds on the clock", ylabel=task.metric)
    axes.set_xlim(0, seconds[-1] * 1.03)
    axes.set_ylim(0, task.highest * 1.03)
    axes.grid(alpha=0.25)
    files.save_figure(figure, path)
