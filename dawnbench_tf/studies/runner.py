"""The runs of a study: a process each, so many at a time; what is finished is never run again.

Below the study's folder:

    study.json                  what the study is: another one is refused there
    SETTING/seed-N/run/         the --output_dir of `train`
    SETTING/seed-N/log.txt      all that it said
    SETTING/seed-N/outcome.json what became of it; without one it goes on
"""

import datetime
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf import files, terminal
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import Planned, Study
from dawnbench_tf.studies.outcomes import Outcome

STUDY = "study.json"
POLL_SECONDS = 0.2
SECONDS_TO_END = 60  # for runs to save what they have, once interrupted


@dataclass(frozen=True)
class Launch:
    """How runs are started."""

    jobs: int = 1  # runs at a time
    template: str = ""  # command line around each run's; "" runs it here
    retry: bool = False  # run again what crashed or was refused


class _Running(NamedTuple):
    planned: Planned
    process: subprocess.Popen
    since: float
    kills: int  # for memory, on this machine before it began


def claim(folder: Path, study: Study) -> Study:
    """Takes a folder for a study, new or begun; holds its lock. Returns the study to carry out.

    A study may go on with more trials than it began with.

    Raises:
      Refusal: the folder holds another study or something else, or a study runs in it.
    """
    path = folder / STUDY
    if folder.is_dir() and not path.exists() and any(n.name != ".lock" for n in folder.iterdir()):
        why = "holds other files and no study; name a new or an empty folder"
        raise Refusal(f"--output_dir={folder}: {why}")
    files.make_folder(folder)
    files.lock(folder, "another process carries out the study in it; wait for its end")
    if path.exists():
        earlier = read(folder)
        trials = max(study.trials, earlier.trials)
        if replace(earlier, trials=trials).values() != replace(study, trials=trials).values():
            ours, theirs = study.values(), earlier.values()
            name = next(key for key in ours if key != "trials" and ours[key] != theirs.get(key))
            why = f"holds study {earlier.name} with another {name}; name another folder"
            raise Refusal(f"--output_dir={folder}: {why}")
        study = replace(study, trials=trials)
    files.write_json(path, study.values())
    return study


