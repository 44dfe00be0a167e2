"""How long a study's runs take, and what they cost: from those that are finished, else evidence."""

import datetime
from collections.abc import Mapping, Sequence

from dawnbench_tf.money import dollars
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.studies.grid import PlannedRun
from dawnbench_tf.studies.outcomes import Outcome


def estimate_seconds(
    planned: Sequence[PlannedRun],
    outcomes: Mapping[str, Outcome],
    jobs: int = 1,
    begun: Sequence[float] = (),
) -> float | None:
    """Seconds until all runs have ended; None if nothing is known of any.

    Each is taken to last as long as the mean of those that have ended; before there is one, as long
    as its recipe's newest evidence, which may be of another machine and other settings.

    Args:
      planned: all runs of the study.
      outcomes: of those that have ended, by name.
      jobs: how many run at a time.
      begun: seconds that each of those that run now has taken so far.
    """
    each = [length for _, length in _expected(planned, outcomes)]
    if None in each:
        return None
    total = sum(filter(None, each))
    return max(total - sum(begun), 0.0) / min(jobs, max(len(each), 1))


def _expected(planned, outcomes):
    """Each run that has not ended, with the seconds that it is expected to take, or None."""
    walls = [outcome.wall_seconds for outcome in outcomes.values() if outcome.wall_seconds]
    mean = sum(walls) / len(walls) if walls else None
    return [(run, mean or _evidence_seconds(run)) for run in planned if run.name not in outcomes]


def _evidence_seconds(run):
    rows = [row for row in run.recipe.evidence if isinstance(row, Measured) and row.seconds]
    return rows[-1].seconds if rows else None


def estimate_usd(planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome]) -> float | None:
    """Dollars for the runs that have not ended; None if a price or a time is not known."""
    total = 0.0
    for run, length in _expected(planned, outcomes):
        price = run.settings.get("cost_per_hour")
        if not price or length is None:
            return None
        total += price * length / 3600
    return total


def describe(planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome], jobs: int) -> str:
    """Returns a line with a study's number of runs, the time that is left and its cost."""
    text = f"{len(planned)} runs, {len(outcomes)} finished before"
    left = estimate_seconds(planned, outcomes, jobs)
    if left is None or len(outcomes) == len(planned):
        return text
    cost = estimate_usd(planned, outcomes)
    price = "" if cost is None else f", {dollars(cost)}"
    return (
        f"{text}; about {format_duration(left)}{price} left{'' if outcomes else ' by its evidence'}"
    )


def format_duration(seconds: float) -> str:
    """A length of time: hours, minutes, seconds.

    >>> format_duration(3725.4)
    '1:02:05'
    """
    return str(datetime.timedelta(seconds=int(seconds)))
