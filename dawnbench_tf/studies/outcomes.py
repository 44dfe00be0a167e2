"""The outcome of a study's run, read from the run's folder: rows, clock, run.json, entries.

If a run neither reached its goal nor trained all epochs, the exit status and the end of the log
determine how it failed.
"""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import files, run_folder, runs
from dawnbench_tf.refusals import Refusal, one_line, refusing, shown
from dawnbench_tf.settings import check_fields, check_type
from dawnbench_tf.studies.grid import PlannedRun

RUN, LOG, OUTCOME = "run", "log.txt", "outcome.json"  # in a run's folder, see `store`

LOG_TAIL = 20_000  # bytes read from the end of a log
REACHED, MISSED, DIVERGED = "reached", "did not converge", "diverged"
MEMORY, REFUSED, CRASHED = "out of memory", "refused", "crashed"
STATUSES = (REACHED, MISSED, DIVERGED, MEMORY, REFUSED, CRASHED)
_OWN_LINE = re.compile(r"\b(?:(?:train|infer)\.py|dawnbench (?:train|infer)): (.+)")
_LAST_LINES = (("training diverged", DIVERGED), ("does not fit into the device's memory", MEMORY))


class Outcome(NamedTuple):
    """The outcome of an ended run."""

    settings: dict[str, Any]  # "recipe", "seed" and the other settings of its flags
    seed: int
    status: str  # one of STATUSES
    reason: str  # why it ended so; "" if it reached its goal
    metric: str
    goal: float  # the threshold at which training ends
    rows: list[dict[str, float]]  # epoch, hours on the clock, score of each evaluation
    clock: dict[str, float]  # seconds by part of the clock
    facts: dict[str, Any]  # from the run's entries, see FACTS
    wall_seconds: float  # duration of the process

    def row_at(self, threshold: float) -> dict[str, float] | None:
        """Returns the first row that reaches a threshold; None if none does."""
        return next((row for row in self.rows if row[self.metric] >= threshold), None)

    @property
    def best(self) -> float | None:
        """The best score; None without a row."""
        return max((row[self.metric] for row in self.rows), default=None)

    @property
    def seconds(self) -> float:
        """Seconds on the clock at the last row; 0 without one."""
        return self.rows[-1]["hours"] * 3600 if self.rows else 0.0


def count_oom_kills() -> int:
    """Returns the number of processes that Linux has killed for memory since boot; 0 elsewhere."""
    try:
        words = Path("/proc/vmstat").read_text(encoding="ascii").split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return 0


def classify_failure(code: int, log: str, killed_for_memory: bool = False) -> tuple[str, str]:
    """Returns the status and the reason of a failed run, by its process's status and output."""
    # The last line of `train` or `infer` is the reason; if there is none, the last line, which is
    # a launcher's: then the run was not refused, but crashed.
    lines = [line.rsplit("\r", 1)[-1] for line in log.splitlines() if line.strip()]
    own = [match[1] for match in map(_OWN_LINE.search, lines) if match]
    last = one_line(shown([*lines, *own][-1]), 300) if lines else ""
    for words, status in _LAST_LINES:
        if words in last:
            return status, last
    number = -code if code < 0 else code - 128  # Popen's and a shell's status after a signal
    if number == signal.SIGKILL and killed_for_memory:
        return MEMORY, "killed by Linux, as memory had run out"
    if number in set(signal.Signals):
        return CRASHED, f"ended by {signal.Signals(number).name}"
    if code == 1 and own:
        return REFUSED, last
    return CRASHED, f"exit status {code}{': ' if last else ''}{last}"


def read_tail(path: Path, begin: int = 0) -> str:
    """Returns the last LOG_TAIL bytes of a log, from byte `begin` on; "" if it can't be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(begin, os.fstat(file.fileno()).st_size - LOG_TAIL))
            return file.read(LOG_TAIL).decode("utf-8", errors="replace")
    except OSError:
        return ""


def read_finished(planned: PlannedRun, folder: Path, wall_seconds: float) -> Outcome | None:
    """Reads the outcome of a run that reached its goal or trained all epochs; None if neither."""
    run, recipe = _read(planned, folder), planned.recipe
    if run is not None and run.reached:
        return read_ended(planned, folder, REACHED, "", wall_seconds, run)
    if run is None or not run.rows or run.rows[-1]["epoch"] < recipe.epochs - 1e-4:
        return None
    metric = recipe.task_row.metric
    best = max(row[metric] for row in run.rows)
    reason = f"best {metric} {best:.10g} of {recipe.goal:.10g}"
    return read_ended(planned, folder, MISSED, reason, wall_seconds, run)


def has_begun(folder: Path) -> bool:
    """Whether `train` has claimed the run's folder."""
    return (folder / RUN / run_folder.RECIPE).is_file()


