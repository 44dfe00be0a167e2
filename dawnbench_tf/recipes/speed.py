"""How fast a recipe trains on this machine, and the hours and dollars that follow. No TensorFlow.

`training/speed_test.py` times steps; `take` does so in a process of its own, whose memory and whose
crash are its own. `predict` multiplies the times by the epochs of the recipe's evidence.
"""

import math
import os
import pickle
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dawnbench_tf import machine, recipes
from dawnbench_tf.clock import DAWNBENCH, in_units, seconds_of
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.evidence import Measured
from dawnbench_tf.recipe.options import Credits, RunOptions, to_record, with_recorded
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.settings import check_fields
from dawnbench_tf.terminal import counted, dollars

__all__ = ["SpeedTest", "Phase", "Estimate", "predict"]

GRACE = 5.0  # seconds that a process may take beyond its time, to evaluate
COMMAND = ("-c", "from dawnbench_tf.training.process import main; main()")  # of Python
REQUEST, RESULT = "request.pickle", "speed.pickle"  # in a folder of the two processes alone
FEWEST = 3  # runs that reached the threshold, for an interval
# Standard deviation of a prediction's error for a known number of epochs, as a share: the root mean
# square of the six errors in docs/estimate.md. It is what differs from process to process.
ERROR = 0.05
NEVER = "never"  # stands for infinity in JSON
_NOT_THE_CURVE = {"seed", "synthetic", "name"}


class Phase(NamedTuple):
    """Timed steps of a part of training that has one size of images and one batch size.

    Attributes:
      side: height and width of the training images, pixels; 0 for questions.
      batch_size: examples in a step.
      steps_per_epoch: number of steps in an epoch.
      begin: the epoch of the recipe, from 0, that it begins with.
      end: the epoch that the next phase begins with.
      laps: seconds and number of steps of each call into TensorFlow, without the phase's first
        call, which compiles, unless it is the only one.
      flops_per_example: operations of forward and backward pass; None: unknown.
      first: seconds and number of steps of the first call.
    """

    side: int
    batch_size: int
    steps_per_epoch: int
    begin: float
    end: float
    laps: list[tuple[float, int]]
    flops_per_example: float | None = None
    first: tuple[float, int] = (0.0, 0)

    @property
    def seconds_per_step(self) -> float:
        """Mean over the steps: a sum of steps, unlike a median, is this times their number."""
        return sum(seconds for seconds, _ in self.laps) / sum(steps for _, steps in self.laps)

    def percentile(self, level: float) -> float:
        """Returns a percentile, over the calls, of the seconds a step.

        Args:
          level: from 0 to 100.
        """
        return float(np.percentile([seconds / steps for seconds, steps in self.laps], level))


