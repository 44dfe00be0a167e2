"""Runs a study: one process a run, `jobs` at a time, through the user's launch template if given.

Finished runs are not repeated. The template is split into words before its placeholders are
replaced, and no shell is involved: the value of a placeholder stays one argument.
"""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from dawnbench_tf import files, flags, machine, terminal
from dawnbench_tf.clock import duration
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing
from dawnbench_tf.studies import outcomes, plans, store
from dawnbench_tf.studies.grid import PlannedRun
from dawnbench_tf.studies.outcomes import Outcome

COMMAND, QUOTED, NAME, SLOT = "{command}", "{quoted}", "{name}", "{slot}"
POLL_SECONDS = 0.2
SECONDS_TO_END = 60  # for interrupted runs to end the call, or the checkpoint, that they are in


def check_template(template: str) -> None:
    """Raises Refusal if a template has no placeholder for the command, or its program is absent."""
    if not template:
        return
    with refusing(f"--launch={one_line(template)}", "can't be split into words", ValueError):
        words = shlex.split(template)
    for word in words:
        if word not in (COMMAND, QUOTED) and (COMMAND in word or QUOTED in word):
            text = "should have {command} or {quoted} as words of their own, outside quotes"
            refuse("launch", template, f"{text}; for a shell: sh -c '... \"$@\"' sh {{command}}")
    if not {COMMAND, QUOTED} & set(words):
        text = "should have {command} in it, or {quoted} for another shell, as a word of its own"
        refuse("launch", template, text)
    if words[0] != COMMAND and shutil.which(words[0]) is None:
        refuse("launch", template, f"{words[0]} is no program on this machine's PATH")


def fill_template(template: str, command: Sequence[str], name: str, slot: int) -> list[str]:
    """Returns the arguments of a run's process: the template with its placeholders replaced.

    >>> fill_template("srun --job-name={name} {command}", ["python", "a b"], "x/seed-0", 1)
    ['srun', '--job-name=x/seed-0', 'python', 'a b']
    >>> fill_template("ssh node{slot} {quoted}", ["python", "a b"], "x/seed-0", 1)
    ['ssh', 'node1', "python 'a b'"]
    """
    whole = {COMMAND: list(command), QUOTED: [shlex.join(command)]}
    words = shlex.split(template)
    parts = [whole.get(w) or [w.replace(SLOT, str(slot)).replace(NAME, name)] for w in words]
    return [argument for part in parts for argument in part]


def build_arguments(
    planned: PlannedRun, folder: Path, template: str, slot: int, timed: bool
) -> list[str]:
    """Returns the arguments of a run's process; `timed`: `infer` times its model afterwards."""
    run = str((folder / outcomes.RUN).resolve())  # a launcher may change the working directory
    python = [*machine.python(), "-m"]
    command = [*python, "dawnbench_tf.train", *planned.flags, f"--output_dir={run}"]
    if timed:
        data = [flag for flag in planned.flags if flag.startswith("--data_dir=")]
        infer = [*python, "dawnbench_tf.infer", f"--model={run}", *data]
        command = ["sh", "-c", f"{shlex.join(command)} || exit; exec {shlex.join(infer)}"]
    return fill_template(template or COMMAND, command, planned.name, slot)


class _Running(NamedTuple):
    planned: PlannedRun
    folder: Path
    process: subprocess.Popen
    since: float  # time.monotonic() at its start
    log: int  # byte offset in the log at which its output begins
    kills: int  # processes killed for memory before its start

    def send(self, number: int) -> None:
        """Sends a signal to the run's process and its children."""
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(self.process.pid, number)


