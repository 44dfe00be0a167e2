"""What the runs of each setting come to, and settings against the first."""

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
    """The runs that differ in nothing but their seed."""

    labels: tuple[str, ...]  # of its level of each factor
    outcomes: list[Outcome]
    factors: tuple[str, ...] = ()  # names of the factors, for labels that are mere numbers

    @property
    def name(self) -> str:
        """Its levels, those of the baseline ("-") left out; a number with its factor's name."""
        factors = self.factors or ("",) * len(self.labels)
        names = [
            label if re.search("[A-Za-z]", label) else f"{factor} {label}".strip()
            for factor, label in zip(factors, self.labels, strict=True)
            if label != "-"
        ]
        return ", ".join(names) or "baseline"

    @property
    def devices(self) -> int | None:
        """Devices that a run trained on, as its settings have it; None if they do not say."""
        settings = self.outcomes[0].settings
        if settings.get("strategy", "off") in ("off", "one_device"):
            return 1
        count = settings.get("num_gpus", -1)
        return count if isinstance(count, int) and count > 0 else settings.get("logical_cpus")

    def times(self, threshold: float) -> Times:
        """Seconds on the clock to a threshold."""
        seconds, censored = [], []
        for outcome in self.outcomes:
            reached = outcome.seconds_to(threshold)
            crashed = reached is None and outcome.status == outcomes.CRASHED
            never = outcome.seconds if crashed else math.inf
            seconds.append(never if reached is None else reached)
            censored.append(crashed)
        return Times(np.array(seconds, float), np.array(censored, bool))

    def figures(self, *names: str) -> np.ndarray:
        """A figure of each run that has it: facts by name, nested ones by their path."""
        values = []
        for outcome in self.outcomes:
            value: Any = outcome.facts
            for name in names:
                value = value.get(name) if isinstance(value, Mapping) else None
            if isinstance(value, int | float):
                values.append(float(value))
        return np.array(values)


class Summary(NamedTuple):
    """One setting at one threshold. Intervals are of 95 %; None is what is not known."""

    setting: str
    devices: int | None
    threshold: float
    runs: int
    reached: int
    share: Interval  # of runs that reached it
    ended: dict[str, int]  # runs by how they ended
    median_seconds: float  # on the clock, to the threshold; inf: fewer than half reach it
    median_interval: Interval | None
    mean_seconds: float | None  # of runs that reached it
    mean_interval: Interval | None
    variation: float | None  # coefficient of variation of these
    epochs: float  # to the threshold, the median
    best_mean: float | None  # of each run's best score
    best_sd: float | None
    usd: float | None  # to the threshold, the median
    examples_per_second: float | None  # the median, as are those below
    share_of_peak: float | None
    input_wait: float | None
    communication: float | None
    process_gib: float | None
    joules: float | None
    # Against the first setting.
    speed_up: float | None
    speed_up_interval: Interval | None
    faster: float | None  # probability that a run takes less time than one of the first
    p_value: float | None
    trials_needed: float | None  # of each, to tell the two apart


class Results(NamedTuple):
    """All that a report says of a study."""

    study: Study
    planned: int  # runs, those that have not ended among them
    settings: list[Setting]
    thresholds: tuple[float, ...]
    by_threshold: dict[float, list[Summary]]

    @property
    def highest(self) -> list[Summary]:
        """The summaries at the highest threshold."""
        return self.by_threshold[self.thresholds[-1]]

    @property
    def metric(self) -> str:
        """What the thresholds are of."""
        return self.settings[0].outcomes[0].metric


def group_by_setting(
    study: Study, planned: Sequence[PlannedRun], by_name: Mapping[str, Outcome]
) -> list[Setting]:
    """The outcomes by setting, in the order of the plan; settings without one are left out.

    Args:
      study: whose runs they are.
      planned: its runs.
      by_name: outcomes of those that have ended.
    """
    by_labels: dict[tuple[str, ...], list[Outcome]] = {}
    for run in planned:
        if run.name in by_name:
            by_labels.setdefault(run.labels, []).append(by_name[run.name])
    factors = tuple(factor.name for factor in study.factors)
    return [Setting(labels, of_setting, factors) for labels, of_setting in by_labels.items()]


def choose_thresholds(study: Study, settings: Sequence[Setting]) -> tuple[float, ...]:
    """What times are given to: the study's own, else the lowest goal of its runs."""
    goals = [outcome.goal for setting in settings for outcome in setting.outcomes]
    return study.thresholds or ((min(goals),) if goals else ())


