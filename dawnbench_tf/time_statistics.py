"""Statistics of times to accuracy, with runs that never reach their goal; uses scipy.

A run that ended without reaching its goal has an infinite time. A run that crashed is censored: its
time is known only to exceed the time it had trained.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = [
    "Times",
    "Comparison",
    "compare",
    "median_interval",
    "bootstrap_interval",
    "kaplan_meier",
    "mean_interval",
    "wilson",
]

LEVEL = 0.95  # of all intervals
ENOUGH = 5  # runs of a setting, to rank it: the range of 4 holds the median in 88 % of cases only
RESAMPLES = 2000
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Times:
    """Times to accuracy of the runs of one setting. Raises ValueError if they are none.

    Attributes:
      seconds: float array (runs,); inf if the run ended without reaching its goal.
      censored: bool array (runs,); True if the run crashed, so that its time is only known to
        exceed `seconds`.
    """

    seconds: np.ndarray
    censored: np.ndarray

    def __post_init__(self) -> None:
        seconds, censored = np.asarray(self.seconds, float), np.asarray(self.censored, bool)
        are_times = seconds.ndim == 1 and seconds.shape == censored.shape and (seconds >= 0).all()
        if not are_times or np.isinf(seconds[censored]).any():  # nan is not >= 0
            text = "should be numbers of at least 0, finite for a crash, and as many bools"
            raise ValueError(f"`seconds` and `censored` {text}. Received: {self}")
        object.__setattr__(self, "seconds", seconds)
        object.__setattr__(self, "censored", censored)

    @property
    def finished(self) -> int:
        """Number of runs that ended without a crash, at their goal or not."""
        return len(self.seconds) - int(self.censored.sum())

    @property
    def reached(self) -> np.ndarray:
        """Seconds of the runs that reached their goal."""
        return self.seconds[np.isfinite(self.seconds) & ~self.censored]


def wilson(successes: int, runs: int) -> Interval:
    """Returns Wilson's score interval of a proportion (1927).

    Args:
      successes: number of successful runs.
      runs: number of runs.

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    interval = stats.binomtest(successes, runs).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: Sequence[float] | np.ndarray) -> Interval | None:
    """Returns Student's t interval (1908) of the mean; None for fewer than 2 values.

    Args:
      values: observations, finite.

    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    if len(values) < 2:
        return None
    half = float(stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))
    mean = float(np.mean(values))
    return mean - half, mean + half


def kaplan_meier(times: Times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates the share of runs that have reached their goal by a time (Kaplan & Meier 1958).

    Args:
      times: of the runs of one setting.

    Returns:
      Seconds (n,) at which runs reached it; the share from then on (n,); the share's 95 % interval
      (n, 2); where it is not defined, as once all have, from the lower limit before it, or 0, to 1.
    """
    if not len(times.reached):
        return np.zeros(0), np.zeros(0), np.zeros((0, 2))
    # A run that never reaches its goal is right-censored after the last finite time.
    finite = np.isfinite(times.seconds)
    seconds = np.where(finite, times.seconds, times.seconds[finite].max() + 1.0)
    observed = ~times.censored & finite
    data = stats.CensoredData(uncensored=seconds[observed], right=seconds[~observed])
    survival = stats.ecdf(data).sf
    rises = np.isin(survival.quantiles, seconds[observed])  # steps at which a run reaches its goal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the interval is undefined at the ends
        limits = survival.confidence_interval(LEVEL, method="log-log")
    shares = 1 - survival.probabilities[rises]
    bounds = np.stack([limits.high.probabilities[rises], limits.low.probabilities[rises]], axis=1)
    low, high = np.vstack([[0, 1], 1 - bounds]).T
    for index in np.flatnonzero(np.isnan(low)):
        low[index], high[index] = low[index - 1], 1
    return survival.quantiles[rises], shares, np.stack([low, high], axis=1)[1:]


