"""What became of a run: reached, did not converge, diverged, out of memory, crashed."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import files, runs
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.studies.grid import Planned

RUN, LOG, OUTCOME = "run", "log.txt", "outcome.json"  # in a run's folder of a study

REACHED, MISSED, DIVERGED = "reached", "did not converge", "diverged"
MEMORY, REFUSED, CRASHED = "out of memory", "refused", "crashed"
_OF_LAST_LINE = (("training diverged", DIVERGED), ("does not fit into the device's memory", MEMORY))


class Outcome(NamedTuple):
    """One finished run of a study."""

    labels: tuple[str, ...]  # of its level of each factor
    seed: int
    status: str
    reason: str  # "" if it reached its goal
    metric: str
    goal: float
    rows: list[dict[str, float]]  # epoch, hours on the clock, score of each evaluation
    clock: dict[str, float]  # seconds by part
    facts: dict[str, Any]  # of the entry's misc, and of the machine
    wall_seconds: float  # of the process

    def seconds_to(self, threshold: float) -> float | None:
        """Seconds on the clock at the first row at a threshold or past it; None: never."""
        row = self.row_at(threshold)
        return None if row is None else row["hours"] * 3600

    def row_at(self, threshold: float) -> dict[str, float] | None:
        """The first row at a threshold or past it."""
        return next((row for row in self.rows if row[self.metric] >= threshold), None)

    @property
    def best(self) -> float | None:
        """The best score."""
        return max((row[self.metric] for row in self.rows), default=None)

    @property
    def seconds(self) -> float:
        """Seconds on the clock at the last row; 0 without one."""
        return self.rows[-1]["hours"] * 3600 if self.rows else 0.0

    @property
    def cost_per_hour(self) -> float | None:
        """USD, of the hardware that it ran on."""
        return self.facts.get("costPerHour")


def kills_for_memory() -> int:
    """Processes that Linux has killed on this machine because memory ran out."""
    try:
        words = Path("/proc/vmstat").read_text(encoding="ascii").split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return 0


def status_of(code: int, log: str, killed_for_memory: bool = False) -> tuple[str, str]:
    """How a run ended, and why.

    Args:
      code: exit status of `train`, negative after a signal.
      log: what it said, its last line the reason.
      killed_for_memory: whether Linux killed processes for memory meanwhile.
    """
    lines = [line.rsplit("\r", 1)[-1] for line in log.splitlines() if line.strip()]
    last = one_line(lines[-1], 300) if lines else ""
    last = last.removeprefix("train.py: ")
    if code == 0:
        return REACHED, ""
    if code == 3:
        line = next((line for line in reversed(lines) if line.startswith(MISSED)), MISSED)
        return MISSED, one_line(line.partition(";")[0].removeprefix(f"{MISSED}: "))
    for words, status in _OF_LAST_LINE:
        if words in last:
            return status, last
    number = -code if code < 0 else code - 128
    if number == signal.SIGKILL and killed_for_memory:
        return MEMORY, "killed by Linux, as memory had run out"
    if number in set(signal.Signals):
        return CRASHED, f"ended by {signal.Signals(number).name}"
    return (REFUSED if code == 1 else CRASHED), last or f"exit status {code}"


def of_run(
    planned: Planned, folder: Path, code: int, wall_seconds: float, killed_for_memory: bool = False
) -> Outcome:
    """Reads what a run that has ended left in its folder of the study."""
    try:
        log = (folder / LOG).read_text(encoding="utf-8", errors="replace")[-20_000:]
    except OSError:
        log = ""
    status, reason = status_of(code, log, killed_for_memory)
    rows, clock = [], {}
    if (folder / RUN / runs.RECIPE).is_file():
        try:
            run = runs.read(folder / RUN)
            rows, clock = run.rows, run.clock
        except Refusal as refusal:
            status, reason = CRASHED, str(refusal)
    recipe = planned.recipe
    metric = recipe.task_row.metric
    return Outcome(
        labels=planned.labels,
        seed=planned.seed,
        status=status,
        reason=reason,
        metric=metric,
        goal=recipe.goal,
        rows=[{name: row[name] for name in ("epoch", "hours", metric)} for row in rows],
        clock=clock,
        facts=_facts(folder / RUN),
        wall_seconds=wall_seconds,
    )


_KEPT = ("examplesPerSecond", "strategy", "heldOut", "utilization", "versions")


def _facts(run):
    """What the entries of a run say, ranked or not: of training, and of its latency."""
    entry = _newest(run, "train")
    misc = entry.get("misc") or {}
    facts = {name: misc[name] for name in _KEPT if misc.get(name) is not None}
    for name in ("hardware", "framework", "timestamp", "costPerHour"):
        if entry.get(name) is not None:
            facts[name] = entry[name]
    timed = _newest(run, "inference")
    if timed:
        of_misc = timed.get("misc") or {}
        facts["latency_ms"] = timed.get("latency")
        facts["runtime"] = f"{of_misc.get('runtime')} {of_misc.get('precision')}"
    return facts


def _newest(run, phase):
    paths = [*run.glob(f"*/{phase}/*.json"), *run.glob(f"not_an_entry/*/{phase}/*.json")]
    for path in sorted(paths, key=os.path.getmtime, reverse=True):
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # what is damaged has no figures
    return {}


def write(folder: Path, outcome: Outcome) -> None:
    """Writes a run's outcome to its folder of the study. Raises Refusal if that can't be done."""
    files.write_json(folder / OUTCOME, outcome._asdict())


def read(path: Path) -> Outcome:
    """Reads an outcome's file. Raises Refusal if it is damaged."""
    values = files.read_json(path)
    try:
        return Outcome(**{**_checked(values), "labels": tuple(values["labels"])})
    except (KeyError, TypeError, ValueError) as error:
        raise Refusal(f"{path}: is no outcome of a run ({one_line(error, 80)})") from None


def _checked(values: Mapping[str, Any]) -> Mapping[str, Any]:
    if not runs.are_rows(values["rows"], values["metric"]) or not runs.are_seconds(values["clock"]):
        raise ValueError("rows or clock")
    return values