def summarize(settings: Sequence[Setting], threshold: float) -> list[Summary]:
    """A summary of each setting; speed-ups are over the first."""
    return [_summary(setting, threshold, settings[0]) for setting in settings]


def _summary(setting, threshold, first):
    times = setting.times(threshold)
    reached, runs = times.reached, len(setting.outcomes)
    rows = [outcome.row_at(threshold) for outcome in setting.outcomes]
    best = [outcome.best for outcome in setting.outcomes if outcome.best is not None]
    median_seconds, interval = estimates.median_time(times)
    price = next((o.cost_per_hour for o in setting.outcomes if o.cost_per_hour), None)
    return Summary(
        setting=setting.name,
        devices=setting.devices,
        threshold=threshold,
        runs=runs,
        reached=len(reached),
        share=estimates.wilson(len(reached), runs),
        ended=dict(Counter(status_at(outcome, threshold) for outcome in setting.outcomes)),
        median_seconds=median_seconds,
        median_interval=interval,
        mean_seconds=float(np.mean(reached)) if len(reached) else None,
        mean_interval=estimates.bootstrap(reached, np.mean),
        variation=float(np.std(reached, ddof=1) / np.mean(reached)) if len(reached) > 1 else None,
        epochs=float(estimates.median(np.array([row["epoch"] if row else np.inf for row in rows]))),
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


def _median_or_none(values):
    return float(np.median(values)) if len(values) else None


class Composition(NamedTuple):
    """Speed-ups of single factors over the baseline, and of all of them together."""

    threshold: float
    single: dict[str, float]  # by the name of the setting
    product: float
    whole: float  # 0 where all together do not reach the threshold
    interval: Interval | None  # of whole / product


def composition(study: Study, settings: Sequence[Setting], threshold: float) -> Composition | None:
    """Whether speed-ups multiply (Coleman et al. 2017, section 3.2).

    None where the grid is not one of factors that are there or not, or the baseline never reaches
    the threshold.
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
    middle = {labels: estimates.point_median(of_labels) for labels, of_labels in times.items()}
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
    """Speed-ups of one level of a factor, over all settings of the other factors."""

    factor: str
    level: str
    speed_ups: list[float]  # over the first level, in each pair that differs in it alone; 0: never


def main_effects(study: Study, settings: Sequence[Setting], threshold: float) -> list[Effect]:
    """The effect of each level in a grid of several factors.

    Pairs of which the first level's runs have no median are left out: there is nothing to divide.
    """
    middle = {s.labels: estimates.point_median(s.times(threshold)) for s in settings}
    first: dict[int, str] = {}
    pairs: dict[tuple[int, str], list[float]] = {}
    for labels, seconds in middle.items():
        for place, label in enumerate(labels):
            base = (*labels[:place], first.setdefault(place, label), *labels[place + 1 :])
            if base != labels and math.isfinite(middle.get(base, math.inf)):
                pairs.setdefault((place, label), []).append(middle[base] / seconds)
    if len(study.factors) < 2:
        return []
    names = [factor.name for factor in study.factors]
    return [Effect(names[place], label, ratios) for (place, label), ratios in pairs.items()]


def misses(settings: Sequence[Setting], threshold: float) -> list[tuple[str, Outcome]]:
    """The runs that did not reach a threshold, with the names of their settings."""
    return [
        (setting.name, outcome)
        for setting in settings
        for outcome in setting.outcomes
        if status_at(outcome, threshold) != outcomes.REACHED
    ]


def status_at(outcome: Outcome, threshold: float) -> str:
    """How a run ended, as far as a threshold goes: it may have been trained for more."""
    reached = outcome.row_at(threshold) and outcome.status == outcomes.MISSED
    return outcomes.REACHED if reached else outcome.status


def efficiency(row: Summary, first: Summary) -> float | None:
    """Throughput for each device over that of the first setting: 1 is ideal.

    None where a number of devices or a throughput is not known.
    """
    if not (row.devices and first.devices and row.examples_per_second):
        return None
    if not first.examples_per_second:
        return None
    return (row.examples_per_second / row.devices) / (first.examples_per_second / first.devices)


def held_out_pairs(setting: Setting) -> list[tuple[float, float]]:
    """Of each run, its last score on the test, and that on examples that were held out."""
    pairs = []
    for outcome in setting.outcomes:
        held_out = (outcome.facts.get("heldOut") or {}).get(outcome.metric)
        if held_out is not None and outcome.rows:
            pairs.append((outcome.rows[-1][outcome.metric], float(held_out)))
    return pairs
