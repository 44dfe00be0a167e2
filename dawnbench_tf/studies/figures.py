"""Figures of studies, after those of the DAWNBench papers."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dawnbench_tf import time_statistics
from dawnbench_tf.studies import findings, summaries
from dawnbench_tf.studies.grid import Study
from dawnbench_tf.studies.summaries import Results, Summary
from dawnbench_tf.time_statistics import Interval

BLUE, RED, GREY = "#0b6fa4", "#c8441b", "#8a8a8a"
MAX_LEGEND = 10  # settings in a legend, at most


def draw(*studies: Results) -> Figure:
    """Draws the figures of studies, one below the other; each has at least one run."""
    figure = Figure(figsize=(12, 4.4 * len(studies)), dpi=110, layout="constrained")
    parts: Any = figure.subfigures(len(studies), 1) if studies[1:] else [figure]
    for part, results in zip(parts, studies, strict=True):
        FIGURES[results.study.figure](part, results)
        if studies[1:]:
            part.suptitle(results.study.name)
    return figure


def _choose_unit(seconds: Sequence[float]) -> tuple[str, float]:
    """Returns a unit of time that suits the values, and its length in seconds."""
    most = max((s for s in seconds if math.isfinite(s)), default=1.0)
    if most < 300:
        return "seconds", 1.0
    return ("minutes", 60.0) if most < 3 * 3600 else ("hours", 3600.0)


def _label_axes(axes: Axes, **labels: Any) -> None:
    axes.set(**labels)
    axes.grid(alpha=0.25)


def _draw_points(axes: Axes, rows: list[Summary], values: Sequence[float | None]) -> None:
    """Draws a named point, value over median time, for each setting that has both."""
    _, scale = _choose_unit([row.median_seconds for row in rows])
    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        if value is not None and math.isfinite(row.median_seconds):
            point = row.median_seconds / scale, value
            axes.scatter(*point, s=60, color=f"C{number}")
            axes.annotate(row.setting, point, xytext=(7, 4), textcoords="offset points")
    axes.set_xlim(0, axes.get_xlim()[1] * 1.15)  # with room for the names
    axes.set_ylim(0, axes.get_ylim()[1] * 1.15)


def _draw_bars(axes: Axes, rows: list[Summary], results: Results, **labels: Any) -> None:
    """Draws median times with intervals and speed-ups, and a dot for each run that reached it."""
    times = {s.name: s.times(rows[0].threshold).reached for s in results.settings}
    unit, scale = _choose_unit([row.median_seconds for row in rows])
    finite = [row.median_seconds / scale for row in rows if math.isfinite(row.median_seconds)]
    limits = [row.median_interval[1] / scale for row in rows if row.median_interval]
    latest = [times[row.setting].max(initial=0.0) / scale for row in rows]
    top = max([*finite, *latest, *filter(math.isfinite, limits)]) or 1.0
    for position, row in enumerate(rows):
        _draw_dots(axes, position, times[row.setting] / scale)
        if not math.isfinite(row.median_seconds):
            never = math.isinf(row.middle_seconds[0])
            text = "median " * (not never) + findings.format_median(row.middle_seconds)
            text += f"\n({row.reached} of {row.runs})"
            axes.text(position, top * 0.03, text, ha="center", color=RED, rotation=90, fontsize=9)
            continue
        height = row.median_seconds / scale
        axes.bar(position, height, color=BLUE, width=0.65)
        _draw_interval(axes, position, height, row.median_interval, scale)
        if row.speed_up:
            axes.text(position, height / 2, f"{row.speed_up:.2f}x", ha="center", color="white")
    axes.set_xticks(range(len(rows)), [row.setting.replace(", ", "\n") for row in rows], fontsize=8)
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, top * 1.1)
    _label_axes(axes, ylabel=f"{unit} on the clock, median", **labels)


def _draw_dots(axes: Axes, position: float, values: Sequence[float] | np.ndarray) -> None:
    """Draws a dot for each run of a setting."""
    positions = np.full(len(values), position)
    axes.scatter(positions, values, s=18, color="#f2b134", edgecolors="#30363b", lw=0.6, zorder=3)


def _draw_interval(
    axes: Axes, position: float, height: float, interval: Interval | None, scale: float
) -> None:
    if interval and all(map(math.isfinite, interval)):
        limits = [[height - interval[0] / scale], [interval[1] / scale - height]]
        axes.errorbar(position, height, limits, color="#30363b", capsize=3, lw=1)


def _draw_times(figure: Figure, results: Results) -> None:
    panels = figure.subplots(1, len(results.thresholds), squeeze=False)[0]
    for axes, threshold in zip(panels, results.thresholds, strict=True):
        rows = results.by_threshold[threshold]
        _draw_bars(axes, rows, results, title=f"time to {results.metric} {threshold:g}")


def _draw_tradeoff(figure: Figure, results: Results) -> None:
    """Draws epochs, throughput and time over the levels of one factor (Figure 1)."""
    rows = results.highest
    alone = len(results.study.factors) == 1
    names = [
        setting.labels[0] if alone and setting.labels[0] != "-" else setting.name
        for setting in results.settings
    ]
    epochs, speed, time = figure.subplots(1, 3)
    positions: np.ndarray = np.arange(len(rows))
    _draw_line(epochs, positions, [row.epochs for row in rows])
    _draw_line(speed, positions, [row.examples_per_second or math.nan for row in rows])
    unit, scale = _choose_unit([row.median_seconds for row in rows])
    _draw_line(time, positions, [row.median_seconds / scale for row in rows])
    threshold = results.thresholds[-1]
    for position, row, setting in zip(positions, rows, results.settings, strict=True):
        hits = [hit["epoch"] for o in setting.outcomes if (hit := o.row_at(threshold))]
        _draw_dots(epochs, position, hits)
        _draw_dots(speed, position, setting.figures("examplesPerSecond"))
        _draw_dots(time, position, setting.times(threshold).reached / scale)
        if math.isfinite(row.median_seconds):
            _draw_interval(time, position, row.median_seconds / scale, row.median_interval, scale)
    factor = results.study.factors[0].name if results.study.factors else "setting"
    goal = f"{results.metric} {threshold:g}"
    for axes, title, label in (
        (epochs, "convergence", f"epochs to {goal}"),
        (speed, "throughput", "examples/s"),
        (time, "time to accuracy", f"{unit} to {goal}"),
    ):
        axes.set_xticks(positions, names, rotation=30 if len(names) > 6 else 0)
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
        _label_axes(axes, title=title, xlabel=factor, ylabel=label)


def _draw_line(axes: Axes, positions: np.ndarray, values: Sequence[float] | np.ndarray) -> None:
    """Draws a line through the finite values, and crosses at zero for infinite ones."""
    values = np.array(values, float)
    finite = np.isfinite(values)
    axes.plot(positions[finite], values[finite], "o-", color=BLUE)
    never = positions[np.isinf(values)]
    if len(never):
        axes.plot(never, np.zeros(len(never)), "x", color=RED, markersize=10, mew=2, clip_on=False)
        axes.plot([], [], "x", color=RED, label="did not converge")
        axes.legend(loc="best", fontsize=8)
    axes.set_xlim(positions[0] - 0.5, positions[-1] + 0.5)


def _draw_curves(figure: Figure, results: Results) -> None:
    """Draws the metric over time and over epochs (Figures 2 and 6)."""
    over_time, over_epochs = figure.subplots(1, 2)
    shown = results.settings[:MAX_LEGEND]
    ends = [outcome.seconds for setting in shown for outcome in setting.outcomes]
    unit, scale = _choose_unit(ends)
    for number, setting in enumerate(shown):
        for trial, outcome in enumerate(setting.outcomes):
            style = {"color": f"C{number}", "alpha": 0.8, "linewidth": 1.3}
            label = None if trial else setting.name
            scores = [row[outcome.metric] for row in outcome.rows]
            seconds = [row["hours"] * 3600 / scale for row in outcome.rows]
            over_time.plot(seconds, scores, label=label, **style)
            over_epochs.plot([row["epoch"] for row in outcome.rows], scores, **style)
    for axes, label in ((over_time, f"{unit} on the clock"), (over_epochs, "epoch")):
        for threshold in results.thresholds:
            axes.axhline(threshold, color=GREY, linestyle="--", linewidth=0.8)
        _label_axes(axes, xlabel=label, ylabel=results.metric)
    ends = [row["epoch"] for s in shown for outcome in s.outcomes for row in outcome.rows]
    whole = all(epoch == int(epoch) for epoch in ends) and max(ends, default=0) > 1
    over_epochs.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=whole))
    over_time.legend(fontsize=8, loc="lower right")


def _draw_factors(figure: Figure, results: Results) -> None:
    """Draws time as factors are added one by one, and best score over time (Figures 3 and 4)."""
    panels = figure.subplots(1, len(results.thresholds) + 1)
    for axes, threshold in zip(panels, results.thresholds, strict=False):
        rows = results.by_threshold[threshold]
        rows_by_labels = {s.labels: row for s, row in zip(results.settings, rows, strict=True)}
        chosen = [rows_by_labels[n] for n in _cumulative(results.study) if n in rows_by_labels]
        title = "each factor added: " * bool(chosen) + f"time to {results.metric} {threshold:g}"
        _draw_bars(axes, chosen or rows, results, title=title)
    axes = panels[-1]
    ends = [np.median([o.seconds for o in setting.outcomes]) for setting in results.settings]
    unit, scale = _choose_unit(ends)
    for number, (setting, end) in enumerate(zip(results.settings, ends, strict=True)):
        best = [outcome.best for outcome in setting.outcomes if outcome.best is not None]
        if best:
            style = {"color": f"C{number}", "marker": "os^vD<>P"[number % 8]}
            axes.scatter(end / scale, np.median(best), s=46, label=setting.name, **style)
    labels = {"xlabel": f"{unit} trained", "ylabel": "best score, median"}
    _label_axes(axes, title="all combinations", **labels)
    if axes.collections:
        axes.legend(fontsize=7)


def _cumulative(study: Study) -> Iterator[tuple[str, ...]]:
    """Yields the labels of the baseline, of the first factor alone, of the first two, and so on."""
    levels = [factor.levels for factor in study.factors]
    if any(len(pair) != 2 for pair in levels):
        return  # no factor is just added
    for count in range(len(levels) + 1):
        yield tuple(pair[i < count].label for i, pair in enumerate(levels))


def _draw_latency(figure: Figure, results: Results) -> None:
    """Draws inference latency over training time (Figure 5)."""
    axes, rows = figure.subplots(), results.highest
    unit, _ = _choose_unit([row.median_seconds for row in rows])
    latencies = [setting.figures("latency_ms") for setting in results.settings]
    _draw_points(axes, rows, [float(np.median(each)) if len(each) else None for each in latencies])
    goal = f"{results.metric} {results.thresholds[-1]:g}"
    _label_axes(axes, xlabel=f"{unit} of training to {goal}", ylabel="ms for one example, mean")


def _draw_scaling(figure: Figure, results: Results) -> None:
    """Draws cost over time, and scaling efficiency by number of devices (Figure 7)."""
    rows = results.highest
    cost, efficiency = figure.subplots(1, 2)
    unit, scale = _choose_unit([row.median_seconds for row in rows])
    priced = any(row.usd for row in rows)
    costs = [row.devices and row.devices * row.median_seconds / scale for row in rows]
    _draw_points(cost, rows, [row.usd for row in rows] if priced else costs)
    label = "USD to the threshold" if priced else f"device-{unit} to the threshold"
    _label_axes(cost, xlabel=f"{unit} to the threshold", ylabel=label, title="cost over time")
    positions = np.arange(len(rows))
    shares = [summaries.efficiency(row, rows[0]) or 0.0 for row in rows]
    for offset, color, heights, label in (
        (-0.2, BLUE, shares, "throughput, share of the ideal"),
        (0.2, RED, [row.communication or 0.0 for row in rows], "communication in a step, at most"),
    ):
        efficiency.bar(positions + offset, heights, 0.4, color=color, label=label)
        for position, height in zip(positions + offset, heights, strict=True):
            if height:  # else unknown
                efficiency.text(position, height, f"{height:.0%}", ha="center", va="bottom")
    efficiency.set_xticks(positions, [row.setting for row in rows])
    efficiency.set_ylim(0, max([1.0, *shares]) * 1.35)
    efficiency.legend(fontsize=8, loc="upper right")
    _label_axes(efficiency, xlabel="devices", title="scaling efficiency")


def _draw_distribution(figure: Figure, results: Results) -> None:
    """Draws the distributions of times and scores, and the Kaplan-Meier curve."""
    times, share, scores = figure.subplots(1, 3)
    threshold = results.thresholds[-1]
    all_times = [setting.times(threshold) for setting in results.settings[:MAX_LEGEND]]
    unit, scale = _choose_unit([second for t in all_times for second in t.seconds])
    for number, (setting, t) in enumerate(zip(results.settings, all_times, strict=False)):
        colour = BLUE if len(all_times) == 1 else f"C{number}"
        if len(t.reached):
            bins = min(20, max(5, len(t.reached) // 2))
            times.hist(t.reached / scale, bins=bins, color=colour, alpha=0.75)
        seconds, shares, limits = time_statistics.kaplan_meier(t)
        end = max(outcome.seconds for outcome in setting.outcomes)
        x = np.r_[0, seconds, max(end, *seconds[-1:], 0)] / scale
        y = np.r_[0, shares, shares[-1:] if len(shares) else 0]
        share.step(x, y, where="post", color=colour, label=setting.name)
        bounds = np.vstack([[0, 0], limits, limits[-1:]])
        if len(seconds):
            share.fill_between(x, bounds[:, 0], bounds[:, 1], step="post", color=colour, alpha=0.15)
        last = [o.rows[-1][o.metric] for o in setting.outcomes if o.rows]
        scores.hist(last, bins=12, color=colour, alpha=0.75)
    goal = f"{results.metric} {threshold:g}"
    _label_axes(times, xlabel=f"{unit} to {goal}", ylabel="runs", title="time to accuracy")
    _label_axes(share, xlabel=f"{unit} on the clock", ylabel=f"share at {goal}", ylim=(0, 1.02))
    share.set_title("Kaplan-Meier, with 95 %")
    if len(all_times) > 1:
        share.legend(fontsize=8)
    for axes in (times, scores):
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    scores.axvline(threshold, color=GREY, linestyle="--")
    _label_axes(scores, xlabel=results.metric, ylabel="runs", title="score of the last row")


def _draw_generalization(figure: Figure, results: Results) -> None:
    """Draws scores on held-out examples over scores on the test set that stopped training."""
    axes = figure.subplots()
    low = math.inf
    for number, setting in enumerate(results.settings[:MAX_LEGEND]):
        pairs = summaries.held_out_pairs(setting)
        if pairs:
            test, fresh = np.array(pairs).T
            axes.scatter(test, fresh, color=f"C{number}", s=40, label=setting.name)
            low = min(low, test.min(), fresh.min())
    if math.isfinite(low):
        line = [low - 1, max(results.settings[0].outcomes[0].goal, low) + 1]
        axes.plot(line, line, color=GREY, linestyle="--", linewidth=1, label="equal scores")
        axes.legend(fontsize=8)
    label = f"{results.metric} on held-out examples"
    _label_axes(axes, xlabel=f"{results.metric} on the test", ylabel=label)


FIGURES: dict[str, Callable[[Figure, Results], None]] = {
    "times": _draw_times,
    "tradeoff": _draw_tradeoff,
    "curves": _draw_curves,
    "factors": _draw_factors,
    "latency": _draw_latency,
    "scaling": _draw_scaling,
    "distribution": _draw_distribution,
    "generalization": _draw_generalization,
}
