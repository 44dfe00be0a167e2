"""`Estimate`: time and cost of a recipe to its threshold, from timed steps and its evidence."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dawnbench_tf import recipes, typed
from dawnbench_tf.estimates.sample import Phase, Sample
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured

__all__ = ["Estimate"]

ON_THE_CLOCK = ("load", "build", "compile", "train")
RESAMPLES = 2000
LEVELS = (2.5, 97.5)  # percentiles of a 95 % interval
_NOT_THE_CURVE = {"seed", "synthetic", "name"}


class Estimate(NamedTuple):
    """Time, cost and speed that a recipe would have on this machine; None stands for unknown.

    Attributes:
      recipe: TASK/NAME.
      goal: the threshold, with its metric: "top1Accuracy 98".
      changed: settings of the recipe that differ from its row; its evidence is not theirs.
      batch_size: examples in a step of the first phase.
      steps_timed: number of steps that were timed.
      step_ms: median time of a step, in ms; of several phases the mean, weighted by epochs.
      step_ms_range: 10th and 90th percentile of the time of a step, in ms.
      sides: height of the training images of each phase, pixels; (0,) for questions.
      side_ms: mean time of a step of each phase, in ms.
      examples_per_second: throughput of the training steps.
      share_of_peak: model FLOPs utilization, from 0 to 1.
      peak_from: source of the devices' peak.
      process_gib: peak memory of the process.
      device_gib: peak memory of the fullest GPU.
      input_wait: share of the steps' time that they waited for batches.
      start_seconds: load, build and compile, on the clock; without loading if `generated`.
      generated: whether the examples were generated; loading the data is then not in the estimate.
      epochs: median of epochs to the threshold, of the runs of the evidence; inf if half missed.
      epochs_range: fewest and most epochs of the runs that reached the threshold.
      at_most: whether no evidence has epochs: `epochs` is then the recipe's maximum.
      runs: number of runs of the evidence.
      reached: number of these runs that reached the threshold.
      hours: predicted time on the clock to the threshold; inf if half of the runs missed it.
      hours_interval: 95 % interval of a run's hours; its end is inf if runs missed the threshold.
      usd: `hours` in USD; None without a price.
      usd_interval: `hours_interval` in USD.
      hours_all: time on the clock of all epochs of the recipe: what a miss takes.
      evaluation_seconds: of one evaluation, off the clock.
      wall_hours: `hours` with imports and evaluations: what the user waits.
      cost_per_hour: price of the machine in USD.
      hardware: the machine in one line.
      software: versions.
      reason: if it could not be estimated, why not; all figures are then 0 or None.
    """

    recipe: str
    goal: str = ""
    changed: list[str] = []
    batch_size: int = 0
    steps_timed: int = 0
    step_ms: float = 0.0
    step_ms_range: list[float] = []
    sides: list[int] = []
    side_ms: list[float] = []
    examples_per_second: float = 0.0
    share_of_peak: float | None = None
    peak_from: str = ""
    process_gib: float = 0.0
    device_gib: float | None = None
    input_wait: float | None = None
    start_seconds: float = 0.0
    generated: bool = False
    epochs: float | None = None
    epochs_range: list[float] = []
    at_most: bool = False
    runs: int = 0
    reached: int = 0
    hours: float | None = None
    hours_interval: list[float | None] = []
    usd: float | None = None
    usd_interval: list[float | None] = []
    hours_all: float | None = None
    evaluation_seconds: float | None = None
    wall_hours: float | None = None
    cost_per_hour: float | None = None
    hardware: str = ""
    software: dict[str, str] = {}
    reason: str = ""

    def facts(self) -> dict[str, Any]:
        """Returns the estimate as JSON values; infinity is None."""
        return {name: _finite(value) for name, value in self._asdict().items()}

    @classmethod
    def from_facts(cls, facts: object) -> "Estimate":
        """Inverse of `facts()`, but None stays None.

        Args:
          facts: the JSON values.

        Raises:
          ValueError: a key is missing, unknown or of another type; the message names it.
        """
        typed.check_fields(facts, cls, "estimate")
        return cls(**facts)  # type: ignore[arg-type]


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def predict(recipe: Recipe, sample: Sample, cost_per_hour: float | None = None) -> Estimate:
    """Predicts time and cost to the threshold.

    The clock of a run of k epochs is: seconds to load, build and compile; plus, for each phase of
    image and batch size, its number of steps in k epochs times its mean seconds a step.

    The interval is for one further run on this machine as it was during the sample. It is made of
    2,000 resamples: each draws one run of the evidence, with its epochs or as a miss (infinite),
    and, for each phase, as many timed calls as there were, with replacement, whose mean is the
    seconds a step. The interval's ends are the 2.5th and 97.5th percentile. Other work on the
    machine later, another temperature or another data set's lengths are not in it.

    Args:
      recipe: the recipe that was timed.
      sample: its timed steps.
      cost_per_hour: price of the machine in USD; None: unknown.
    """
    hits, runs = epochs_of_evidence(recipe)
    epochs = [*hits, *[math.inf] * (runs - len(hits))] if runs else [float(recipe.epochs)]
    middle = float(np.median(epochs))
    seconds = clock_seconds(sample, middle)
    draws = np.quantile(
        _resampled(sample, epochs), np.array(LEVELS) / 100, method="inverted_cdf"
    ).tolist()
    price = None if cost_per_hour is None else cost_per_hour / 3600
    return Estimate(
        recipe=recipe.name,
        goal=f"{recipe.task_row.metric} {recipe.goal:g}",
        changed=_changed(recipe),
        **_speed(recipe, sample),
        epochs=middle,
        epochs_range=[min(hits), max(hits)] if hits else [],
        at_most=not runs,
        runs=runs,
        reached=len(hits),
        hours=seconds / 3600,
        hours_interval=[bound / 3600 for bound in draws],
        usd=None if price is None else price * seconds,
        usd_interval=[] if price is None else [price * bound for bound in draws],
        hours_all=clock_seconds(sample, recipe.epochs) / 3600,
        wall_hours=wall_seconds(recipe, sample, middle) / 3600,
        cost_per_hour=cost_per_hour,
    )


def _speed(recipe: Recipe, sample: Sample) -> dict[str, Any]:
    """Returns the fields of `Estimate` that do not depend on the number of epochs."""
    phases = sample.phases
    shared = set(Estimate._fields) & set(Sample._fields)
    return {
        **{name: getattr(sample, name) for name in shared},
        "batch_size": recipe.batch_size,
        "steps_timed": sum(steps for phase in phases for _, steps in phase.laps),
        "step_ms": 1e3 * _over_phases(sample, _percentile(50)),
        "step_ms_range": [1e3 * _over_phases(sample, _percentile(level)) for level in (10, 90)],
        "sides": [phase.side for phase in phases],
        "side_ms": [1e3 * phase.seconds_per_step for phase in phases],
        "examples_per_second": _over_phases(sample, lambda phase: phase.examples_per_epoch)
        / _epoch_seconds(sample),
        "share_of_peak": _share(sample),
        "start_seconds": _start(sample),
    }


def clock_seconds(
    sample: Sample, epochs: float, seconds_per_step: Sequence[float] | None = None
) -> float:
    """Returns the predicted seconds on the clock of a number of epochs; inf for inf.

    Args:
      sample: the timed steps.
      epochs: number of epochs.
      seconds_per_step: of each phase; None: the sample's means.
    """
    if math.isinf(epochs):
        return math.inf
    means = seconds_per_step or [phase.seconds_per_step for phase in sample.phases]
    total = _start(sample) - sample.first_steps * means[0]  # compiling's steps are in both
    for phase, mean in zip(sample.phases, means, strict=True):
        trained = max(0.0, min(epochs, phase.end) - phase.begin)
        total += trained * phase.steps_per_epoch * mean
    beyond = max(0.0, epochs - sample.phases[-1].end)
    return max(total, 0.0) + beyond * sample.phases[-1].steps_per_epoch * means[-1]


def wall_seconds(recipe: Recipe, sample: Sample, epochs: float) -> float:
    """Returns the predicted wall time of a number of epochs in seconds: what the user waits.

    It is the clock, with imports and evaluations; without evaluations if none was timed.
    """
    if math.isinf(epochs):
        return math.inf
    others = sample.start.get("import", 0.0) + (sample.first_evaluation_seconds or 0.0)
    left_out = max(0, math.ceil(recipe.eval_from / recipe.eval_every) - 1)
    count = max(1, math.ceil(epochs / recipe.eval_every) - left_out)
    return clock_seconds(sample, epochs) + others + count * (sample.evaluation_seconds or 0.0)


def _start(sample: Sample) -> float:
    """Returns the seconds on the clock up to the end of the first call; not to generate data."""
    counted = [name for name in ON_THE_CLOCK if not (name == "load" and sample.generated)]
    return sum(sample.start.get(name, 0.0) for name in counted)


def epochs_of_evidence(recipe: Recipe) -> tuple[list[float], int]:
    """Returns the epochs of the runs of the newest evidence that has them, and its runs; or none.

    A recipe of the user's own, or with another threshold, model or number of epochs, has none.
    """
    if recipe.name not in recipes.rows() or {"threshold", "model", "epochs", "task"} & set(
        _changed(recipe)
    ):
        return [], 0
    rows = [row for row in recipe.evidence if isinstance(row, Measured) and row.epochs]
    return (list(rows[-1].epochs), rows[-1].runs) if rows else ([], 0)


def _changed(recipe: Recipe) -> list[str]:
    """Returns the settings in which a recipe differs from the row of its name."""
    row = recipes.rows().get(recipe.name)
    if row is None:
        return []
    values, others = recipe.values(), row.values()
    own = [name for name in values if values[name] != others.get(name)]
    if recipe.goal == row.goal:
        own = [name for name in own if name != "threshold"]
    return [name for name in own if name not in _NOT_THE_CURVE]


def _resampled(sample: Sample, epochs: Sequence[float]) -> np.ndarray:
    """Returns the seconds on the clock (RESAMPLES,) of resampled runs."""
    generator = np.random.default_rng(0)
    means = []
    for phase in sample.phases:
        laps = np.array(phase.laps)  # (laps, 2)
        drawn = laps[generator.integers(0, len(laps), (RESAMPLES, len(laps)))].sum(axis=1)
        means.append(drawn[:, 0] / drawn[:, 1])
    runs = generator.choice(epochs, RESAMPLES)
    return np.array(
        [
            clock_seconds(sample, count, own)
            for count, *own in zip(runs.tolist(), *means, strict=True)
        ]
    )


def _over_phases(sample: Sample, figure: Callable[[Phase], float]) -> float:
    """Returns the mean of a figure of the phases, weighted by their epochs."""
    weights = [phase.end - phase.begin for phase in sample.phases]
    return float(np.average([figure(phase) for phase in sample.phases], weights=weights))


def _epoch_seconds(sample: Sample) -> float:
    """Returns the mean seconds of an epoch's steps."""
    return _over_phases(sample, lambda phase: phase.seconds_per_epoch)


def _percentile(level: float) -> Callable[[Phase], float]:
    def percentile(phase: Phase) -> float:
        return float(np.percentile([seconds / steps for seconds, steps in phase.laps], level))

    return percentile


def _share(sample: Sample) -> float | None:
    """Returns the share of the devices' peak; None if unknown, or if training exceeded the peak."""
    flops = [phase.flops_per_example for phase in sample.phases]
    if not sample.peak_flops or None in flops:
        return None
    operations = _over_phases(
        sample, lambda phase: phase.examples_per_epoch * (phase.flops_per_example or 0.0)
    )
    share = operations / _epoch_seconds(sample) / sample.peak_flops
    return share if share <= 1 else None
