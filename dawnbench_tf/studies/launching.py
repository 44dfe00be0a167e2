"""Starts the processes of a study's runs, through the user's launch template if one is given.

The template is split into words before its placeholders are replaced, and no shell is involved:
the value of a placeholder stays one argument.
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
    """How the runs of a study are started."""

    jobs: int = 1  # runs at a time
    template: str = ""  # launch command with placeholders; "" starts runs directly
    retry: bool = False  # whether crashed runs are run again


def check_template(template: str) -> None:
    """Raises Refusal if a template has no placeholder for the command, or its program is absent."""
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


def fill_template(template: str, command: Sequence[str], name: str, slot: int) -> list[str]:
    """Returns the arguments of a run's process: the template with its placeholders replaced.

    >>> fill_template("srun --job-name={name} {command}", ["python", "a b"], "x/seed-0", 1)
    ['srun', '--job-name=x/seed-0', 'python', 'a b']
    >>> fill_template("ssh node{slot} {quoted}", ["python", "a b"], "x/seed-0", 1)
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


def build_arguments(
    planned: PlannedRun, folder: Path, launch: Launch, slot: int, timed: bool
) -> list[str]:
    """Returns the arguments of a run's process.

    Args:
      planned: the run.
      folder: the run's folder in the study.
      launch: how the run is started.
      slot: index of the run among those that run at the same time, from 0.
      timed: whether `infer` times the trained model afterwards.
    """
    run = str((folder / outcomes.RUN).resolve())  # a launcher may change the working directory
    python = [sys.executable, "-m"]
    command = [*python, "dawnbench_tf.train", *planned.flags, f"--output_dir={run}"]
    if timed:
        data = [flag for flag in planned.flags if flag.startswith("--data_dir=")]
        infer = [*python, "dawnbench_tf.infer", f"--model={run}", *data]
        script = f"{shlex.join(command)} || exit; exec {shlex.join(infer)}"
        command = ["sh", "-c", script]
    return (
        fill_template(launch.template, command, planned.name, slot) if launch.template else command
    )


def start(arguments: list[str], folder: Path, lock: int) -> tuple[subprocess.Popen, int]:
    """Starts the process of a run in a session of its own.

    Args:
      arguments: arguments of the process.
      folder: the run's folder in the study; output is appended to its log.
      lock: file descriptor of the folder's lock. The process inherits it, so the run stays locked
        until the process has ended.

    Returns:
      The process, and the byte offset in the log at which its output begins.

    Raises:
      Refusal: the log can't be written, or the program can't be started.
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
        pass  # all have ended


def kill(process: subprocess.Popen) -> None:
    """Kills a run's processes and waits for their end."""
    signal_all(process, signal.SIGKILL)
    process.wait()
