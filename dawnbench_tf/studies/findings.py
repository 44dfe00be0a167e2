"""Findings of a study as sentences, and recipe evidence as Python source."""

import math
import statistics
from collections import Counter

import numpy as np

from dawnbench_tf import time_statistics
from dawnbench_tf.clock import in_units
from dawnbench_tf.studies import outcomes, summaries
from dawnbench_tf.studies.summaries import Results, Summary
from dawnbench_tf.terminal import counted
from dawnbench_tf.time_statistics import certainty, format_interval


def sentences(results: Results) -> list[str]:
    """Returns the findings of a study as sentences, the most general first."""
    lines = [_describe_runs(results)]
    for threshold in results.thresholds:
        lines += _describe_fastest(results, results.by_threshold[threshold])
        lines += _describe_composition(results, threshold)
    lines += _describe_main_effects(results, results.thresholds[-1])
    if len(results.settings) == 1:
        lines += _describe_spread(results)
    if results.study.figure == "tradeoff":
        lines += _describe_tradeoff(results)
    if results.study.figure == "scaling":
        lines += _describe_scaling(results)
    return lines + _describe_generalization(results) + _describe_latency(results)


def _describe_runs(results: Results) -> str:
    runs = [outcome for setting in results.settings for outcome in setting.outcomes]
    ended = Counter(summaries.status_at(outcome, results.thresholds[-1]) for outcome in runs)
    parts = ", ".join(f"{count} {status}" for status, count in ended.most_common())
    later = sum(run.status == outcomes.CRASHED for run in runs) - ended[outcomes.CRASHED]
    parts += f"; {later} of those that reached it crashed later" * bool(later)
    jobs = max(outcome.facts.get("jobs", 1) for outcome in runs)
    shared = f" Up to {jobs} ran at a time: on one machine they share it." if jobs > 1 else ""
    count = f"{len(results.settings)} settings" if results.settings[1:] else "one setting"
    planned = f"{len(runs)} of " * (len(runs) < results.planned)
    return f"{planned}{counted(results.planned, 'run')} in {count}: {parts}.{shared}"


def _goal(results: Results, threshold: float) -> str:
    return f"{results.metric} {threshold:g}"


def _describe_fastest(results: Results, rows: list[Summary]) -> list[str]:
    goal = _goal(results, rows[0].threshold)
    if not any(math.isfinite(row.median_seconds) for row in rows):
        text = f"At {goal} no setting has a median: no more than half of its runs reach it"
        crashed = any(math.isnan(row.median_seconds) for row in rows)
        return [f"{text}{', or too many crashed' * crashed}."]
    if len(rows) == 1:
        return []
    ranked = [row for row in rows if row.finished >= time_statistics.ENOUGH]
    finite = [row for row in ranked if math.isfinite(row.median_seconds)]
    best = min(finite, key=lambda row: row.median_seconds, default=rows[0])
    if len(ranked) < 2 or ranked[0] is not rows[0] or not finite:
        ranked = []
    took = "; ".join(f"{row.setting} {format_range(row)}" for row in rows if row not in ranked)
    too_few = [f"To {goal}: {took}. {TOO_FEW}."] if took else []
    if not ranked:
        return too_few
    text = f"The shortest median to {goal} is that of {best.setting}: "
    text += in_units(best.median_seconds)
    if best.speed_up:
        limits = format_interval(best.speed_up_interval)
        text += f", {best.speed_up:.2f} times as fast as {rows[0].setting}{limits}"
    # The best of several is best by chance, too: its p-value is multiplied (Bonferroni).
    if best.p_value is not None and best.p_value * (len(ranked) - 1) >= 1 - time_statistics.LEVEL:
        text += "; the difference is not significant"
        text += f" for the best of {len(ranked) - 1}" * (len(ranked) > 2)
    lines = [f"{text}."]
    if best.faster is not None:
        text = f"A run of {best.setting} takes less time than one of {rows[0].setting} with "
        lines.append(f"{text}probability {best.faster:.2f}, {certainty(best)}.")
    for unknown, text in (
        (math.isinf, f"No more than half of the runs reach {goal} with"),
        (math.isnan, "Runs that crashed, or ended before it, leave the median unknown with"),
    ):
        if names := "; ".join(row.setting for row in rows if unknown(row.median_seconds)):
            lines.append(f"{text}: {names}.")
    return lines + too_few


TOO_FEW = f"Too few runs to rank: {time_statistics.ENOUGH} of each without a crash are the least"


def format_range(row: Summary) -> str:
    """Formats the least and the most time of the runs that reached the threshold, and how many."""
    count = f"({row.reached} of {row.runs} runs)"
    if not row.range_seconds:
        return f"{format_median(row.middle_seconds)} {count}"
    times = dict.fromkeys(map(in_units, row.range_seconds))
    return f"{' to '.join(times)} {count}"


def _describe_composition(results: Results, threshold: float) -> list[str]:
    compared = summaries.composition(results.study, results.settings, threshold)
    if compared is None:
        return []
    single, whole, interval = compared
    product = math.prod(single.values())
    text = " x ".join(f"{speed_up:.2f} ({name})" for name, speed_up in single.items())
    if not whole:
        text += f" = {product:.2f}; all together no more than half reach it"
    elif not product:
        never = "; ".join(name for name, speed_up in single.items() if not speed_up)
        text += f"; all together {whole:.2f}. Alone no more than half reach it: {never}"
    else:
        share = whole / product
        text += f" = {product:.2f}; all together {whole:.2f}"
        if interval is None:
            text += "; an interval needs five runs of each setting without a crash"
        else:
            low, high = interval
            verdict = "consistent with the product" if low <= 1 <= high else "not the product"
            text += f", {share:.2f} of it{format_interval(interval)}: {verdict}"
    return [f"To {_goal(results, threshold)}: {text}."]


