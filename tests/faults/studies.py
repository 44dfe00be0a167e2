"""Studies that are killed, alone or with their runs, and checks of their final state."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from dawnbench_tf import recipes
from dawnbench_tf.studies import grid, outcomes, runner, store
from tests.studies import samples

ROOT = Path(__file__).parents[2]
TRIALS, JOBS = 3, 2
# In place of `train`: locks its folder, goes on from its rows, writes two rows and an entry.
STAND_IN = """
import fcntl, json, os, sys, time
flags = dict(f[2:].split("=", 1) for f in sys.argv[4:] if "=" in f)
folder = flags["output_dir"]
os.makedirs(folder + "/digits/train", exist_ok=True)
lock = os.open(folder + "/.lock", os.O_CREAT | os.O_RDWR)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("train.py: another process trains in it")
def say(word):
    with open(folder + "/journal", "a") as file:
        file.write(word + "\\n")
say("began")
values = json.loads(VALUES)
values.update(batch_size=int(flags["batch_size"]), seed=int(flags["seed"]))
def write(name, text):
    with open(folder + "/tmp", "w") as file:
        file.write(text)
    os.replace(folder + "/tmp", folder + "/" + name)
write("run.json", json.dumps(values))
text = "epoch\\thours\\ttop1Accuracy\\n"
for epoch, score in ((1, 50.0), (2, 99.0)):
    time.sleep(0.02 + 0.01 * (values["seed"] % 3))
    text += f"{epoch}\\t{0.001 * epoch}\\t{score}\\n"
    write("rows.tsv", text)
write("digits/train/entry.json", json.dumps({"hardware": "none"}))
say("done")
"""


def prepare(home: Path) -> None:
    """Writes the launcher that starts the stand-in."""
    values = json.dumps(recipes.get("digits/resnet8").values())
    (home / "stand_in.py").write_text(STAND_IN.replace("VALUES", repr(values)))
    launcher = home / "launch"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -S {home}/stand_in.py "$@"\n')
    launcher.chmod(0o755)


def carry_out(folder: Path) -> None:
    """Runs the study; the main function of its process."""
    template = f"{folder.parent}/launch {{command}}"
    runner.POLL_SECONDS = 0.01
    with store.claimed(folder, samples.study(trials=TRIALS)) as study:
        runner.Runner(folder, grid.plan(study), False, JOBS, template).run()


def start(folder: Path) -> subprocess.Popen:
    """Starts the study in a process of its own."""
    command = [sys.executable, "-m", "tests.faults.studies", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def killed(home: Path, chosen: random.Random, deaths: int) -> str:
    """Kills a study `deaths` times, each after a random time; returns the error found, or ""."""
    folder, with_runs = home / "study", chosen.random() < 0.5
    for _ in range(deaths):
        process = start(folder)
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
    process = start(folder)
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
    carry_out(Path(sys.argv[1]))