class SpeedTest(NamedTuple):
    """Measurements of a short training; `str()` gives lines for people.

    Attributes:
      recipe: the recipe whose steps were timed; its `synthetic` says whether examples were
        generated, and loading the data set is then not in any figure.
      start: seconds by part of the clock up to the end of the first call into TensorFlow: import,
        build, load, compile, train (Keras's preparation of `fit`).
      phases: timed steps; a phase for each size of training images and batches.
      used: utilization of the machine, as an entry's `misc` has it.
      evaluation_seconds: of one evaluation on the whole test set; None: not timed.
      first_evaluation_seconds: of compiling the evaluation; None: not timed.
      hardware: the machine in one line.
      software: versions.
      options: devices and price.
      chief: whether this worker reports the result.
      profile: what the operations of a step take, with `options.profile_steps`; else None.
    """

    recipe: Recipe
    start: dict[str, float]
    phases: list[Phase]
    used: dict[str, Any]
    evaluation_seconds: float | None = None
    first_evaluation_seconds: float | None = None
    hardware: str = ""
    software: dict[str, str] = {}
    options: RunOptions = RunOptions()
    chief: bool = True
    profile: Any = None

    @property
    def start_seconds(self) -> float:
        """Seconds on the clock up to the end of the first call; not those that generated data."""
        return seconds_of(self.start, DAWNBENCH - {"load"} if self.recipe.synthetic else DAWNBENCH)

    @property
    def seconds(self) -> float:
        """Seconds of all steps of the phases, without evaluations."""
        steps = self._steps(self.phases[-1].end)
        return sum(n * p.seconds_per_step for n, p in zip(steps, self.phases, strict=True))

    @property
    def usd(self) -> float | None:
        """Cost of `seconds` in USD; None without a price."""
        price = self.options.credits.cost_per_hour
        return None if price is None else price * self.seconds / 3600

    def _steps(self, epochs: float) -> list[float]:
        """Returns the number of steps of each phase in a number of epochs."""
        ends = [*(phase.end for phase in self.phases[:-1]), math.inf]
        return [
            max(0.0, min(epochs, end) - phase.begin) * phase.steps_per_epoch
            for phase, end in zip(self.phases, ends, strict=True)
        ]

    def clock_seconds(self, epochs: float) -> float:
        """Returns the predicted seconds on the clock of a number of epochs; inf for inf.

        They are the seconds to load and build, and for each phase those to compile, and its number
        of steps times its mean seconds a step.

        Args:
          epochs: number of epochs, at most those of the recipe; inf: of a run that never ends.
        """
        if math.isinf(epochs):
            return math.inf
        total = self.start_seconds  # with the first call
        for number, (phase, steps) in enumerate(zip(self.phases, self._steps(epochs), strict=True)):
            mean, (seconds, first) = phase.seconds_per_step, phase.first
            total += (steps - first) * mean + seconds * bool(number) if steps else 0.0
        return max(0.0, total)

    def wall_seconds(self, epochs: float, recipe: Recipe | None = None) -> float:
        """Returns the predicted wall time of a number of epochs in seconds: what the user waits.

        It is the clock, with imports and evaluations; without evaluations if none was timed.

        Args:
          epochs: number of epochs.
          recipe: the recipe that says when to evaluate; None: the one that was timed.
        """
        if math.isinf(epochs):
            return math.inf
        recipe = recipe or self.recipe
        # Once a step at most.
        every = max(recipe.eval_every, 1 / max(phase.steps_per_epoch for phase in self.phases))
        left_out = max(0, math.ceil(recipe.eval_from / every) - 1)
        count = max(1, math.ceil(epochs / every) - left_out)
        others = self.start.get("import", 0.0) + (self.first_evaluation_seconds or 0.0)
        return self.clock_seconds(epochs) + others + count * (self.evaluation_seconds or 0.0)

    @property
    def steps(self) -> int:
        """Number of steps of the first phase that were trained, with those of the first call."""
        phase = self.phases[0]
        later = [lap for lap in phase.laps if lap != phase.first]
        return phase.first[1] + sum(steps for _, steps in later)

    def __str__(self) -> str:
        phase, end, each = self.phases[0], self.phases[-1].end, self.phases[0].seconds_per_step
        (seconds, first), alone = phase.first, self.steps == phase.first[1]
        cost = "" if self.usd is None else f", {dollars(self.usd)}"
        return (
            f"{counted(self.steps, 'step')}: {each * 1e3:.4g} ms a step, at the median "
            f"{phase.percentile(50) * 1e3:.4g}, {phase.batch_size / each:,.0f} examples/s; "
            f"the first {first} with compiling "
            f"{seconds:.1f} s{', which is all there were: ask for more' if alone else ''}\n"
            f"so an epoch's {phase.steps_per_epoch:,} steps take "
            f"{in_units(phase.steps_per_epoch * each)}, {end:g} of "
            f"{counted(self.recipe.epochs, 'epoch')} {in_units(self.seconds)}, without "
            f"evaluations{cost}"
        )


