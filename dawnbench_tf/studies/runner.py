"""Runs a study: one process a run, `jobs` at a time. Finished runs are not repeated."""

import os
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from dawnbench_tf import files, terminal
from dawnbench_tf.clock import duration
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import launching, outcomes, plans, store
from dawnbench_tf.studies.grid import PlannedRun
from dawnbench_tf.studies.launching import Launch
from dawnbench_tf.studies.outcomes import Outcome

POLL_SECONDS = 0.2
SECONDS_TO_END = 60  # time for interrupted runs to save a checkpoint


class _Running(NamedTuple):
    planned: PlannedRun
    process: subprocess.Popen
    since: float  # time.monotonic() at its start
    log: int  # byte offset in the log at which its output begins
    kills: int  # processes killed for memory before its start


class Runner:
    """Runs the planned runs of a study; `run()` returns when each has an outcome.

    A run holds a lock in its folder while its process lives. A run whose lock is taken is an
    orphan of a killed study: it is put back into the queue until it has ended.

    Args:
      folder: the study's folder.
      planned: the study's runs.
      launch: how runs are started.
      latency: whether `infer` times each trained model.
    """

    def __init__(self, folder: Path, planned: list[PlannedRun], launch: Launch, latency: bool):
        self.folder, self.planned, self.launch, self.latency = folder, planned, launch, latency
        self.outcomes = store.read_outcomes(folder, planned)
        self.refused: dict[str, str] = {}  # reasons by name of the run
        if launch.retry:
            for name in [n for n, o in self.outcomes.items() if o.status == outcomes.CRASHED]:
                files.discard(folder / name / outcomes.OUTCOME)
                del self.outcomes[name]
        self._running: dict[int, _Running] = {}  # by slot
        self._shown_at = 0.0

    def run(self) -> dict[str, Outcome]:
        """Runs all runs without an outcome; ends them on Ctrl-C or a signal.

        Returns:
          Run name -> outcome, in the order of the plan.

        Raises:
          Refusal: runs were refused. If the first was, no other is started: the fault is shared.
          KeyboardInterrupt: a signal ended the study; the same command continues it.
        """
        waiting = deque(run for run in self.planned if run.name not in self.outcomes)
        with _signals_as_interrupts():
            try:
                while waiting or self._running:
                    self._start(waiting)
                    self._collect(waiting)
                    self._show()
                    time.sleep(POLL_SECONDS)
            except BaseException:
                self._end_all()
                raise
        terminal.status("")
        if self.refused:
            (name, reason), *more = self.refused.items()
            others = f", and {len(more)} more" if more else ""
            text = f"{name}{others}: refused: {reason}"
            raise Refusal(f"{text}; fix it, then run the same command again")
        return {run.name: self.outcomes[run.name] for run in self.planned}

    def _start(self, waiting: deque[PlannedRun]) -> None:
        for slot in range(self.launch.jobs):
            if slot in self._running or not waiting:
                continue
            planned = waiting.popleft()
            folder = self.folder / planned.name
            files.make_folder(folder)
            lock = files.take_lock(folder)
            if lock is None or self._is_orphan(folder):  # still running
                waiting.append(planned)
            elif not self.latency and outcomes.has_entry(folder) and self._finish(planned, 0.0):
                pass  # an orphan has finished it
            else:
                words = launching.build_arguments(planned, folder, self.launch, slot, self.latency)
                kills, since = outcomes.count_oom_kills(), time.monotonic()
                process, log = launching.start(words, folder, lock)
                self._running[slot] = _Running(planned, process, since, log, kills)
                if not terminal.is_terminal():
                    terminal.say(f"{planned.name}: started; log: {folder / outcomes.LOG}")
            if lock is not None:
                os.close(lock)  # the run's process has inherited it

    def _is_orphan(self, folder: Path) -> bool:
        return (folder / outcomes.RUN).is_dir() and files.is_locked(folder / outcomes.RUN)

    def _collect(self, waiting: deque[PlannedRun]) -> None:
        for slot, running in list(self._running.items()):
            code = running.process.poll()
            if code is None:
                continue
            del self._running[slot]
            planned, folder = running.planned, self.folder / running.planned.name
            spent = round(time.monotonic() - running.since, 1)
            if self._finish(planned, spent, failed=code not in (0, 3)):
                continue
            if code in (0, 3):
                self._ended_too_early(planned, folder, code, waiting)
                continue
            killed = not self.launch.template and outcomes.count_oom_kills() > running.kills
            log = outcomes.read_tail(folder / outcomes.LOG, running.log)
            status, reason = outcomes.classify_failure(code, log, killed)
            # A process that fails before `train` has begun would fail for every run.
            absent = status == outcomes.CRASHED and not outcomes.has_begun(folder) and code > 0
            if not self.outcomes and (status == outcomes.REFUSED or absent):
                raise Refusal(f"{planned.name}: {reason}")
            if status == outcomes.REFUSED:
                self.refused[planned.name] = reason
                terminal.say(f"{planned.name}: refused: {reason}")
            else:
                self._keep(planned, outcomes.read_failed(planned, folder, status, reason, spent))

    def _finish(self, planned: PlannedRun, spent: float, failed: bool = False) -> bool:
        """Records a run's outcome if its folder shows that it has finished; returns whether.

        A run whose process failed has finished only if its entries are written.
        """
        folder = self.folder / planned.name
        outcome = outcomes.read_finished(planned, folder, spent)
        if outcome is None or (failed and not self._has_entries(folder, outcome)):
            return False
        self._keep(planned, outcome)
        return True

    def _has_entries(self, folder: Path, outcome: Outcome) -> bool:
        timed = self.latency and outcome.status == outcomes.REACHED
        return outcomes.has_entry(folder) and (not timed or "latency_ms" in outcome.facts)

    def _keep(self, planned: PlannedRun, outcome: Outcome) -> None:
        outcome = outcome._replace(facts={**outcome.facts, "jobs": self.launch.jobs})
        outcomes.write(self.folder / planned.name, outcome)
        self.outcomes[planned.name] = outcome
        terminal.say(self._line(planned, outcome))

    def _ended_too_early(
        self, planned: PlannedRun, folder: Path, code: int, waiting: deque[PlannedRun]
    ) -> None:
        """Handles a launcher that ended before its run: waits for the run if it is still alive."""
        if files.is_locked(folder) or self._is_orphan(folder):
            waiting.append(planned)
            return
        text = f"ended with {code}, but {folder / outcomes.RUN} has no finished run"
        hint = (
            "; a launcher should wait for it, as sbatch --wait does" if self.launch.template else ""
        )
        raise Refusal(f"{planned.name}: its process {text}{hint}")

    def _line(self, planned: PlannedRun, outcome: Outcome) -> str:
        done = f"[{len(self.outcomes)}/{len(self.planned)}] {planned.name}"
        if outcome.status == outcomes.REACHED:
            seconds = outcome.seconds_to(outcome.goal) or 0.0
            return f"{done}: {outcome.metric} {outcome.best:g} after {seconds:.1f} s on the clock"
        return f"{done}: {outcome.status}: {outcome.reason}"

    def _show(self) -> None:
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
        """Returns a progress line: counts by status, current runs, time left."""
        counts = Counter(outcome.status for outcome in self.outcomes.values())
        so_far = ", ".join(f"{number} {status}" for status, number in counts.items())
        now = time.monotonic()
        running = ", ".join(
            f"{run.planned.name} since {now - run.since:.0f} s" for run in self._running.values()
        )
        parts = [f"{len(self.outcomes)} of {len(self.planned)} runs", so_far, running, self._left()]
        return "; ".join(part for part in parts if part)

    def _left(self) -> str:
        """Returns the estimated time left, from the finished runs; "" if there are none."""
        now = time.monotonic()
        begun = [now - run.since for run in self._running.values()]
        seconds = plans.seconds_left(self.planned, self.outcomes, self.launch.jobs, begun)
        return f"{duration(seconds)} left" if seconds and self.outcomes else ""

    def _end_all(self) -> None:
        """Ends all runs and lets them save a checkpoint; a second interrupt kills them."""
        if not self._running:
            return
        count, deadline = len(self._running), time.monotonic() + SECONDS_TO_END
        try:
            for running in self._running.values():  # SIGTERM: srun does not forward SIGINT
                launching.signal_all(running.process, signal.SIGTERM)
            terminal.say(
                f"stopping {count} run{'s' * (count > 1)}, up to {SECONDS_TO_END} s to save a "
                "checkpoint; Ctrl-C again kills them"
            )
            for running in self._running.values():
                running.process.wait(max(deadline - time.monotonic(), 0))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            pass
        for running in self._running.values():
            launching.kill(running.process)


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Raises KeyboardInterrupt on SIGTERM and SIGHUP too; ignored signals (nohup) stay ignored."""

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(number)

    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
