"""Summaries of the runs of each setting, and comparisons with the first setting."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dawnbench_tf.studies import estimates, outcomes
from dawnbench_tf.studies.estimates import UNKNOWN, Interval, Times, compare
from dawnbench_tf.studies.grid import PlannedRun, Study
from dawnbench_tf.studies.outcomes import Outcome


class Setting(NamedTuple):
    """The runs of one combination of levels; they differ only in their seed."""

    labels: tuple[str, ...]  # label of its level, for each factor
    outcomes: list[Outcome]
    factors: tuple[str, ...] = ()  # names of the factors; shown before labels that are numbers

    @property
    def name(self) -> str:
        """Labels joined by commas, without "-" (baseline); numbers follow their factor's name."""
        factors = self.factors or ("",) * len(self.labels)
        names = [
            label if re.search("[A-Za-z]", label) else f"{factor} {label}".strip()
            for factor, label in zip(factors, self.labels, strict=True)
            if label != "-"
        ]
        return ", ".join(names) or "baseline"

    @property
    def devices(self) -> int | None:
        """Number of devices that a run trained on, from its settings; None if unknown.

        That of several workers is: `num_gpus` is the number of one worker.
        """
        settings = self.outcomes[0].settings
        if settings.get("strategy", "off") in ("off", "one_device"):
            return 1
        if settings["strategy"] != "mirrored":
            return None
        count = settings.get("num_gpus", -1)
        return count if isinstance(count, int) and count > 0 else settings.get("logical_cpus")

    def times(self, threshold: float) -> Times:
        """Returns the seconds on the clock to a threshold, of each run."""
        seconds, censored = [], []
        for outcome in self.outcomes:
            reached = outcome.seconds_to(threshold)
            crashed = reached is None and outcome.status == outcomes.CRASHED
            never = outcome.seconds if crashed else math.inf
            seconds.append(never if reached is None else reached)
            censored.append(crashed)
        return Times(np.array(seconds, float), np.array(censored, bool))

    def figures(self, *names: str) -> np.ndarray:
        """Returns a numeric fact of each run that has it: `names` is its path in the facts."""
        values = []
        for outcome in self.outcomes:
            value: Any = outcome.facts
            for name in names:
                value = value.get(name) if isinstance(value, Mapping) else None
            if isinstance(value, int | float):
                values.append(float(value))
        return np.array(values)


class Summary(NamedTuple):
    """Statistics of one setting at one threshold. Intervals are 95 %; None means unknown."""

    setting: str
    devices: int | None
    threshold: float
    runs: int
    reached: int
    share: Interval  # interval of the share of runs that reach it
    ended: dict[str, int]  # status -> number of runs
    range_seconds: Interval | None  # least and most on the clock, of the runs that reached it
    middle_seconds: Interval  # the two middle times; the second is inf if half of the runs miss it
    median_seconds: float  # their mean
    median_interval: Interval | None
    mean_seconds: float | None  # of runs that reached it
    mean_interval: Interval | None
    variation: float | None  # coefficient of variation of their times
    epochs: float  # to the threshold, the median
    best_mean: float | None  # mean over runs of the best score
    best_sd: float | None
    usd: float | None  # to the threshold, the median
    examples_per_second: float | None  # median, like the next seven
    share_of_peak: float | None
    input_wait: float | None
    communication: float | None
    process_gib: float | None
    joules: float | None
    # Comparison with the first setting.
    speed_up: float | None
    speed_up_interval: Interval | None
    faster: float | None  # probability that a run takes less time than one of the first
    p_value: float | None
    trials_needed: float | None  # of each, to tell the two apart


class Results(NamedTuple):
    """The results of a study, as reports show them."""

    study: Study
    planned: int  # number of planned runs, ended or not
    settings: list[Setting]
    thresholds: tuple[float, ...]
    by_threshold: dict[float, list[Summary]]

    @property
    def highest(self) -> list[Summary]:
        """The summaries at the highest threshold."""
        return self.by_threshold[self.thresholds[-1]]

    @property
    def metric(self) -> str:
        """The metric of the thresholds."""
        return self.settings[0].outcomes[0].metric