def middle(times: Times) -> Interval:
    """Returns the times of the two middle runs, equal for an odd number; inf where they miss.

    A time is nan where crashed runs leave it unknown: half or more of all crashed, or it is finite
    only if some of these would have reached the goal.

    >>> middle(Times([4.0, 1.0, np.inf, 2.0], [False] * 4))
    (2.0, 4.0)
    >>> middle(Times([4.0, 5.0, 7.0, 7.0, 7.0], [False, False, True, True, True]))
    (nan, nan)
    """
    runs, misses = len(times.seconds), int(np.isinf(times.seconds).sum())
    seconds = _passing(times.seconds, times.censored, _MIDDLE)
    seconds[np.isinf(seconds) | (2 * times.finished <= runs)] = math.nan
    seconds[np.array([(runs - 1) // 2, runs // 2]) >= runs - misses] = math.inf
    return float(seconds[0]), float(seconds[1])


_MIDDLE = (0.5, 0.5 - 2e-12)  # shares that have not reached the goal: at most a half, and below it


def _passing(seconds: np.ndarray, censored: np.ndarray, shares_left: Sequence[float]) -> np.ndarray:
    """Returns the first times at which at most a share has not reached its goal, else inf."""
    # Of samples (..., runs) for each share, (shares, ...), by the Kaplan-Meier estimate. Of equal
    # times those that reach the goal come first.
    order = np.lexsort((censored, seconds))
    seconds, censored = (np.take_along_axis(each, order, -1) for each in (seconds, censored))
    left = np.arange(seconds.shape[-1], 0, -1)
    shares = np.cumprod(1 - (~censored & np.isfinite(seconds)) / left, axis=-1)
    seconds = np.concatenate([seconds, np.full((*seconds.shape[:-1], 1), np.inf)], -1)
    steps = [(shares > share + 1e-12).sum(-1, keepdims=True) for share in shares_left]
    return np.stack([np.take_along_axis(seconds, step, -1)[..., 0] for step in steps])


def median(times: Times) -> float:
    """Returns the mean of the two middle times, which may be inf or nan, see `middle`."""
    return sum(middle(times)) / 2


def median_interval(times: Times) -> Interval | None:
    """Returns the interval of a median by order statistics; None if it is not known.

    Its ends are the times of the runs between whose ranks the median lies with 95 % by the binomial
    distribution; of 5 runs they are the first and the last, with 94 %. It is not known if fewer
    than 5 runs, or half of all, ended without a crash, or if too many missed.

    Args:
      times: of the runs of one setting.

    >>> median_interval(Times([3.0, 1.0, 2.0, 5.0, np.inf, 4.0], [False] * 6))
    (1.0, inf)
    """
    runs = times.finished
    if runs < ENOUGH or 2 * runs <= len(times.seconds):
        return None
    rank = max(1, int(stats.binom.ppf((1 - LEVEL) / 2, runs, 0.5)))
    outside = (rank - 1) / runs  # share of runs beyond each end; at the first fewer are left
    low, high = map(float, _passing(times.seconds, times.censored, (1 - outside - 2e-12, outside)))
    return (low, high) if math.isfinite(low) else None


def bootstrap_interval(statistic: Callable[..., np.ndarray], *samples: Times) -> Interval | None:
    """Returns the percentile interval of a statistic of medians; None if it is never defined.

    Args:
      statistic: function of an array (resamples,) of medians for each sample, e.g. their quotient.
      *samples: times of one setting each; None is returned if fewer than 5 runs of one finished.
    """
    if min(times.finished for times in samples) < ENOUGH:
        return None
    generator = np.random.default_rng(0)
    resampled = []
    for times in samples:
        drawn = generator.integers(0, len(times.seconds), (RESAMPLES, len(times.seconds)))
        resampled.append(_passing(times.seconds[drawn], times.censored[drawn], _MIDDLE).mean(0))
    with np.errstate(all="ignore"):  # inf / inf is nan, and left out
        estimates = statistic(*resampled)
    estimates = estimates[~np.isnan(estimates)]
    if not len(estimates):
        return None
    # scipy.stats.bootstrap interpolates between resamples, which is nan beside an infinite one.
    tails = [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2]
    low, high = np.percentile(estimates, tails, method="inverted_cdf")
    return float(low), float(high)


class Comparison(NamedTuple):
    """Times to accuracy of one setting compared with another's; None where runs are too few.

    Attributes:
      speed_up: the other's median time over its own.
      speed_up_interval: 95 % interval of `speed_up`, by bootstrap.
      faster: probability that a run takes less time than one of the other.
      p_value: two-sided p-value; null hypothesis: neither is faster.
      trials_needed: runs of each setting to tell the two apart at 5 % with 80 % power.
    """

    speed_up: float | None
    speed_up_interval: Interval | None
    faster: float | None
    p_value: float | None
    trials_needed: float | None


UNKNOWN = Comparison(None, None, None, None, None)


def compare(ours: Times, theirs: Times) -> Comparison:
    """Compares two samples of times; crashed runs are censored in every statistic.

    Where fewer than 5 runs of a side finished it returns the speed-up alone.

    Args:
      ours: the times of the setting of interest.
      theirs: the times of the setting that it is compared with.
    """
    with np.errstate(all="ignore"):
        quotient = float(np.float64(median(theirs)) / median(ours))
    speed_up = quotient if 0 < quotient < math.inf else None  # nan fails both
    if min(ours.finished, theirs.finished) < ENOUGH:
        return UNKNOWN._replace(speed_up=speed_up)
    interval = bootstrap_interval(np.divide, theirs, ours) if speed_up else None
    faster = probability_faster(ours, theirs)
    return Comparison(speed_up, interval, faster, p_value(ours, theirs), trials_needed(faster))


def _is_less(ours: Times, theirs: Times) -> np.ndarray:
    """Returns for each pair whether our time is certainly less: bool (n, m)."""
    # Certain only if our time is exact and finite. A censored time exceeds its `seconds`, so it is
    # later than an equal exact time.
    a, b = ours.seconds[:, None], theirs.seconds[None]
    later = (b > a) | (theirs.censored[None] & (b >= a))
    return ~ours.censored[:, None] & np.isfinite(a) & later


def probability_faster(ours: Times, theirs: Times) -> float:
    """Returns the probability that a run of ours takes less time than one of theirs.

    Ties, and pairs that censoring leaves undecided, count half (Gehan 1965). Without crashes this
    is Mann and Whitney's U (1947) divided by the number of pairs.

    >>> never = [False, False]
    >>> probability_faster(Times([1.0, 2.0], never), Times([2.0, np.inf], never))
    0.875
    """
    less, greater = _is_less(ours, theirs), _is_less(theirs, ours).T
    return float(np.mean(0.5 + 0.5 * less - 0.5 * greater))


def p_value(ours: Times, theirs: Times) -> float:
    """Returns the two-sided p-value of the null hypothesis that neither is faster."""
    # Mann and Whitney's test; with crashed runs Gehan's test, by the normal approximation with the
    # variance over all permutations (Mantel 1967).
    if not (ours.censored.any() or theirs.censored.any()):
        return float(stats.mannwhitneyu(ours.seconds, theirs.seconds).pvalue)
    # Gehan's score of a run: runs it certainly beats minus runs that certainly beat it, pooled.
    pooled = Times(np.r_[ours.seconds, theirs.seconds], np.r_[ours.censored, theirs.censored])
    less = _is_less(pooled, pooled)
    scores = less.sum(axis=1) - less.sum(axis=0)
    n, m = len(ours.seconds), len(theirs.seconds)
    variance = n * m / ((n + m) * (n + m - 1)) * float(np.sum(scores**2))
    if not variance:
        return 1.0
    return float(2 * stats.norm.sf(abs(scores[:n].sum()) / math.sqrt(variance)))


def trials_needed(probability: float, power: float = 0.8) -> float:
    """Returns the runs of each of two recipes that a test at the 5 % level needs (Noether 1987).

    `probability` is that a run of the first is faster than one of the second; inf if neither is.

    >>> trials_needed(0.75), trials_needed(0.5)
    (21, inf)
    """
    effect = abs(probability - 0.5)
    if effect < 1e-9:
        return math.inf
    normal = stats.norm.ppf((1 + LEVEL) / 2) + stats.norm.ppf(power)
    return math.ceil(normal**2 / (6 * effect**2))


def trials_for_mean(variation: float, share: float = 0.05) -> int:
    """Returns the runs after which the mean's interval is within `share` of it, by the variation.

    >>> trials_for_mean(0.1)
    18
    """
    # Student's interval is wider than the normal distribution's, with which the search begins.
    runs = max(2, math.ceil((stats.norm.ppf((1 + LEVEL) / 2) * variation / share) ** 2))
    while stats.t.ppf((1 + LEVEL) / 2, runs - 1) * variation > share * math.sqrt(runs):
        runs += 1
    return runs


def format_interval(interval: Interval | None, form: Callable[..., str] = "{:.2f}".format) -> str:
    """Formats a 95 % interval, by default of a ratio; "" if there is none."""
    return f" (95 %: {format_ends(interval, form)})" if interval else ""


def format_ends(interval: Interval, form: Callable[..., str]) -> str:
    """Formats the two ends of an interval; infinity as "no limit"."""
    return " to ".join(form(end) if math.isfinite(end) else "no limit" for end in interval)


def certainty(versus: Any) -> str:
    """Returns the p-value of a comparison and, above 5 %, how many trials tell the two apart."""
    text = f"p = {versus.p_value:.2g}"
    if versus.p_value < 1 - LEVEL:
        return text
    if math.isinf(versus.trials_needed):
        return f"{text}; neither is faster in these runs"
    return f"{text}; {versus.trials_needed:g} trials of each tell the two apart (power 0.8)"
