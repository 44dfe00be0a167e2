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
    return _between(statistic(values[drawn], axis=1))


def _between(estimates):
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


def median_time(times: Times) -> tuple[float, Interval | None]:
    """The time by which half of the runs have reached their goal, and its interval.

    inf where fewer than half ever do.
    """
    if not times.censored.any():
        return float(median(times.seconds)), bootstrap(times.seconds, median)
    draws = np.random.default_rng(0).integers(
        0, len(times.seconds), (_CENSORED_RESAMPLES, len(times.seconds))
    )
    estimates = [_median_km(Times(times.seconds[own], times.censored[own])) for own in draws]
    return _median_km(times), _between(estimates) if len(times.seconds) > 2 else None


def _median_km(times):
    if not len(times.reached):
        return math.inf
    survival, _ = _survival(times)
    half = np.flatnonzero(survival.probabilities <= 0.5 + 1e-12)
    return float(survival.quantiles[half[0]]) if len(half) else math.inf


def faster(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Probability that a run of ours takes less time than one of theirs, ties counted half.

    Mann and Whitney's U over the number of pairs (1947); times may be infinite.

    >>> faster(np.array([1.0, 2.0]), np.array([2.0, np.inf]))
    0.875
    """
    statistic = stats.mannwhitneyu(theirs, ours, method="asymptotic").statistic
    return float(statistic) / (len(ours) * len(theirs))


def p_value(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Two-sided p-value of Mann and Whitney's test that neither is faster."""
    value = float(stats.mannwhitneyu(ours, theirs).pvalue)
    return 1.0 if math.isnan(value) else value  # all times alike


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


def ratio(
    ours: np.ndarray, theirs: np.ndarray, resamples: int = RESAMPLES
) -> tuple[float, Interval | None]:
    """How many times as long the median of theirs is as that of ours, with its interval.

    nan where neither is finite.
    """
    draw = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        value = float(median(theirs) / median(ours))
        if min(len(ours), len(theirs)) < 3:
            return value, None
        of_theirs = median(theirs[draw.integers(0, len(theirs), (resamples, len(theirs)))])
        of_ours = median(ours[draw.integers(0, len(ours), (resamples, len(ours)))])
        ratios = of_theirs / of_ours
    ratios = ratios[~np.isnan(ratios)]
    return value, _between(ratios) if len(ratios) else None
