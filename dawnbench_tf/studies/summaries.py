"""Summaries of the runs of each setting, and comparisons with the first setting."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from dawnbench_tf import time_statistics
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import Study
from dawnbench_tf.studies.outcomes import Outcome
from dawnbench_tf.time_statistics import UNKNOWN, Interval, Times, compare


class Setting(NamedTuple):
    """The runs of one combination of levels; they differ only in their seed."""

    labels: tuple[str, ...]  # label of its level, for each factor
    outcomes: list[Outcome]
    factors: tuple[str, ...] = ()  # names of the factors; shown before labels that are numbers

    @property
    def name(self) -> str:
        """Labels joined by commas, without "-"; numbers and booleans follow their factor's name."""
        factors = self.factors or ("",) * len(self.labels)
        names = [
            f"{factor} {label}".strip() if re.fullmatch("True|False|[-+0-9.,e]+", label) else label
            for factor, label in zip(factors, self.labels, strict=True)
            if label != "-"
        ]
        return ", ".join(names) or "baseline"

    @property
    def devices(self) -> int | None:
        """Number of devices that a run trained on, from its settings; None if unknown."""
        settings = self.outcomes[0].settings
        if settings.get("strategy", "off") in ("off", "one_device"):
            return 1
        if settings["strategy"] != "mirrored":
            return None  # of several workers: `num_gpus` is the number of one worker
        count = settings.get("num_gpus", -1)
        return count if isinstance(count, int) and count > 0 else settings.get("logical_cpus")

    def times(self, threshold: float, column: str = "hours") -> Times:
        """Returns the seconds on the clock, or the epochs, to a threshold, of each run."""
        values, censored = [], []
        for outcome in self.outcomes:
            row = outcome.row_at(threshold)
            # One that crashed, or ended at a lower threshold of its own, might have reached it.
            censored.append(not row and outcome.status in (outcomes.CRASHED, outcomes.REACHED))
            last = outcome.rows[-1][column] if outcome.rows else 0.0
            values.append(row[column] if row else last if censored[-1] else math.inf)
        scale = 3600 if column == "hours" else 1
        return Times(np.array(values, float) * scale, np.array(censored, bool))

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


Summary = SimpleNamespace  # statistics of one setting at one threshold, see `summarize`


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


def choose_thresholds(study: Study, settings: Sequence[Setting]) -> tuple[float, ...]:
    """Returns the thresholds to report: the study's own, else the lowest goal of its runs."""
    return study.thresholds or (min(run.goal for one in settings for run in one.outcomes),)


# Of each run: name in a summary -> path among the facts of its outcome.
FACTS = {
    "examples_per_second": ("examplesPerSecond",),
    "share_of_peak": ("utilization", "shareOfPeak"),
    "input_wait": ("utilization", "inputWaitShare"),
    "communication": ("utilization", "communicationShare"),
    "process_gib": ("utilization", "processGiB"),
    "joules": ("utilization", "energyJoules"),
}


def summarize(settings: Sequence[Setting], threshold: float) -> list[Summary]:
    """Returns statistics of each setting at a threshold, compared with the first setting."""
    # Intervals are 95 %. None means unknown.
    summaries = []
    for setting in settings:
        times, runs = setting.times(threshold), len(setting.outcomes)
        reached, middle = times.reached, time_statistics.middle(times)
        best = [outcome.best for outcome in setting.outcomes if outcome.best is not None]
        prices = (outcome.facts.get("costPerHour") for outcome in setting.outcomes)
        price = next(filter(None, prices), None)
        first = settings[0].times(threshold)
        summary = Summary(
            setting=setting.name,
            devices=setting.devices,
            threshold=threshold,
            runs=runs,
            reached=len(reached),
            finished=times.finished,  # runs that did not crash or end at a lower goal
            share=time_statistics.wilson(len(reached), times.finished) if times.finished else None,
            ended=dict(Counter(status_at(o, threshold) for o in setting.outcomes)),
            range_seconds=(float(reached.min()), float(reached.max())) if len(reached) else None,
            middle_seconds=middle,  # the two middle times; inf: missed, nan: crashes hide them
            median_seconds=sum(middle) / 2,
            median_interval=time_statistics.median_interval(times),
            mean_seconds=_statistic(np.mean, reached),  # of runs that reached it, as the next two
            mean_interval=time_statistics.mean_interval(reached),
            variation=_statistic(stats.variation, reached, 2, ddof=1),
            epochs=time_statistics.median(setting.times(threshold, "epoch")),
            best_mean=_statistic(np.mean, best),  # mean over runs of the best score
            best_sd=_statistic(np.std, best, 2, ddof=1),
            usd=price * sum(middle) / 2 / 3600 if price else None,  # to the threshold, the median
            **{n: _statistic(np.median, setting.figures(*path)) for n, path in FACTS.items()},
            **(UNKNOWN if setting is settings[0] else compare(times, first))._asdict(),
        )
        summaries.append(summary)
    return summaries