def _describe_main_effects(results: Results, threshold: float) -> list[str]:
    lines = []
    effects = summaries.main_effects(results.study, results.settings, threshold)
    for (factor, level), speed_ups in effects.items():
        finite = [ratio for ratio in speed_ups if 0 < ratio < math.inf]
        text = f"{factor}: to {_goal(results, threshold)} {level} is"
        if finite:
            mean = math.exp(statistics.mean(map(math.log, finite)))
            text += f" {mean:.2f} times as fast ({min(finite):.2f} to {max(finite):.2f})"
        text += f" in {len(finite)} of {len(speed_ups)} pairs"
        never, alone = speed_ups.count(0), speed_ups.count(math.inf)
        text += f"; in {never} no more than half reach it" * bool(never)
        text += f"; in {alone} it alone has more than half reach it" * bool(alone)
        lines.append(f"{text}.")
    return lines


def _describe_spread(results: Results) -> list[str]:
    setting, row = results.settings[0], results.highest[0]
    text = f"{row.reached} of {row.runs} runs reach {_goal(results, row.threshold)}"
    if row.share:
        low, high = row.share
        without = ", by those whose end is known" * (row.finished < row.runs)
        text += f" (95 %: {low:.0%} to {high:.0%} of runs would{without})"
    lines = [f"{text}."]
    if row.mean_seconds is None:
        return lines
    if row.finished < time_statistics.ENOUGH:
        return [*lines, f"Time to it: {format_range(row)}."]
    median = format_median(row.middle_seconds) + format_interval(row.median_interval, in_units)
    mean = in_units(row.mean_seconds) + format_interval(row.mean_interval, in_units)
    whose = " of those that reach it" * (row.reached < row.runs)
    lines.append(f"Time to it: median {median}, mean{whose} {mean}.")
    if row.variation is not None:
        needed = time_statistics.trials_for_mean(row.variation)
        text = f"Coefficient of variation {row.variation:.1%}: {needed} trials give the mean to"
        lines.append(f"{text} 5 %.")
        hits = [hit for o in setting.outcomes if (hit := o.row_at(row.threshold))]
        parts = [[hit["epoch"] for hit in hits], [hit["hours"] / hit["epoch"] for hit in hits]]
        epochs, paces = (statistics.stdev(part) / statistics.mean(part) for part in parts)
        lines.append(f"Epochs to it vary by {epochs:.1%}, the time of an epoch by {paces:.1%}.")
    return lines


def _describe_tradeoff(results: Results) -> list[str]:
    rows = [row for row in results.highest if row.finished >= time_statistics.ENOUGH]
    finite = [row for row in rows if math.isfinite(row.median_seconds)]
    fast = [row for row in rows if row.examples_per_second]
    if len(rows) < 2 or not finite or not fast:
        return []
    fewest = min(finite, key=lambda row: row.epochs)
    highest = max(fast, key=lambda row: row.examples_per_second or 0.0)
    best = min(finite, key=lambda row: row.median_seconds)
    text = f"Fewest epochs: {fewest.setting} ({fewest.epochs:.3g}); highest throughput: "
    text += f"{highest.setting} ({highest.examples_per_second:,.0f} examples/s); shortest time: "
    return [f"{text}{best.setting}."]


def _describe_scaling(results: Results) -> list[str]:
    (first, *others), lines = results.highest, []
    for row in others:
        share = summaries.efficiency(row, first)
        if share is None:
            continue
        ideal = f"{row.devices / first.devices:g} times the throughput of {first.devices}"
        text = f"{row.devices} devices reach {share:.0%} of {ideal}"
        if row.communication is not None:
            text += f"; communication is {row.communication:.0%} of a step at most"
        lines.append(f"{text}.")
    return lines


def _describe_generalization(results: Results) -> list[str]:
    lines = []
    for setting in results.settings:
        pairs = summaries.held_out_pairs(setting)
        if len(pairs) > 1:
            gaps = np.array([test - fresh for test, fresh in pairs])
            interval = time_statistics.mean_interval(gaps)
            limits = "95 %: {:+.2f} to {:+.2f}, ".format(*interval) if interval else ""
            gap = f"{np.mean(gaps):+.2f} ({limits}{len(pairs)} runs)"
            lines.append(f"{setting.name}: test score minus held-out score {gap}.")
    return lines


def _describe_latency(results: Results) -> list[str]:
    lines = []
    for setting in results.settings:
        latencies = setting.figures("latency_ms")
        if len(latencies):
            names = [o.facts["runtime"] for o in setting.outcomes if "runtime" in o.facts]
            runtimes = ", ".join(dict.fromkeys(names))
            lines.append(f"{setting.name} answers in {np.median(latencies):.3g} ms ({runtimes}).")
    return lines


def format_median(middle: time_statistics.Interval) -> str:
    """Formats the median of two middle times; ">=" the first if only the second is not finite."""
    low, high = middle
    if math.isinf(low):
        return "did not converge"
    if math.isfinite(low) and not math.isfinite(high):
        return f">={in_units(low)}"
    return "unknown" if math.isnan(low) else in_units((low + high) / 2)