class Estimate(NamedTuple):
    """Time, cost and speed that a recipe would have on this machine; None stands for unknown.

    Attributes:
      recipe: TASK/NAME.
      goal: the threshold, with its metric: "top1Accuracy 98".
      changed: settings of the recipe that differ from its row, whose evidence is not theirs; of a
        recipe of the user's own, from their defaults.
      options: options that differ from their defaults, such as the strategy.
      batch_sizes: examples in a step of each phase.
      precision: Keras's policy of the training steps.
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
      at_most: whether no evidence has epochs: `epochs` is then the recipe's maximum, and whether
        they reach the threshold is not known.
      runs: number of runs of the evidence.
      reached: number of these runs that reached the threshold.
      hours: predicted time on the clock to the threshold; inf if half of the runs missed it.
      hours_interval: 95 % prediction interval of one further run's hours; its end is inf if runs
        of the evidence missed; [] with fewer than 3 runs that reached the threshold.
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
    changed: dict[str, Any] = {}
    options: dict[str, Any] = {}
    batch_sizes: list[int] = []
    precision: str = ""
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
    hours_interval: list[float] = []
    usd: float | None = None
    usd_interval: list[float] = []
    hours_all: float | None = None
    evaluation_seconds: float | None = None
    wall_hours: float | None = None
    cost_per_hour: float | None = None
    hardware: str = ""
    software: dict[str, str] = {}
    reason: str = ""

    def facts(self) -> dict[str, Any]:
        """Returns the estimate as JSON values; infinity is "never"."""
        return {name: _mapped(value, math.inf, NEVER) for name, value in self._asdict().items()}

    @classmethod
    def from_facts(cls, facts: object) -> "Estimate":
        """Inverse of `facts()`.

        Args:
          facts: the JSON values.

        Raises:
          ValueError: a key is missing, unknown, or its value of another type or out of its range;
            the message names it.
        """
        values = facts if isinstance(facts, dict) else {}
        finite = {name: _mapped(value, NEVER, 0.0) for name, value in values.items()}
        check_fields(finite, cls, "estimate")
        row = cls(**{name: _mapped(value, NEVER, math.inf) for name, value in values.items()})
        for name in ("hours_interval", "usd_interval", "epochs_range"):
            if len(getattr(row, name)) not in (0, 2):
                raise ValueError(f"{name} should have 2 members")
        if not row.reason and not row.examples_per_second > 0:
            raise ValueError("examples_per_second should be over 0")
        for name in ("hours", "usd"):
            if (getattr(row, name) or 0) < 0:
                raise ValueError(f"{name} should be at least 0")
        return row


def _mapped(value: Any, old: Any, new: Any) -> Any:
    if isinstance(value, list):
        return [_mapped(member, old, new) for member in value]
    return new if value == old else value


def predict(test: SpeedTest) -> Estimate:
    """Predicts time and cost to the threshold.

    The interval is for one further run on this machine as it was during the speed test. Its epochs
    are those of Student's t for one further value of a normal distribution, of the logarithms of
    the evidence's epochs (Hahn and Meeker, Statistical Intervals, 1991, section 4.2); a variance of
    d^2/12 is added, as a hit is seen only every d epochs. The error of the speed is added to both
    ends in quadrature: the scatter of the timed calls, and 5 % from one process to the next. Other
    work on the machine later, or another temperature, are not in it.

    Args:
      test: a recipe's timed steps.
    """
    recipe = test.recipe
    # Without what differs from machine to machine and changes no speed.
    options = replace(test.options, credits=Credits(), data_dir="", download=False, peak_tflops=0.0)
    hits, runs = epochs_of_evidence(recipe)
    epochs = [*hits, *[math.inf] * (runs - len(hits))] if runs else [float(recipe.epochs)]
    middle = float(np.median(epochs))
    seconds, price = test.clock_seconds(middle), test.options.credits.cost_per_hour
    bounds = _interval(test, hits, runs)
    weights = [phase.end - phase.begin for phase in test.phases]

    def over_phases(figure: Callable[[Phase], float]) -> float:
        return float(np.average([figure(phase) for phase in test.phases], weights=weights))

    epoch_seconds = over_phases(lambda phase: phase.steps_per_epoch * phase.seconds_per_step)
    flops = [phase.flops_per_example for phase in test.phases]
    share, peak = None, test.used["peakFlopsPerSecond"]
    if peak and None not in flops:
        share = over_phases(
            lambda phase: phase.steps_per_epoch * phase.batch_size * (phase.flops_per_example or 0)
        ) / (epoch_seconds * peak)
    return Estimate(
        recipe=recipe.name,
        goal=f"{recipe.task_row.metric} {recipe.goal:g}",
        changed=changes(recipe),
        options=to_record(options),
        batch_sizes=[phase.batch_size for phase in test.phases],
        precision=recipe.precision,
        steps_timed=sum(steps for phase in test.phases for _, steps in phase.laps),
        step_ms=1e3 * over_phases(lambda phase: phase.percentile(50)),
        step_ms_range=[1e3 * over_phases(partial(Phase.percentile, level=q)) for q in (10, 90)],
        sides=[phase.side for phase in test.phases],
        side_ms=[1e3 * phase.seconds_per_step for phase in test.phases],
        examples_per_second=over_phases(lambda phase: phase.steps_per_epoch * phase.batch_size)
        / epoch_seconds,
        share_of_peak=share if share and share <= 1 else None,  # over 1: the peak is wrong
        peak_from=test.used["peakFrom"],
        process_gib=test.used["processGiB"],
        device_gib=test.used.get("deviceGiB"),
        input_wait=test.used["inputWaitShare"],
        start_seconds=test.start_seconds,
        generated=bool(recipe.synthetic),
        epochs=middle,
        epochs_range=[min(hits), max(hits)] if hits else [],
        at_most=not runs,
        runs=runs,
        reached=len(hits),
        hours=seconds / 3600,
        hours_interval=[bound / 3600 for bound in bounds],
        usd=None if price is None else price * seconds / 3600,
        usd_interval=[] if price is None else [price * bound / 3600 for bound in bounds],
        hours_all=test.clock_seconds(recipe.epochs) / 3600,
        evaluation_seconds=test.evaluation_seconds,
        wall_hours=test.wall_seconds(middle) / 3600,
        cost_per_hour=price,
        hardware=test.hardware,
        software=test.software,
    )


def _interval(test: SpeedTest, hits: list[float], runs: int) -> list[float]:
    """Returns the ends of the 95 % prediction interval of a run's seconds on the clock, or []."""
    if len(hits) < FEWEST:
        return []
    from scipy.special import stdtrit  # of the quantiles of Student's t; 0.2 s to import

    logs, count = np.log(hits), len(hits)
    spread = np.var(logs, ddof=1) + (test.recipe.eval_every / np.mean(hits)) ** 2 / 12
    reach = stdtrit(count - 1, 0.975) * math.sqrt(spread * (1 + 1 / count))
    low, high = np.exp(np.mean(logs) - reach), np.exp(np.mean(logs) + reach)
    middle = test.clock_seconds(float(np.median(hits)))
    squares = (ERROR * middle) ** 2  # and those of the standard error by the scatter of the laps
    for steps, phase in zip(test._steps(float(np.median(hits))), test.phases, strict=True):
        rates = [seconds / n for seconds, n in phase.laps]
        if len(rates) > 1:
            squares += (steps * float(np.std(rates, ddof=1))) ** 2 / len(rates)
    error = 1.96 * math.sqrt(squares)
    below = middle - test.clock_seconds(float(low))
    above = test.clock_seconds(min(float(high), float(test.recipe.epochs))) - middle
    end = middle + math.hypot(above, error) if len(hits) == runs else math.inf
    return [max(0.0, middle - math.hypot(below, error)), end]