class Runner:
    """Runs the planned runs of a study; `run()` returns when each has an outcome.

    A run holds a lock in its folder while its process lives. A run whose lock is taken is an
    orphan of a killed study: it is put back into the queue until it has ended. `latency`: `infer`
    times each trained model; `template`: the launch command; `retry`: runs that crashed run again.
    """

    def __init__(
        self,
        folder: Path,
        planned: list[PlannedRun],
        latency: bool,
        jobs: int = 1,
        template: str = "",
        retry: bool = False,
    ):
        self.folder, self.planned, self.latency = folder, planned, latency
        self.jobs, self.template = jobs, template
        self.outcomes = store.read_outcomes(folder, planned, retry)
        self._waiting = deque(run for run in planned if run.name not in self.outcomes)
        for run in self._waiting:  # some crashed, or were refused
            files.discard(folder / run.name / outcomes.OUTCOME)
        self._running: dict[int, _Running] = {}  # by slot
        self._refused: dict[str, str] = {}  # reasons by name of the run

    def run(self) -> dict[str, Outcome]:
        """Runs all runs without an outcome; returns run name -> outcome, in the plan's order."""
        # If the first run is refused, no other is started.

        def interrupt(number: int, _: FrameType | None) -> NoReturn:  # at each signal: see `_stop`
            raise KeyboardInterrupt(number)

        shown_at = time.monotonic() if not terminal.is_terminal() else 0.0
        with flags.handling_signals(interrupt):
            try:
                while self._waiting or self._running:
                    for slot in range(self.jobs):
                        if slot not in self._running and self._waiting:
                            self._start(self._waiting.popleft(), slot)
                    for slot, running in list(self._running.items()):
                        if (code := running.process.poll()) is not None:
                            del self._running[slot]
                            self._end(running, code)
                    if time.monotonic() - shown_at >= (1 if terminal.is_terminal() else 60):
                        terminal.status(self._status())
                        shown_at = time.monotonic()
                    time.sleep(POLL_SECONDS)
            except BaseException:
                self._stop()
                raise
        terminal.status("")
        if self._refused:
            (name, reason), *more = self._refused.items()
            others = f", and {len(more)} more" if more else ""
            text = f"{name}{others}: refused: {reason}"
            raise Refusal(f"{text}; fix it, then run the same command again")
        return {run.name: self.outcomes[run.name] for run in self.planned}

    def _start(self, planned: PlannedRun, slot: int) -> None:
        """Starts a run's process, unless an orphan still runs it or has finished it."""
        folder = self.folder / planned.name
        files.make_folder(folder)
        lock = files.take_lock(folder)
        if lock is None:
            self._waiting.append(planned)
            return
        try:
            if _is_training(folder):
                self._waiting.append(planned)
                return
            if not self.latency and outcomes.has_entry(folder) and self._finish(planned, 0.0):
                return
            words = build_arguments(planned, folder, self.template, slot, self.latency)
            kills, since, path = outcomes.count_oom_kills(), time.monotonic(), folder / outcomes.LOG
            if path.exists() and not path.is_file():
                raise Refusal(f"{path}: is no file; remove it")
            try:
                with open(path, "a", encoding="utf-8", errors="surrogateescape") as log:
                    print(f"$ {shlex.join(words)}", file=log, flush=True)
                    begin = log.tell()
                    process = subprocess.Popen(
                        words,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,  # Ctrl-C reaches the study alone, see `_stop`
                        pass_fds=(lock,),  # the folder is locked until the process has ended
                    )
            except OSError as error:
                if error.filename == words[0]:
                    refuse("launch", words[0], f"can't be started ({error.strerror})")
                raise files.cannot_write(path, error) from None
            self._running[slot] = _Running(planned, folder, process, since, begin, kills)
        finally:
            os.close(lock)  # the process has inherited it
        if not terminal.is_terminal():
            terminal.say(f"{planned.name}: started; log: {path}")

    def _end(self, running: _Running, code: int) -> None:
        """Records the outcome of a run whose process has ended, by its folder, status and log."""
        planned, folder = running.planned, running.folder
        spent = round(time.monotonic() - running.since, 1)
        if self._finish(planned, spent, failed=code not in (0, 3)):
            return
        if code in (0, 3):  # a launcher that ended before its run
            if files.is_locked(folder) or _is_training(folder):
                self._waiting.append(planned)
                return
            text = f"ended with {code}, but {folder / outcomes.RUN} has no finished run"
            hint = "; a launcher should wait for it, as sbatch --wait does" * bool(self.template)
            raise Refusal(f"{planned.name}: its process {text}{hint}")
        killed = not self.template and outcomes.count_oom_kills() > running.kills
        log = outcomes.read_tail(folder / outcomes.LOG, running.log)
        status, reason = outcomes.classify_failure(code, log, killed)
        # A process that fails before `train` has begun would fail for every run.
        absent = status == outcomes.CRASHED and not outcomes.has_begun(folder) and code > 0
        if not self.outcomes and (status == outcomes.REFUSED or absent):
            raise Refusal(f"{planned.name}: {reason}")
        if status == outcomes.REFUSED:
            self._refused[planned.name] = reason
            terminal.say(f"{planned.name}: refused: {reason}")
        else:
            self._keep(planned, outcomes.read_ended(planned, folder, status, reason, spent))

    def _finish(self, planned: PlannedRun, spent: float, failed: bool = False) -> bool:
        """Records a run's outcome if its folder shows that it has finished; returns whether."""
        # A run whose process failed has finished only if its entries are written.
        folder = self.folder / planned.name
        outcome = outcomes.read_finished(planned, folder, spent)
        if outcome is None:
            return False
        untimed = self.latency and outcome.status == outcomes.REACHED
        untimed = untimed and "latency_ms" not in outcome.facts
        if failed and (untimed or not outcomes.has_entry(folder)):
            return False
        self._keep(planned, outcome)
        return True

    def _keep(self, planned: PlannedRun, outcome: Outcome) -> None:
        outcome = outcome._replace(facts={**outcome.facts, "jobs": self.jobs})
        outcomes.write(self.folder / planned.name, outcome)
        self.outcomes[planned.name] = outcome
        text = f"{outcome.status}: {outcome.reason}"
        if outcome.status == outcomes.REACHED and (row := outcome.row_at(outcome.goal)):
            seconds = row["hours"] * 3600
            text = f"{outcome.metric} {outcome.best:g} after {seconds:.1f} s on the clock"
        terminal.say(f"[{len(self.outcomes)}/{len(self.planned)}] {planned.name}: {text}")

    def _status(self) -> str:
        """Returns a progress line: counts by status, current runs, time left."""
        counts = Counter(outcome.status for outcome in self.outcomes.values())
        so_far = ", ".join(f"{number} {status}" for status, number in counts.items())
        begun = {r.planned.name: time.monotonic() - r.since for r in self._running.values()}
        running = ", ".join(f"{name} since {seconds:.0f} s" for name, seconds in begun.items())
        left = plans.seconds_left(self.planned, self.outcomes, self.jobs, list(begun.values()))
        left_text = f"{duration(left)} left" if left else ""
        parts = [f"{len(self.outcomes)} of {len(self.planned)} runs", so_far, running, left_text]
        return "; ".join(filter(None, parts))

    def _stop(self) -> None:
        """Ends all runs, which go on from their last checkpoint; a second interrupt kills them."""
        if not self._running:
            return
        count, deadline = len(self._running), time.monotonic() + SECONDS_TO_END
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            for running in self._running.values():
                running.send(signal.SIGTERM)  # srun does not forward SIGINT
            terminal.say(
                f"stopping {terminal.counted(count, 'run')}, up to {SECONDS_TO_END} s; "
                "Ctrl-C again kills them"
            )
            for running in self._running.values():
                running.process.wait(max(deadline - time.monotonic(), 0))
        for running in self._running.values():
            running.send(signal.SIGKILL)
            running.process.wait()


def _is_training(folder: Path) -> bool:
    """Whether `train` holds the lock of the run's own folder: its launcher or study has died."""
    return (folder / outcomes.RUN).is_dir() and files.is_locked(folder / outcomes.RUN)
