"""Starts the runs of a study: one command line for each, wrapped in the user's launcher if given.

The launcher's template is split into words once, before its placeholders are replaced. A value that
replaces a placeholder is one argument; no shell of ours reads it.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import PlannedRun

COMMAND, QUOTED, NAME, SLOT = "{command}", "{quoted}", "{name}", "{slot}"


@dataclass(frozen=True)
class Launch:
    """How runs are started."""

    jobs: int = 1  # runs at a time
    template: str = ""  # command line around each run's; "" starts it here
    retry: bool = False  # run again what crashed


def check_template(template: str) -> None:
    """Raises Refusal for a template without a place for the run's command, or without a program."""
    if not template:
        return
    try:
        words = shlex.split(template)
    except ValueError as error:
        refuse("launch", template, f"can't be split into words ({error})")
    for word in words:
        if word not in (COMMAND, QUOTED) and (COMMAND in word or QUOTED in word):
            text = "should have {command} or {quoted} as words of their own, outside quotes"
            refuse("launch", template, f"{text}; for a shell: sh -c '... \"$@\"' sh {{command}}")
    if not {COMMAND, QUOTED} & set(words):
        text = "should have {command} in it, or {quoted} for another shell, as a word of its own"
        refuse("launch", template, text)
    if words[0] != COMMAND and shutil.which(words[0]) is None:
        refuse("launch", template, f"{words[0]} is no program on this machine's PATH")


def filled(template: str, command: Sequence[str], name: str, slot: int) -> list[str]:
    """The arguments of the process that starts a run, by the user's template.

    >>> filled("srun --job-name={name} {command}", ["python", "a b"], "x/seed-0", 1)
    ['srun', '--job-name=x/seed-0', 'python', 'a b']
    >>> filled("ssh node{slot} {quoted}", ["python", "a b"], "x/seed-0", 1)
    ['ssh', 'node1', "python 'a b'"]
    """
    arguments: list[str] = []
    for word in shlex.split(template):
        if word == COMMAND:
            arguments += command
        elif word == QUOTED:
            arguments.append(shlex.join(command))
        else:
            arguments.append(word.replace(SLOT, str(slot)).replace(NAME, name))
    return arguments


def arguments(
    planned: PlannedRun, folder: Path, launch: Launch, slot: int, timed: bool
) -> list[str]:
    """The arguments of a run's process.

    Args:
      planned: the run.
      folder: its folder of the study.
      launch: how it is started.
      slot: its place among the runs that go on at a time, from 0.
      timed: whether `infer` times the model that was trained.
    """
    run = str((folder / outcomes.RUN).resolve())  # wherever it is started
    python = [sys.executable, "-m"]
    command = [*python, "dawnbench_tf.train", *planned.flags, f"--output_dir={run}"]
    if timed:
        data = [flag for flag in planned.flags if flag.startswith("--data_dir=")]
        infer = [*python, "dawnbench_tf.infer", f"--model={run}", *data]
        script = f"{shlex.join(command)} || exit; exec {shlex.join(infer)}"
        command = ["sh", "-c", script]
    return filled(launch.template, command, planned.name, slot) if launch.template else command


def start(arguments: list[str], folder: Path, lock: int) -> tuple[subprocess.Popen, int]:
    """Starts a run in a session of its own. Returns it, and where in the log what it says begins.

    Args:
      arguments: of the process.
      folder: the run's of the study; its log is appended to.
      lock: descriptor of the folder's lock, which the process inherits: while it lives, nobody
        else starts this run.

    Raises:
      Refusal: the log can't be written, or the program not be started.
    """
    path = folder / outcomes.LOG
    if path.exists() and not path.is_file():
        raise Refusal(f"{path}: is no file; remove it")
    try:
        with open(path, "a", encoding="utf-8", errors="surrogateescape") as log:
            print(f"$ {shlex.join(arguments)}", file=log, flush=True)
            begin = log.tell()
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
    except OSError as error:
        if error.filename == arguments[0]:
            refuse("launch", arguments[0], f"can't be started ({error.strerror})")
        raise files.cannot_write(path, error) from None
    return process, begin


def signal_all(process: subprocess.Popen, number: int) -> None:
    """Sends a signal to a run's process and its children."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass  # they have ended


def kill(process: subprocess.Popen) -> None:
    """Ends a run at once."""
    signal_all(process, signal.SIGKILL)
    process.wait()