def _statistic(function: Callable[..., Any], values: Any, least: int = 1, **options: Any) -> Any:
    """Returns a statistic of at least `least` values; None of fewer."""
    return float(function(values, **options)) if len(values) >= least else None


def composition(
    study: Study, settings: Sequence[Setting], threshold: float
) -> tuple[dict[str, float], float, Interval | None] | None:
    """Compares the speed-up of all factors with the product of theirs."""
    # Coleman et al. 2017, 3.2.
    # Returns name of the setting -> speed-up of each factor alone over the baseline; the speed-up
    # of all, 0 if together they do not reach the threshold; the interval of its share of the
    # product. None unless the study has two factors or more of two levels each, the baseline
    # reaches the threshold, and crashes leave no median unknown (nan).
    if len(study.factors) < 2 or any(len(factor.levels) != 2 for factor in study.factors):
        return None
    by_labels = {setting.labels: setting for setting in settings}
    off = tuple(factor.levels[0].label for factor in study.factors)
    on = tuple(factor.levels[1].label for factor in study.factors)
    alone = [(*off[:i], on[i], *off[i + 1 :]) for i in range(len(on))]
    if not {off, on, *alone} <= set(by_labels):
        return None

    times = {labels: by_labels[labels].times(threshold) for labels in (on, *alone, off)}
    medians = {labels: time_statistics.median(sample) for labels, sample in times.items()}
    base = medians[off]
    if not math.isfinite(base) or not all(seconds > 0 for seconds in medians.values()):
        return None
    single = {by_labels[labels].name: base / medians[labels] for labels in alone}

    def share(whole: np.ndarray, *others: np.ndarray) -> np.ndarray:
        *parts, first = others
        return first / whole / np.prod([first / part for part in parts], axis=0)

    interval = time_statistics.bootstrap_interval(share, *times.values())
    return single, base / medians[on], interval


def main_effects(
    study: Study, settings: Sequence[Setting], threshold: float
) -> dict[tuple[str, str], list[float]]:
    """Returns the main effect of each level, (factor, level), in a grid of several factors."""
    # It is the level's speed-up over the factor's first one, for each setting of the other factors:
    # 0 if it has no finite median, inf if the first level alone has none, nan if both have none.
    if len(study.factors) < 2:
        return {}
    # Each setting is paired with the one that has the first level of one factor and is otherwise
    # equal; `first` has the first level of each factor.
    medians = {s.labels: time_statistics.median(s.times(threshold)) for s in settings}
    first = settings[0].labels
    pairs: dict[tuple[int, str], list[float]] = {}
    for labels, seconds in medians.items():
        for index, label in enumerate(labels):
            base = (*labels[:index], first[index], *labels[index + 1 :])
            if base != labels and base in medians and seconds:
                pairs.setdefault((index, label), []).append(medians[base] / seconds)
    return {(study.factors[i].name, label): each for (i, label), each in pairs.items()}


def misses(settings: Sequence[Setting], threshold: float) -> list[tuple[str, Outcome]]:
    """Returns (name of the setting, outcome) of each run that did not reach a threshold."""
    return [
        (setting.name, outcome._replace(status=status))
        for setting in settings
        for outcome in setting.outcomes
        if (status := status_at(outcome, threshold)) != outcomes.REACHED
    ]


def status_at(outcome: Outcome, threshold: float) -> str:
    """Returns the status at `threshold`: REACHED if it was, however the run ended later."""
    if outcome.row_at(threshold):
        return outcomes.REACHED
    return f"ended at {outcome.goal:g}" if outcome.status == outcomes.REACHED else outcome.status


def efficiency(row: Summary, first: Summary) -> float | None:
    """Returns the scaling efficiency: throughput per device over the first setting's."""
    # None if a number of devices or a throughput is unknown.
    if not all(one.devices and one.examples_per_second for one in (row, first)):
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
