"""The plan of a study before its first run: runs, hours and dollars, from timed steps."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from dawnbench_tf import terminal
from dawnbench_tf.estimates import prediction, process
from dawnbench_tf.estimates.sample import Sample
from dawnbench_tf.money import dollars
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.studies import forecast
from dawnbench_tf.studies.grid import PlannedRun
from dawnbench_tf.studies.multiples import CREDITS_SETTINGS, RUN_SETTINGS

MOST_SAMPLES = 4  # networks of a study whose steps are timed
SECONDS = 45.0  # for each of them
_ROWS = 20  # settings that the table shows

Network = tuple[str, str, str, tuple[int, ...]]  # task, model, precision, image sizes


class PlannedSetting(NamedTuple):
    """The runs of one setting of a study, before they begin.

    Attributes:
      name: the setting, as its folder is named.
      runs: number of its runs.
      epochs: to the threshold, by the recipe's evidence; or all of them.
      at_most: whether `epochs` are all: there is no evidence for this setting.
      seconds: wall time of one run, with imports and evaluations; None: unknown.
      usd: price of one run; None: unknown.
    """

    name: str
    runs: int
    epochs: float
    at_most: bool
    seconds: float | None
    usd: float | None


class Plan(NamedTuple):
    """Runs, time and cost of a study that has not begun.

    Attributes:
      settings: a row for each setting.
      source: where the times come from, for people.
    """

    settings: list[PlannedSetting]
    source: str

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(row.runs for row in self.settings)

    @property
    def seconds(self) -> float | None:
        """Seconds of all runs, one after another; None if a setting's are unknown."""
        return _sum(self.settings, "seconds")

    @property
    def usd(self) -> float | None:
        """USD of all runs; None if a setting's are unknown."""
        return _sum(self.settings, "usd")

    def __str__(self) -> str:
        lines = [f"{'setting':36} {'runs':>5} {'epochs':>7} {'a run':>9} {'all':>10} {'USD':>8}"]
        lines += [_format_row(row) for row in self.settings[:_ROWS]]
        if len(self.settings) > _ROWS:
            lines.append(f"... and {len(self.settings) - _ROWS} more settings")
        at_most = any(row.at_most for row in self.settings)
        time = "unknown time" if self.seconds is None else f"{self.seconds / 3600:,.2f} hours"
        cost = "" if self.usd is None else f", {dollars(self.usd)}"
        most = "at most " * (at_most and self.seconds is not None)
        count = f"{self.runs} run{'s' * (self.runs != 1)}"
        lines.append(f"plan: {count}, {most}{time}{cost}; {self.source}")
        return "\n".join(lines)


def _sum(rows: Sequence[PlannedSetting], name: str) -> float | None:
    each = [(getattr(row, name), row.runs) for row in rows]
    return None if any(value is None for value, _ in each) else sum(v * n for v, n in each)


def _format_row(row: PlannedSetting) -> str:
    name = row.name if len(row.name) <= 36 else f"{row.name[:33]}..."
    epochs = f"{'<=' * row.at_most}{row.epochs:g}"
    if row.seconds is None:
        return f"{name:36} {row.runs:5} {epochs:>7} {'?':>9}"
    each, total = (forecast.format_duration(s) for s in (row.seconds, row.seconds * row.runs))
    cost = "" if row.usd is None else dollars(row.usd * row.runs)
    return f"{name:36} {row.runs:5} {epochs:>7} {each:>9} {total:>10} {cost:>8}".rstrip()


def make(planned: Sequence[PlannedRun], estimates: bool = True, elsewhere: bool = False) -> Plan:
    """Plans a study: times some steps of its networks on this machine, one after another.

    At most `MOST_SAMPLES` networks (model, precision and image sizes) are timed, each in its first
    setting; another setting of the same network is expected to take the same time for an epoch. A
    network that was not timed takes the time of its recipe's evidence. Runs that share a machine
    (`--jobs`) are expected to take as long in all as one after another.

    Args:
      planned: all runs of the study.
      estimates: whether to time steps; if not, the times are those of the evidence.
      elsewhere: whether the runs start on other machines, through a launch template: then no steps
        are timed.
    """
    samples: dict[Network, Sample] = {}
    failures: list[str] = []
    if estimates and not elsewhere:
        samples, failures = _take_samples(planned)
    by_setting: dict[str, list[PlannedRun]] = {}
    for run in planned:
        by_setting.setdefault(run.name.rpartition("/")[0], []).append(run)
    rows = [_row(name, runs, samples) for name, runs in by_setting.items()]
    return Plan(rows, _source(rows, samples, failures, elsewhere))


def _take_samples(planned: Sequence[PlannedRun]) -> tuple[dict[Network, Sample], list[str]]:
    """Returns the samples of the networks, the most frequent first, and reasons of failures."""
    counts = Counter(_network(run.recipe) for run in planned)
    first = {_network(run.recipe): run for run in reversed(planned)}
    samples, failures = {}, []
    for network, _ in counts.most_common(MOST_SAMPLES):
        terminal.status(f"timing {network[1]} for the plan, up to {SECONDS:.0f} s", logged=False)
        run = first[network]
        try:
            samples[network] = process.take_sample(run.recipe, _options(run), SECONDS)
        except Refusal as refusal:
            failures.append(one_line(refusal, 80))
    terminal.status("")
    return samples, failures


def _network(recipe: Recipe) -> Network:
    return recipe.whole_task.name, recipe.model, recipe.precision, recipe.sizes


def _options(run: PlannedRun) -> RunOptions:
    """Returns the run options of a planned run."""
    values: dict[str, Any] = dict(run.settings)
    own = {name: value for name, value in values.items() if name in RUN_SETTINGS}
    price = {name: value for name, value in values.items() if name in CREDITS_SETTINGS}
    return RunOptions(**own, credits=Credits(**price))


def _row(name: str, runs: Sequence[PlannedRun], samples: dict[Network, Sample]) -> PlannedSetting:
    run = runs[0]
    hits, count = prediction.epochs_of_evidence(run.recipe)
    epochs, at_most = float(run.recipe.epochs), not count
    if count:  # a miss trains all epochs
        epochs = (sum(hits) + (count - len(hits)) * epochs) / count
    sample = samples.get(_network(run.recipe))
    seconds = forecast.evidence_seconds(run)
    if sample is not None:
        seconds = prediction.wall_seconds(run.recipe, sample, epochs)
    price = run.settings.get("cost_per_hour")
    usd = price * seconds / 3600 if price and seconds is not None else None
    return PlannedSetting(name, len(runs), epochs, at_most, seconds, usd)


def _source(
    rows: Sequence[PlannedSetting],
    samples: dict[Network, Sample],
    failures: Sequence[str],
    elsewhere: bool,
) -> str:
    """Says where the times come from."""
    if elsewhere:
        text = "by the recipes' evidence, as --launch starts the runs elsewhere"
    elif samples:
        steps = sum(n for s in samples.values() for phase in s.phases for _, n in phase.laps)
        text = f"by {steps:,} steps timed on this machine"
    else:
        text = "by the recipes' evidence, perhaps of another machine"
    if failures:
        text += f" (not timed: {failures[0]})"
    if any(row.seconds is None or not math.isfinite(row.seconds) for row in rows):
        text += "; ?: neither timed nor measured"
    return text
