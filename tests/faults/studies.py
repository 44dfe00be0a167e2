"""Studies that are killed, alone or with their runs, and checks of their final state."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from dawnbench_tf import terminal
from dawnbench_tf.studies import grid, outcomes, runner, store
from tests.studies import samples

ROOT = Path(__file__).parents[2]
TRIALS = 3
prepare = samples.launcher  # once for all processes of a study


def carry_out(folder: str, template: str, trials: str, jobs: str) -> None:
    """Runs the study; the main function of its process."""
    terminal.show()
    runner.POLL_SECONDS = 0.01
    with store.claimed(Path(folder), samples.study(trials=int(trials))) as study:
        runner.Runner(Path(folder), grid.plan(study), False, int(jobs), template).run()


def start(folder: Path, template: str, trials: int = TRIALS, jobs: int = 1) -> subprocess.Popen:
    """Starts the study in a process of its own."""
    command = [sys.executable, "-m", "tests.faults.studies", str(folder), template]
    command += [str(trials), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def killed(home: Path, chosen: random.Random, deaths: int) -> str:
    """Kills a study `deaths` times, each after a random time; returns the error found, or ""."""
    folder, template = home / "study", f"{home}/launch {{command}}"
    with_runs = chosen.random() < 0.5
    for _ in range(deaths):
        process = start(folder, template, jobs=2)
        if chosen.random() < 0.9:
            deadline = time.monotonic() + 20
            while not any(folder.glob("*/*/log.txt")) and time.monotonic() < deadline:
                time.sleep(0.002)
        time.sleep(chosen.random() * 0.4)
        children = _children(process.pid) if with_runs else []
        process.kill()
        for child in children:
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it had ended
        _, said = process.communicate()
        if "Traceback" in said or "refused" in said:
            return f"said {said[-400:]}"
    process = start(folder, template, jobs=2)
    _, said = process.communicate(timeout=60)
    text = f"status {process.returncode}: {said[-300:]}" if process.returncode else ""
    text = text or _wrong(folder, with_runs)
    shutil.rmtree(folder)
    return text


def _children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in path.read_text().split()]
    except OSError:
        return []  # it has ended


def _wrong(folder, with_runs):
    by_name = store.read_outcomes(folder, grid.plan(store.read(folder)))
    if len(by_name) != 2 * TRIALS:
        return f"{len(by_name)} outcomes"
    for name, outcome in by_name.items():
        rows = [tuple(row.values()) for row in outcome.rows]
        if outcome.status != outcomes.REACHED or rows != [(1, 0.001, 50.0), (2, 0.002, 99.0)]:
            return f"{name}: {outcome.status}, {rows}"
        words = (folder / name / "run/journal").read_text().split()
        if words.count("done") != 1 or (not with_runs and words != ["began", "done"]):
            return f"{name} was run as {words}"
    return ""


if __name__ == "__main__":
    carry_out(*sys.argv[1:])