def group_by_setting(
    study: Study, planned: Sequence[PlannedRun], by_name: Mapping[str, Outcome]
) -> list[Setting]:
    """Groups outcomes by setting, in the order of the plan; leaves out settings without one.

    Args:
      study: the study.
      planned: its planned runs.
      by_name: run name -> outcome of the ended runs.
    """
    by_labels: dict[tuple[str, ...], list[Outcome]] = {}
    for run in planned:
        if run.name in by_name:
            by_labels.setdefault(run.labels, []).append(by_name[run.name])
    factors = tuple(factor.name for factor in study.factors)
    return [
        Setting(labels, setting_outcomes, factors) for labels, setting_outcomes in by_labels.items()
    ]


def choose_thresholds(study: Study, settings: Sequence[Setting]) -> tuple[float, ...]:
    """Returns the thresholds to report: the study's own, else the lowest goal of its runs."""
    goals = [outcome.goal for setting in settings for outcome in setting.outcomes]
    return study.thresholds or ((min(goals),) if goals else ())


def summarize(settings: Sequence[Setting], threshold: float) -> list[Summary]:
    """Returns a summary of each setting at a threshold; speed-ups are over the first setting."""
    return [_summary(setting, threshold, settings[0]) for setting in settings]


def _summary(setting: Setting, threshold: float, first: Setting) -> Summary:
    times = setting.times(threshold)
    reached, runs = times.reached, len(setting.outcomes)
    rows = [outcome.row_at(threshold) for outcome in setting.outcomes]
    best = [outcome.best for outcome in setting.outcomes if outcome.best is not None]
    median_seconds, interval = estimates.median_time(times)
    epochs = [row["epoch"] if row else np.inf for row in rows]
    price = next((o.cost_per_hour for o in setting.outcomes if o.cost_per_hour), None)
    return Summary(
        setting=setting.name,
        devices=setting.devices,
        threshold=threshold,
        runs=runs,
        reached=len(reached),
        share=estimates.wilson(len(reached), runs),
        ended=dict(Counter(status_at(outcome, threshold) for outcome in setting.outcomes)),
        range_seconds=(float(reached.min()), float(reached.max())) if len(reached) else None,
        middle_seconds=estimates.middle(times),
        median_seconds=median_seconds,
        median_interval=interval,
        mean_seconds=float(np.mean(reached)) if len(reached) else None,
        mean_interval=estimates.bootstrap(reached, np.mean),
        variation=float(np.std(reached, ddof=1) / np.mean(reached)) if len(reached) > 1 else None,
        epochs=float(np.median(epochs)),
        best_mean=float(np.mean(best)) if best else None,
        best_sd=float(np.std(best, ddof=1)) if best[1:] else None,
        usd=price * median_seconds / 3600 if price else None,
        examples_per_second=_median_or_none(setting.figures("examplesPerSecond")),
        share_of_peak=_median_or_none(setting.figures("utilization", "shareOfPeak")),
        input_wait=_median_or_none(setting.figures("utilization", "inputWaitShare")),
        communication=_median_or_none(setting.figures("utilization", "communicationShare")),
        process_gib=_median_or_none(setting.figures("utilization", "processGiB")),
        joules=_median_or_none(setting.figures("utilization", "energyJoules")),
        **(UNKNOWN if setting is first else compare(times, first.times(threshold)))._asdict(),
    )


