"""Statistics of times to accuracy, of which some never come; by scipy.

A run that ended without reaching its goal never does: its time is infinite. A run that crashed is
censored: its time would have been more than what it had trained.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = ["Times", "Comparison", "compare", "median_time", "kaplan_meier", "bootstrap", "wilson"]

LEVEL = 0.95  # of all intervals
RESAMPLES = 2000
_CENSORED_RESAMPLES = 400  # where each takes a Kaplan-Meier estimate
Interval = tuple[float, float]


class Times(NamedTuple):
    """Times to accuracy of one setting's runs, in seconds."""

    seconds: np.ndarray  # inf: never
    censored: np.ndarray  # bool: it would have been more than `seconds`

    @property
    def reached(self) -> np.ndarray:
        """The times that are."""
        return self.seconds[np.isfinite(self.seconds) & ~self.censored]


def wilson(successes: int, runs: int) -> Interval:
    """Wilson's score interval of a share (1927).

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    interval = stats.binomtest(successes, runs).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap(
    values: Sequence[float] | np.ndarray, statistic: Callable[..., Any], resamples: int = RESAMPLES
) -> Interval | None:
    """Percentile bootstrap interval (Efron 1979); None for fewer than three values.

    Args:
      values: of which some may be infinite.
      statistic: of values along an axis, as numpy.mean.
      resamples: how many; always the same ones are drawn.
    """
    values = np.asarray(values, float)
    if len(values) < 3:
        return None
    drawn = np.random.default_rng(0).integers(0, len(values), (resamples, len(values)))
    return _percentile_interval(statistic(values[drawn], axis=1))


def _percentile_interval(estimates):
    """The interval of resampled estimates; those that are nan are left out. None: all are."""
    estimates = estimates[~np.isnan(estimates)]
    if not len(estimates):
        return None
    tail = (1 - LEVEL) / 2
    low, high = np.percentile(estimates, [100 * tail, 100 * (1 - tail)], method="inverted_cdf")
    return float(low), float(high)


def median(values: np.ndarray, axis: int = -1) -> Any:
    """Median of times of which some may be infinite: the time by which half have reached."""
    return np.quantile(values, 0.5, axis=axis, method="inverted_cdf")


def kaplan_meier(times: Times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of runs that have reached their goal by a time (Kaplan & Meier 1958).

    Returns:
      Seconds (n,) at which runs reached it; the share from then on (n,); its 95 % interval (n, 2),
      nan where that is not defined.
    """
    if not len(times.reached):
        return np.zeros(0), np.zeros(0), np.zeros((0, 2))
    survival, rises = _survival(times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the interval is undefined at the ends
        limits = survival.confidence_interval(LEVEL, method="log-log")
    shares = 1 - survival.probabilities[rises]
    bounds = np.stack([limits.high.probabilities[rises], limits.low.probabilities[rises]], axis=1)
    return survival.quantiles[rises], shares, 1 - bounds


def _survival(times):
    """Share of runs that have not reached their goal yet, and at which of its times runs do."""
    finite = np.isfinite(times.seconds)
    last = times.seconds[finite].max() + 1.0  # after which those that never reach it are left
    seconds = np.where(finite, times.seconds, last)
    observed = ~times.censored & finite
    data = stats.CensoredData(uncensored=seconds[observed], right=seconds[~observed])
    survival = stats.ecdf(data).sf
    return survival, np.isin(survival.quantiles, seconds[observed])


def point_median(times: Times) -> float:
    """The median of `median_time`, without the work that the interval takes."""
    return _kaplan_meier_median(times) if times.censored.any() else float(median(times.seconds))


def median_time(times: Times) -> tuple[float, Interval | None]:
    """The time by which half of the runs have reached their goal, and its interval.

    inf where fewer than half ever do.
    """
    if len(times.seconds) < 3:
        return point_median(times), None
    return point_median(times), _percentile_interval(
        _resampled_medians(times, np.random.default_rng(0), _resamples(times))
    )


def _resamples(*samples):
    """How many times to resample: a Kaplan-Meier estimate in each takes longer."""
    return _CENSORED_RESAMPLES if any(s.censored.any() for s in samples) else RESAMPLES


def _resampled_medians(times, generator, resamples):
    """Medians (resamples,) of as many runs, drawn with replacement."""
    drawn = generator.integers(0, len(times.seconds), (resamples, len(times.seconds)))
    if not times.censored.any():
        return median(times.seconds[drawn])
    return np.array(
        [_kaplan_meier_median(Times(times.seconds[own], times.censored[own])) for own in drawn]
    )


def _kaplan_meier_median(times):
    if not len(times.reached):
        return math.inf
    survival, _ = _survival(times)
    half = np.flatnonzero(survival.probabilities <= 0.5 + 1e-12)
    return float(survival.quantiles[half[0]]) if len(half) else math.inf


class Comparison(NamedTuple):
    """One setting's times to accuracy against another's. None: too few runs to know."""

    speed_up: float | None  # the other's median over its own
    speed_up_interval: Interval | None
    faster: float | None  # probability that a run takes less time than one of the other
    p_value: float | None  # two-sided, that neither is faster
    trials_needed: float | None  # of each, to tell the two apart


UNKNOWN = Comparison(None, None, None, None, None)


def compare(ours: Times, theirs: Times) -> Comparison:
    """Holds the times of our runs against those of others; crashed runs are censored in all of it.

    Nothing is known of a side whose runs have all crashed.
    """
    if ours.censored.all() or theirs.censored.all():
        return UNKNOWN
    speed_up, interval = ratio(ours, theirs)
    probability = probability_faster(ours, theirs)
    several = len(ours.seconds) > 1 and len(theirs.seconds) > 1
    return Comparison(
        speed_up=speed_up if 0 < speed_up < math.inf else None,  # nan fails both
        speed_up_interval=interval,
        faster=probability,
        p_value=p_value(ours, theirs) if several else None,
        trials_needed=trials_needed(probability) if several else None,
    )


def _is_less(ours, theirs):
    """For each pair (ours, theirs), whether our time is certainly less: bool (n, m)."""
    a, b = ours.seconds[:, None], theirs.seconds[None]
    later = (b > a) | (theirs.censored[None] & (b >= a))
    return ~ours.censored[:, None] & np.isfinite(a) & later


def probability_faster(ours: Times, theirs: Times) -> float:
    """Probability that a run of ours takes less time than one of theirs.

    Ties, and pairs of which a crash leaves open which was faster, count half (Gehan 1965); without
    crashes this is Mann and Whitney's U over the number of pairs (1947).

    >>> never, done = np.array([False, False]), np.array([1.0, 2.0])
    >>> probability_faster(Times(done, never), Times(np.array([2.0, np.inf]), never))
    0.875
    """
    less, greater = _is_less(ours, theirs), _is_less(theirs, ours).T
    return float(np.mean(0.5 + 0.5 * less - 0.5 * greater))


def p_value(ours: Times, theirs: Times) -> float:
    """Two-sided p-value that neither is faster.

    Mann and Whitney's test; with crashed runs Gehan's, by the normal approximation with the
    variance over all permutations (Mantel 1967).
    """
    if not (ours.censored.any() or theirs.censored.any()):
        value = float(stats.mannwhitneyu(ours.seconds, theirs.seconds).pvalue)
        return 1.0 if math.isnan(value) else value  # all times alike
    pooled = Times(*(np.concatenate(parts) for parts in zip(ours, theirs, strict=True)))
    less = _is_less(pooled, pooled)
    scores = less.sum(axis=1) - less.sum(axis=0)
    n, m = len(ours.seconds), len(theirs.seconds)
    variance = n * m / ((n + m) * (n + m - 1)) * float(np.sum(scores**2))
    if not variance:
        return 1.0
    return float(2 * stats.norm.sf(abs(scores[:n].sum()) / math.sqrt(variance)))


def trials_needed(probability: float, power: float = 0.8) -> float:
    """Runs of each of two recipes after which a test at 5 % tells them apart (Noether 1987).

    Args:
      probability: that a run of the one is faster than a run of the other.
      power: how likely the test is to tell.

    >>> trials_needed(0.75), trials_needed(0.5)
    (21, inf)
    """
    effect = abs(probability - 0.5)
    if effect < 1e-9:
        return math.inf
    normal = stats.norm.ppf((1 + LEVEL) / 2) + stats.norm.ppf(power)
    return math.ceil(normal**2 / (6 * effect**2))


def trials_for_mean(variation: float, share: float = 0.05) -> int:
    """Runs after which the mean is known to a share of itself, at 95 %.

    >>> trials_for_mean(0.1)
    16
    """
    normal = stats.norm.ppf((1 + LEVEL) / 2)
    return max(2, math.ceil((normal * variation / share) ** 2))


def ratio(ours: Times, theirs: Times) -> tuple[float, Interval | None]:
    """How many times as long the median of theirs is as that of ours, with its interval.

    nan where neither is finite; no interval for fewer than three runs of a side.
    """
    with np.errstate(all="ignore"):
        value = float(np.float64(point_median(theirs)) / point_median(ours))
        if min(len(ours.seconds), len(theirs.seconds)) < 3:
            return value, None
        generator, count = np.random.default_rng(0), _resamples(ours, theirs)
        ratios = _resampled_medians(theirs, generator, count) / _resampled_medians(
            ours, generator, count
        )
    return value, _percentile_interval(ratios)


def composition_interval(whole: Times, parts: Sequence[Times], base: Times) -> Interval | None:
    """Interval of the speed-up of all factors together, over the product of each one's.

    Args:
      whole: with all factors.
      parts: with one factor each.
      base: with none.
    """
    samples = (whole, *parts, base)
    if min(len(times.seconds) for times in samples) < 3:
        return None
    generator, count = np.random.default_rng(0), _resamples(*samples)
    first, *single, last = (_resampled_medians(times, generator, count) for times in samples)
    with np.errstate(all="ignore"):
        shares = (last / first) / np.prod([last / medians for medians in single], axis=0)
    return _percentile_interval(shares)
