"""Estimates the time and cost that a study has left, from ended runs or the recipes' evidence."""

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
    """Estimates the seconds until all runs have ended; None if a run's time is unknown.

    A run is expected to take the mean time of the ended runs. If none has ended, it is expected to
    take the time of its recipe's newest evidence, measured perhaps on another machine with other
    settings.

    Args:
      planned: all runs of the study.
      outcomes: run name -> outcome of the ended runs.
      jobs: number of runs at a time.
      begun: seconds that each of the current runs has taken so far.
    """
    each = [length for _, length in _expected(planned, outcomes)]
    if None in each:
        return None
    lengths = [length for length in each if length]
    # A run that takes longer than expected takes nothing from the time of those that wait.
    spent = sum(min(seconds, length) for seconds, length in zip(begun, lengths, strict=False))
    return (sum(lengths) - spent) / min(jobs, max(len(each), 1))


def _expected(
    planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome]
) -> list[tuple[PlannedRun, float | None]]:
    """Returns (run, expected seconds or None) for each run that has not ended."""
    walls = [outcome.wall_seconds for outcome in outcomes.values() if outcome.wall_seconds]
    mean = sum(walls) / len(walls) if walls else None
    return [(run, mean or evidence_seconds(run)) for run in planned if run.name not in outcomes]


def evidence_seconds(run: PlannedRun) -> float | None:
    """Returns the seconds to the threshold by the newest evidence of a run's recipe, or None."""
    rows = [row for row in run.recipe.evidence if isinstance(row, Measured) and row.seconds]
    return rows[-1].seconds if rows else None


def estimate_usd(planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome]) -> float | None:
    """Estimates the USD for all runs that have not ended; None if a price or time is unknown."""
    total = 0.0
    for run, length in _expected(planned, outcomes):
        price = run.settings.get("cost_per_hour")
        if not price or length is None:
            return None
        total += price * length / 3600
    return total


def describe(planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome], jobs: int) -> str:
    """Returns a line with the study's number of runs, the time left and its cost."""
    text = f"{len(planned)} run{'s' * (len(planned) != 1)}, {len(outcomes)} finished before"
    left = estimate_seconds(planned, outcomes, jobs)
    if left is None or len(outcomes) == len(planned):
        return text
    cost = estimate_usd(planned, outcomes)
    price = "" if cost is None else f", {dollars(cost)}"
    return (
        f"{text}; about {format_duration(left)}{price} left{'' if outcomes else ' by its evidence'}"
    )


def format_duration(seconds: float) -> str:
    """Formats a duration as hours:minutes:seconds.

    >>> format_duration(3725.4)
    '1:02:05'
    """
    return str(datetime.timedelta(seconds=int(seconds)))