def epochs_of_evidence(recipe: Recipe) -> tuple[list[float], int]:
    """Returns the epochs of the hits of the newest evidence, and its number of runs; or none."""
    # A recipe of the user's own, or with another threshold, model or number of epochs, has none.
    row = newest_evidence(recipe)
    unmeasured = {"threshold", "model", "epochs", "task"} & set(changes(recipe))
    if row is None or unmeasured or recipe.name not in recipes.rows():
        return [], 0
    return list(row.epochs), row.runs


def newest_evidence(recipe: Recipe) -> Measured | None:
    """Returns the newest measurement of a recipe that has the epochs of its hits, or no hit."""
    rows = [item for item in recipe.evidence if isinstance(item, Measured)]
    whole = [row for row in rows if row.epochs or not row.reached]
    return max(whole, key=lambda row: row.date, default=None)


def changes(recipe: Recipe) -> dict[str, Any]:
    """Returns the settings, as JSON values, in which a recipe differs from the row of its name."""
    row = recipes.rows().get(recipe.name, Recipe())
    values, others = recipe.values(), row.values()
    own = {name: values[name] for name in values if values[name] != others.get(name)}
    if row.task and recipe.goal == row.goal:
        own.pop("threshold", None)
    return {name: value for name, value in own.items() if name not in _NOT_THE_CURVE}


def take(
    recipe: Recipe, options: RunOptions, seconds: float, patience: float | None = None
) -> SpeedTest:
    """Times steps and an evaluation of a recipe in a process of its own, for some seconds."""
    # It is killed after `patience` seconds more, by default `GRACE`.
    with tempfile.TemporaryDirectory(prefix="dawnbench-estimate-") as folder:
        path, log_path = Path(folder) / RESULT, Path(folder) / "log.txt"
        own = with_recorded(RunOptions(), to_record(options))  # without the options of one call
        (Path(folder) / REQUEST).write_bytes(pickle.dumps((recipe, own, seconds)))
        command = [*machine.python(), *COMMAND, folder]
        pipe = subprocess.PIPE  # it closes when this process ends, also by SIGKILL
        with (
            open(log_path, "w", encoding="utf-8") as log,
            subprocess.Popen(
                command, stdin=pipe, stdout=log, stderr=log, start_new_session=True
            ) as process,
        ):
            try:
                process.wait(max(seconds + (GRACE if patience is None else patience), 1.0))
            except subprocess.TimeoutExpired:
                if not path.exists():
                    text = f"no step ended within {in_units(seconds)}; give it more --seconds"
                    raise Refusal(text) from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        if path.exists():
            result = pickle.loads(path.read_bytes())
            if isinstance(result, Refusal):
                raise result
            return result
        code, lines = process.returncode, log_path.read_bytes()[-20_000:].decode(errors="replace")
    if code == -signal.SIGKILL:
        raise Refusal("its process was killed, as for lack of memory; lower --batch_size")
    if code < 0:
        raise Refusal(f"its process ended by signal {-code}")
    last = [line for line in lines.splitlines() if line.strip()][-1:] or [f"status {code}"]
    raise Refusal(f"its process failed: {one_line(last[0], 120)}")