def has_entry(folder: Path) -> bool:
    """Whether `train` has finished: it has written an entry, ranked or not."""
    return bool(_read_newest(folder / RUN, "train"))


def _read(planned: PlannedRun, folder: Path) -> runs.Run | None:
    if not has_begun(folder):
        return None
    run = runs.read(folder / RUN)
    ours, theirs = planned.recipe.values(), run.recipe.values()
    if not run.recipe.whole_task.difference(planned.recipe.whole_task):
        ours["task"] = theirs["task"]  # the data may have filled in numbers
    other = next((name for name in ours if ours[name] != theirs[name]), None)
    if other:
        text = f"holds a run with {other}={one_line(theirs[other], 60)}, not"
        raise Refusal(f"{folder / RUN}: {text} {one_line(ours[other], 60)}")
    return run


_OF_ENTRY = {"hardware": str, "framework": str, "timestamp": str, "costPerHour": float}
_OF_MISC = {
    "examplesPerSecond": float,
    "strategy": str,
    "heldOut": dict[str, float],
    "utilization": dict[str, Any],
    "versions": dict[str, Any],
}
# What an outcome keeps of a run's newest entries, ranked or not, with its type; jobs: runs of the
# study at a time.
FACTS = {**_OF_ENTRY, **_OF_MISC, "latency_ms": float, "runtime": str, "jobs": int}


def read_ended(
    planned: PlannedRun,
    folder: Path,
    status: str,
    reason: str,
    wall: float,
    run: runs.Run | None = None,
) -> Outcome:
    """Reads the outcome of a run, read before or not, that ended with a status and reason."""
    run, metric = run or _read(planned, folder), planned.recipe.task_row.metric
    entry, timed = (_read_newest(folder / RUN, phase) for phase in ("train", "inference"))
    misc, timed_misc = entry.get("misc") or {}, timed.get("misc") or {}
    facts = {name: (misc if name in _OF_MISC else entry).get(name) for name in _OF_ENTRY | _OF_MISC}
    if timed:
        facts["latency_ms"] = timed.get("latency")
        facts["runtime"] = f"{timed_misc.get('runtime')} {timed_misc.get('precision')}"
    return Outcome(
        settings=dict(planned.settings),
        seed=planned.seed,
        status=status,
        reason=reason,
        metric=metric,
        goal=planned.recipe.goal,
        rows=[{n: row[n] for n in ("epoch", "hours", metric)} for row in (run.rows if run else [])],
        clock=run.clock if run else {},
        facts={name: value for name, value in facts.items() if _is_fact(name, value)},
        wall_seconds=wall,
    )


def _is_fact(name: str, value: object) -> bool:
    try:
        check_type(value, FACTS[name], name)
    except (KeyError, ValueError):
        return False
    return True


def _read_newest(run: Path, phase: str) -> dict[str, Any]:
    # Not those of a write that was killed, which begin with a point.
    roots = f"*/{phase}", f"not_an_entry/*/{phase}"
    paths = [path for root in roots for path in run.glob(f"{root}/[!.]*.json")]
    for path in sorted(filter(Path.is_file, paths), key=os.path.getmtime, reverse=True):
        try:
            values = files.read_json(path)
            check_type(values, dict[str, Any], path.name)
            check_type(values.get("misc") or {}, dict[str, Any], "misc")
        except ValueError:  # a Refusal is one
            continue  # damaged
        return values
    return {}


def write(folder: Path, outcome: Outcome) -> None:
    """Writes a run's outcome to the run's folder. Raises Refusal if it can't be written."""
    files.write_json(folder / OUTCOME, outcome._asdict())


def read(path: Path, planned: PlannedRun) -> Outcome:
    """Reads the outcome file of a planned run."""
    hint = "remove it; `dawnbench study` makes it again from the run's folder"
    values = files.read_json(path, hint=hint)
    settings = json.loads(json.dumps(dict(planned.settings)))
    if values.pop("labels", None) is not None:  # version 0.1.0 wrote labels, not settings
        values.setdefault("settings", settings)
    with refusing(path, "is no outcome of a run", ValueError, hint=hint):
        check_fields(values, Outcome, "outcome")
        outcome = Outcome(**values)
        if outcome.status not in STATUSES:
            raise ValueError(f"status should be one of {', '.join(STATUSES)}")
        other = next((n for n, value in outcome.facts.items() if not _is_fact(n, value)), None)
        if other is not None:
            raise ValueError(f"facts.{other}")
        run_folder.check_rows(outcome.rows, outcome.metric)
        run_folder.check_clock(outcome.clock)
    if outcome.metric != planned.recipe.task_row.metric or outcome.settings != settings:
        raise Refusal(f"{path}: is of a run with other settings than the study's; remove it")
    return outcome