def _median_or_none(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None


class Composition(NamedTuple):
    """Speed-ups of single factors over the baseline, and of all factors together."""

    threshold: float
    single: dict[str, float]  # name of the setting -> speed-up
    product: float  # of the single speed-ups
    whole: float  # speed-up of all factors; 0 if together they do not reach the threshold
    interval: Interval | None  # of whole / product


def composition(study: Study, settings: Sequence[Setting], threshold: float) -> Composition | None:
    """Compares the speed-up of all factors with the product of theirs (Coleman et al. 2017, 3.2).

    None unless the study has two factors or more of two levels each and the baseline reaches the
    threshold.
    """
    if len(study.factors) < 2 or any(len(factor.levels) != 2 for factor in study.factors):
        return None
    by_labels = {setting.labels: setting for setting in settings}
    off = tuple(factor.levels[0].label for factor in study.factors)
    on = tuple(factor.levels[1].label for factor in study.factors)
    alone = [(*off[:i], on[i], *off[i + 1 :]) for i in range(len(on))]
    if not {off, on, *alone} <= set(by_labels):
        return None

    times = {labels: by_labels[labels].times(threshold) for labels in (off, on, *alone)}
    middle = {
        labels: estimates.point_median(setting_times) for labels, setting_times in times.items()
    }
    base = middle[off]
    if not math.isfinite(base):
        return None
    single = {by_labels[labels].name: base / middle[labels] for labels in alone}
    interval = estimates.composition_interval(
        times[on], [times[labels] for labels in alone], times[off]
    )
    product = math.prod(single.values())
    return Composition(threshold, single, product, base / middle[on], interval)


class Effect(NamedTuple):
    """Main effect: speed-ups of one level of a factor, for each setting of the other factors."""

    factor: str
    level: str
    speed_ups: list[float]  # over the factor's first level; 0 if the level never reaches it


def main_effects(study: Study, settings: Sequence[Setting], threshold: float) -> list[Effect]:
    """Returns the main effect of each level in a grid of several factors.

    Pairs whose first level has no finite median are left out.
    """
    # Each setting is paired with the one that has the first level of one factor and is otherwise
    # equal; `first` is the first level of each factor, as settings are in the order of the plan.
    middle = {s.labels: estimates.point_median(s.times(threshold)) for s in settings}
    first: dict[int, str] = {}
    pairs: dict[tuple[int, str], list[float]] = {}
    for labels, seconds in middle.items():
        for index, label in enumerate(labels):
            base = (*labels[:index], first.setdefault(index, label), *labels[index + 1 :])
            if base != labels and math.isfinite(middle.get(base, math.inf)):
                pairs.setdefault((index, label), []).append(middle[base] / seconds)
    if len(study.factors) < 2:
        return []
    names = [factor.name for factor in study.factors]
    return [Effect(names[index], label, ratios) for (index, label), ratios in pairs.items()]


def misses(settings: Sequence[Setting], threshold: float) -> list[tuple[str, Outcome]]:
    """Returns (name of the setting, outcome) of each run that did not reach a threshold."""
    return [
        (setting.name, outcome)
        for setting in settings
        for outcome in setting.outcomes
        if status_at(outcome, threshold) != outcomes.REACHED
    ]


def status_at(outcome: Outcome, threshold: float) -> str:
    """Returns the status at `threshold`: REACHED if it was, however the run ended later."""
    return outcomes.REACHED if outcome.row_at(threshold) else outcome.status


def efficiency(row: Summary, first: Summary) -> float | None:
    """Returns the scaling efficiency: throughput per device over the first setting's; 1 is ideal.

    None if a number of devices or a throughput is unknown.
    """
    if not (row.devices and first.devices and row.examples_per_second):
        return None
    if not first.examples_per_second:
        return None
    return (row.examples_per_second / row.devices) / (first.examples_per_second / first.devices)


def held_out_pairs(setting: Setting) -> list[tuple[float, float]]:
    """Returns (last test score, held-out score) of each run that has both."""
    pairs = []
    for outcome in setting.outcomes:
        held_out = (outcome.facts.get("heldOut") or {}).get(outcome.metric)
        if held_out is not None and outcome.rows:
            pairs.append((outcome.rows[-1][outcome.metric], float(held_out)))
    return pairs
