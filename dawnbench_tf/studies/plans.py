"""The time and cost of a study's runs: planned before the first, and left while they run."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from dawnbench_tf import recipes, terminal
from dawnbench_tf.clock import duration
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.recipes import speed
from dawnbench_tf.recipes.speed import SpeedTest
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.studies.grid import PlannedRun, Study
from dawnbench_tf.studies.outcomes import Outcome
from dawnbench_tf.submission import prices
from dawnbench_tf.terminal import counted, dollars

MOST_TESTS = 4  # networks of a study whose steps are timed
SECONDS = 45.0  # for each of them
_ROWS = 20  # settings that the table shows

Network = tuple[str, str, str, tuple[int, ...]]  # task, model, precision, image sizes


class PlannedSetting(NamedTuple):
    """The runs of one setting of a study, before they begin; None: unknown."""

    name: str  # as its folder is named
    runs: int
    epochs: float  # to the threshold, by the recipe's evidence; or all of them
    at_most: bool  # whether `epochs` are all, as there is no evidence
    clock_seconds: float | None  # of one run
    # Wall time of one run, with imports and evaluations; None unless its steps were timed.
    seconds: float | None
    usd: float | None  # price of the wall time of one run


class Plan(NamedTuple):
    """Runs, time and cost of a study that has not begun; `str()` gives a table."""

    settings: list[PlannedSetting]
    source: str  # where the times come from, for people

    @property
    def runs(self) -> int:
        return sum(row.runs for row in self.settings)

    def total(self, name: str) -> float | None:
        """Sum of "seconds", "usd" or "clock_seconds" of all runs; None if one is unknown."""
        # Runs that `--jobs` starts together on one machine are expected to take as long in all.
        each = [(getattr(row, name), row.runs) for row in self.settings]
        return None if any(value is None for value, _ in each) else sum(v * n for v, n in each)

    def __str__(self) -> str:
        def text(seconds: float | None) -> str:
            return "?" if seconds is None else duration(seconds)

        head = f"{'setting':28} {'runs':>4} {'epochs':>6} {'on the clock':>12} {'a run':>8}"
        lines = [f"{head} {'all':>8} {'USD':>8}"]
        for row in self.settings[:_ROWS]:
            epochs = f"{'<=' * row.at_most}{row.epochs:.4g}"
            every = None if row.seconds is None else row.seconds * row.runs
            cost = "" if row.usd is None else dollars(row.usd * row.runs)
            lines.append(
                f"{terminal.padded(row.name, 28)} {row.runs:4} {epochs:>6} "
                f"{text(row.clock_seconds):>12} {text(row.seconds):>8} {text(every):>8} "
                f"{cost:>8}".rstrip()
            )
        if len(self.settings) > _ROWS:
            lines.append(f"... and {len(self.settings) - _ROWS} more settings")
        clock, wall, usd = map(self.total, ("clock_seconds", "seconds", "usd"))
        most = "at most " * any(row.at_most for row in self.settings)
        time = "unknown time" if clock is None else f"{most}{duration(clock)} on the clock"
        if wall is not None:
            cost = "" if usd is None else f", {dollars(usd)}"
            time = f"{most}{duration(wall)}{cost} of wall time"
        lines.append(f"plan: {counted(self.runs, 'run')}, {time}; {self.source}")
        return "\n".join(lines)


def make(planned: Sequence[PlannedRun], estimates: bool = True, elsewhere: bool = False) -> Plan:
    """Plans a study: times some steps of its networks on this machine, one after another."""
    # Nothing is timed without `estimates`, and if the runs are `elsewhere`, by a launch template.
    by_setting: dict[str, list[PlannedRun]] = {}
    for run in planned:
        by_setting.setdefault(run.name.rpartition("/")[0], []).append(run)
        _price(run.options.credits)  # refuses a wrong instance before anything is timed
    tests: dict[Network, SpeedTest] = {}
    failure, load = "", os.getloadavg()[0]
    if estimates and not elsewhere:
        counts = Counter(_network(run.recipe) for run in planned)
        # Each network is timed in its first setting; others are expected to take as long an epoch.
        first = {_network(run.recipe): run for run in reversed(planned)}
        for network, _ in counts.most_common(MOST_TESTS):
            text = f"timing {network[1]} for the plan, up to {SECONDS:.0f} s"
            terminal.status(text, logged=False)
            run = first[network]
            try:
                tests[network] = speed.take(run.recipe, run.options, SECONDS)
            except Refusal as refusal:
                failure = failure or one_line(refusal, 80)
        terminal.status("")

    rows = []
    for name, runs in by_setting.items():
        run, test = runs[0], tests.get(_network(runs[0].recipe))
        hits, count = speed.epochs_of_evidence(run.recipe)
        epochs = float(run.recipe.epochs)
        if count:  # a miss trains all epochs
            epochs = (sum(hits) + (count - len(hits)) * epochs) / count
        clock = wall = None
        row, own = speed.newest_evidence(run.recipe), recipes.rows().get(run.recipe.name)
        if test is not None:
            clock, wall = test.clock_seconds(epochs), test.wall_seconds(epochs, run.recipe)
        elif row and row.seconds and own and _network(own) == _network(run.recipe):
            clock = row.seconds / float(np.mean(row.epochs)) * epochs  # at its pace
        price = _price(run.options.credits)
        usd = price * wall / 3600 if price and wall is not None else None
        rows.append(PlannedSetting(name, len(runs), epochs, not count, clock, wall, usd))

    if elsewhere:
        source = "by the recipes' evidence, as --launch starts the runs elsewhere"
    elif tests:
        steps = sum(n for t in tests.values() for phase in t.phases for _, n in phase.laps)
        source = f"by {steps:,} steps timed on this machine"
        if load > 1:
            source += f", whose load was {load:.1f}: it may be slower than on a quiet one"
    else:
        source = "by the recipes' evidence, perhaps of another machine"
    source += f" (not timed: {failure})" * bool(failure)
    if any(row.seconds is None for row in rows):
        source += "; ?: not known, as its steps were not timed"
    return Plan(rows, source)


def fit(study: Study, plan: Plan, seconds: float) -> tuple[Study, Plan, str]:
    """Reduces the trials and the levels of a study until its runs fit into seconds of wall time."""
    # Returns the reduced study, its plan, and a text that says what is left out.
    from dawnbench_tf.time_statistics import ENOUGH  # slow: SciPy

    each = {n: row.seconds for n, row in enumerate(plan.settings) if row.seconds is not None}
    for row in plan.settings:
        if row.seconds is None:
            text = f"the steps of {row.name} were not timed (--launch and --noestimate time none)"
            refuse("minutes", "", f"{text}; set trials and levels")
    # A report ranks settings from ENOUGH trials on. If these do not fit and there is one factor,
    # its slowest levels are left out, of equally slow ones the last. The baseline, the level that
    # is the recipe as it is, and two levels at least stay. Then the number of trials falls.
    costliest: list[int] = []
    if len(study.factors) == 1:
        own, levels = study.get(study.recipe).values(), study.factors[0].levels
        others = [n for n in each if any(own.get(k) != v for k, v in levels[n].settings.items())]
        costliest = sorted(set(others) - {0}, key=lambda n: (-each[n], -n))[: len(each) - 2]
    for least in range(min(study.trials, ENOUGH), 0, -1):
        kept = [*each]
        for level in costliest:
            if least * sum(each[n] for n in kept) > seconds:
                kept.remove(level)
        once = sum(each[n] for n in kept)
        if least * once <= seconds:
            break
    else:
        text = f"one run of each of {len(kept)} settings takes {duration(once)} here"
        raise Refusal(f"--minutes leaves {duration(max(0, seconds))} after the plan; {text}")
    trials = min(study.trials, int(seconds / once))
    texts = [f"{trials} of {study.trials} trials"] if trials < study.trials else []
    if dropped := [row.name for n, row in enumerate(plan.settings) if n not in kept]:
        texts.append(f"left out: {', '.join(dropped)}")
        (factor,) = study.factors
        levels = tuple(factor.levels[n] for n in kept)
        study = replace(study, factors=(factor._replace(levels=levels),))
    rows = [plan.settings[n]._replace(runs=trials) for n in kept]
    return replace(study, trials=trials), plan._replace(settings=rows), "; ".join(texts)


@cache  # says where an instance's price is from, once
def _price(credits: Credits) -> float | None:
    return prices.with_instance_price(credits).cost_per_hour


def _network(recipe: Recipe) -> Network:
    return recipe.whole_task.name, recipe.model, recipe.precision, recipe.sizes


def seconds_left(
    planned: Sequence[PlannedRun],
    outcomes: Mapping[str, Outcome],
    jobs: int = 1,
    begun: Sequence[float] = (),
) -> float | None:
    """Estimates the seconds until all runs have ended; None if none has ended."""
    # A run is expected to take the mean time of the ended runs; `begun` are the seconds that each
    # of the current runs has taken so far.
    # The last process of an interrupted run takes less time than the run.
    walls = [max(o.wall_seconds, o.seconds) for o in outcomes.values() if o.wall_seconds]
    count = sum(run.name not in outcomes for run in planned)
    if not walls:
        return None
    mean = sum(walls) / len(walls)
    # A run that takes longer than expected takes nothing from the time of those that wait.
    spent = sum(min(seconds, mean) for seconds in begun)
    return (count * mean - spent) / min(jobs, max(count, 1))


def describe(planned: Sequence[PlannedRun], outcomes: Mapping[str, Outcome], jobs: int) -> str:
    """Returns a line with the study's number of runs, and the time and cost that are left."""
    text = f"{counted(len(planned), 'run')}, {len(outcomes)} finished before"
    left = seconds_left(planned, outcomes, jobs)
    if left is None or len(outcomes) == len(planned):
        return text
    each = left * min(jobs, len(planned) - len(outcomes)) / (len(planned) - len(outcomes))
    left_runs = [run for run in planned if run.name not in outcomes]
    costs = [_price(run.options.credits) or 0 for run in left_runs]
    cost = f", {dollars(sum(costs) * each / 3600)}" if all(costs) else ""
    return f"{text}; about {duration(left)}{cost} left"
