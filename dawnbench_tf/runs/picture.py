"""Pictures of a run: its metric over seconds on the clock, and its most confident mistakes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dawnbench_tf import files
from dawnbench_tf.runs import Run


def draw(run: Run, hardware: str, path: Path, cost_per_hour: float | None = None) -> None:
    """Draws the training curve of a run, its threshold and the first row that reaches it."""
    # With a price, in USD an hour, there is an axis of dollars.
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
    if hit := run.first_hit:
        axes.plot(hit.seconds, hit[task.metric], "o", color="#c8441b", markersize=9)
        title += f"\n{hit[task.metric]:g} after {hit.seconds:.1f} s on the clock"
    axes.set(title=title, xlabel="seconds on the clock", ylabel=task.metric)
    axes.set_xlim(0, seconds[-1] * 1.03)
    axes.set_ylim(0, task.highest * 1.03)
    axes.grid(alpha=0.25)
    if cost_per_hour:
        price = np.array(cost_per_hour / 3600)
        both = partial(np.multiply, price), partial(np.multiply, 1 / price)
        dollars = axes.secondary_xaxis("top", functions=both)
        dollars.set_xlabel(f"USD, at {cost_per_hour:g} an hour", fontsize=8)
        dollars.tick_params(labelsize=8)
    files.save_figure(figure, path)


def draw_mistakes(images: np.ndarray, titles: Sequence[str], path: Path) -> None:
    """Draws images, uint8 (images, height, width, 3), in rows of five, each with its title."""
    rows = -(-len(images) // 5)
    figure = Figure(figsize=(11, 2.7 * rows), dpi=100, layout="constrained")
    for axes in figure.subplots(rows, 5, squeeze=False).flat:
        axes.axis("off")
    for axes, image, title in zip(figure.axes, images, titles, strict=False):
        axes.imshow(image)
        axes.set_title(title, fontsize=8)
    files.save_figure(figure, path)