def read(folder: Path) -> Study:
    """The study that a folder holds. Raises Refusal if it holds none."""
    path = folder / STUDY
    if not path.is_file():
        raise Refusal(f"{folder}: holds no {STUDY}; should be the --output_dir of a study")
    values = files.read_json(path)
    try:
        return Study.from_values(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Refusal(f"{path}: is not what a study wrote; restore it") from None


def finished(folder: Path, planned: list[Planned]) -> dict[str, Outcome]:
    """The outcomes of a study so far, by name of the run, in the order of its plan."""
    paths = {run.name: folder / run.name / outcomes.OUTCOME for run in planned}
    return {name: outcomes.read(path) for name, path in paths.items() if path.exists()}


class Runner:
    """Carries out planned runs; `run()` returns when each has an outcome.

    Args:
      folder: of the study.
      planned: its runs.
      launch: how they are started.
      latency: whether `infer` times each model that was trained.
    """

    def __init__(self, folder: Path, planned: list[Planned], launch: Launch, latency: bool):
        self.folder, self.planned, self.launch, self.latency = folder, planned, launch, latency
        self.outcomes = finished(folder, planned)
        if launch.retry:
            for name in [n for n, o in self.outcomes.items() if o.status in _MAY_BE_RETRIED]:
                files.discard(folder / name / outcomes.OUTCOME)
                del self.outcomes[name]
        self._running: dict[int, _Running] = {}  # by slot
        self._shown_at = 0.0

    def run(self) -> dict[str, Outcome]:
        """Runs what has no outcome yet. Ends all of it on Ctrl-C or a signal.

        Raises:
          Refusal: the first run was refused: what is wrong with it is wrong with all.
          KeyboardInterrupt: a signal ended it; the same command goes on.
        """
        waiting = deque(run for run in self.planned if run.name not in self.outcomes)
        count, left = len(self.planned), len(waiting)
        terminal.say(f"{count} runs, {count - left} finished before; in {self.folder}")
        with _signals_as_interrupts():
            try:
                while waiting or self._running:
                    self._start(waiting)
                    self._collect()
                    self._show()
                    time.sleep(POLL_SECONDS)
            except BaseException:
                self._end_all()
                raise
        terminal.status("")
        return {run.name: self.outcomes[run.name] for run in self.planned}

    def _start(self, waiting):
        for slot in range(self.launch.jobs):
            if slot in self._running or not waiting:
                continue
            planned = waiting.popleft()
            folder = self.folder / planned.name
            files.make_folder(folder)
            if (folder / outcomes.RUN).is_dir() and files.is_locked(folder / outcomes.RUN):
                waiting.append(planned)  # of a study that was killed: its last run goes on alone
                continue
            command = self._command(planned, folder, slot)
            with open(folder / outcomes.LOG, "a", encoding="utf-8") as log:
                print(f"$ {command}", file=log, flush=True)
                process = subprocess.Popen(  # noqa: S602 - the user's own command line
                    command,
                    shell=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._running[slot] = _Running(
                planned, process, time.monotonic(), outcomes.kills_for_memory()
            )

    def _command(self, planned, folder, slot):
        run = (folder / outcomes.RUN).resolve()  # wherever it is started
        python = [sys.executable, "-m"]
        train = [*python, "dawnbench_tf.train", *planned.flags, f"--output_dir={run}"]
        command = shlex.join(train)
        if self.latency:
            data = [flag for flag in planned.flags if flag.startswith("--data_dir=")]
            infer = [*python, "dawnbench_tf.infer", f"--model={run}", *data]
            script = f"{command}; status=$?; [ $status -ne 0 ] || {shlex.join(infer)}; exit $status"
            command = shlex.join(["sh", "-c", script])  # one command, for a template
        if not self.launch.template:
            return command
        return filled(self.launch.template, command, planned, slot)

    def _collect(self):
        for slot, running in list(self._running.items()):
            code = running.process.poll()
            if code is None:
                continue
            del self._running[slot]
            planned = running.planned
            folder = self.folder / planned.name
            spent = time.monotonic() - running.since
            killed = not self.launch.template and outcomes.kills_for_memory() > running.kills
            outcome = outcomes.of_run(planned, folder, code, round(spent, 1), killed)
            if outcome.status == outcomes.REFUSED and not self.outcomes:
                raise Refusal(f"{planned.name}: {outcome.reason}")
            outcome = outcome._replace(facts={**outcome.facts, "jobs": self.launch.jobs})
            outcomes.write(folder, outcome)
            self.outcomes[planned.name] = outcome
            start = terminal.CLEAR if terminal.is_terminal() else ""
            terminal.say(f"{start}{self._line(planned, outcome)}")

    def _line(self, planned, outcome):
        done = f"[{len(self.outcomes)}/{len(self.planned)}] {planned.name}"
        if outcome.status == outcomes.REACHED:
            seconds = outcome.seconds_to(outcome.goal) or 0.0
            return f"{done}: {outcome.metric} {outcome.best:g} after {seconds:.1f} s on the clock"
        return f"{done}: {outcome.status}: {outcome.reason}"

    def _show(self):
        now = time.monotonic()
        if terminal.is_terminal():
            due = now - self._shown_at >= 1
        else:
            due = now - self._shown_at >= 60 and self._shown_at > 0
        if due:
            terminal.status(self.status())
        if due or not self._shown_at:
            self._shown_at = now

    def status(self) -> str:
        """How the study stands, in a line: counts, what is running, time left."""
        counts = Counter(outcome.status for outcome in self.outcomes.values())
        so_far = ", ".join(f"{number} {status}" for status, number in counts.items())
        now = time.monotonic()
        running = ", ".join(
            f"{run.planned.name} since {now - run.since:.0f} s" for run in self._running.values()
        )
        parts = [f"{len(self.outcomes)} of {len(self.planned)} runs", so_far, running, self._left()]
        return "; ".join(part for part in parts if part)

    def _left(self):
        """How long the rest takes, at the pace of what is finished."""
        walls = [outcome.wall_seconds for outcome in self.outcomes.values()]
        if not walls:
            return ""
        each, now = sum(walls) / len(walls), time.monotonic()
        begun = [max(each - (now - run.since), 0) for run in self._running.values()]
        waiting = len(self.planned) - len(self.outcomes) - len(begun)
        seconds = int((each * waiting + sum(begun)) / self.launch.jobs)
        return f"{datetime.timedelta(seconds=seconds)} left"

    def _end_all(self):
        """Lets each run save where it is."""
        for running in self._running.values():
            _signal(running.process, signal.SIGINT)
        deadline = time.monotonic() + SECONDS_TO_END
        for running in self._running.values():
            try:
                running.process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                _signal(running.process, signal.SIGKILL)


_MAY_BE_RETRIED = (outcomes.CRASHED, outcomes.REFUSED)
_PLACES = ("{command}", "{quoted}", "{name}", "{slot}")


def filled(template: str, command: str, planned: Planned, slot: int) -> str:
    """The command line that starts a run, by the user's template.

    >>> filled("ssh node{slot} {quoted}", "python 'a b'", Planned("x/seed-0", (), 0, None, ()), 1)
    'ssh node1 \\'python \\'"\\'"\\'a b\\'"\\'"\\'\\''
    """
    values = (command, shlex.quote(command), shlex.quote(planned.name), str(slot))
    for place, value in zip(_PLACES, values, strict=True):
        template = template.replace(place, value)
    return template


def check_template(template: str) -> None:
    """Raises Refusal for a template in which the run's command has no place."""
    if template and not any(place in template for place in _PLACES[:2]):
        refuse("launch", template, "should have {command} in it, or {quoted} for another shell")


def _signal(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass  # it has ended


@contextmanager
def _signals_as_interrupts():
    """SIGTERM and SIGHUP end the body as Ctrl-C does."""

    def interrupt(number, _):
        raise KeyboardInterrupt(number)

    before = {
        n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
