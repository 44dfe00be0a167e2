"""Training runs that are killed or whose file operations fail, and checks of their final state."""

import errno
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests import warm

ROOT = Path(__file__).parents[2]
ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EROFS)


class Ended(NamedTuple):
    """The end of a training process."""

    status: int | None  # of the process, minus the signal's number; None: it hung
    said: str
    operations: list[str]  # on files of its folder; [] of one that was killed
    samples: list[tuple[int, int]]  # bytes of memory and open files at each epoch's end


class Victims:
    """A process that trains in folders below `home`, one run at a time."""

    def __init__(self, home: Path, process: subprocess.Popen):
        self.home, self._process = home, process

    def train(
        self, name: str, operation: int | None = None, action: Any = "kill", epochs: int = 2
    ) -> Ended:
        """Trains in a folder; with a number, is killed or fails at that operation."""
        request = {"operation": operation, "action": action, "epochs": epochs}
        request["folder"] = str(self.home / name)
        assert self._process.stdin and self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        operations, samples = answer.get("operations", []), answer.get("samples", [])
        return Ended(answer["status"], answer["said"], operations, samples)

    def left(self, name: str) -> dict[str, Any]:
        """Returns a finished run's rows and weights, which must not depend on faults."""
        folder = self.home / name
        lines = (folder / "rows.tsv").read_text().splitlines()
        weights = next((folder / "checkpoint-2").glob("variables.data*")).read_bytes()
        return {"rows": [line.split("\t")[::2] for line in lines], "weights": weights}

    def clock(self, name: str) -> float:
        """Returns the seconds in a run's clock file; 0 if there is none yet."""
        path = self.home / name / "clock.json"
        parts = json.loads(path.read_text()) if path.exists() else {}
        return sum(seconds for part, seconds in parts.items() if part != "sha256")


@contextmanager
def victims(home: Path) -> Iterator[Victims]:
    """Starts the process that trains."""
    command = [*warm.python(), "-m", "tests.faults.victim"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        try:
            yield Victims(home, process)
        finally:
            process.kill()


def points(operations: list[str]) -> list[int]:
    """Returns the numbers of operations; of consecutive writes to a file only the first."""
    return [
        number
        for number, name in enumerate(operations)
        if not name.startswith("write") or name != operations[number - 1]
    ]


def first_of_each(numbers: list[int], operations: list[str], verbs: tuple[str, ...]) -> list[int]:
    """Returns the first operation of each verb and kind of file; other verbs are left out."""
    kinds = {re.sub(r"(?<=checkpoint-)\w+", "", operations[n]): n for n in reversed(numbers)}
    return sorted(n for key, n in kinds.items() if key.startswith(verbs))


def killed(victims: Victims, name: str, wanted: dict[str, Any], deaths: list[int]) -> str:
    """Kills a run at each operation of `deaths`, then lets it finish; returns the error or ""."""
    for operation in deaths:
        before = victims.clock(name)
        ended = victims.train(name, operation)
        if ended.status not in (-9, 3):
            return f"status {ended.status} before operation {operation}: {ended.said[-300:]}"
        if victims.clock(name) < before:
            return f"the clock fell from {before} at operation {operation}"
    before = victims.clock(name)
    ended = victims.train(name)
    return _wrong(victims, name, wanted, ended, before)


def failed(victims: Victims, name: str, wanted: dict[str, Any], operation: int, error: int) -> str:
    """Lets a file operation of a run fail, then resumes it; returns the error found, or ""."""
    ended = victims.train(name, operation, error)
    last = ended.said.splitlines()[-1] if ended.said else ""
    if ended.status not in (1, 3) or "Traceback" in ended.said:
        return f"status {ended.status} after error {error} at {operation}: {ended.said[-300:]}"
    if ended.status == 1 and "can't be written" not in last:
        return f"no word of what to mend after error {error} at {operation}: {last}"
    before = victims.clock(name)
    return _wrong(victims, name, wanted, victims.train(name), before)


def _wrong(victims, name, wanted, ended, before):
    if ended.status != 3 or "Traceback" in ended.said:
        return f"status {ended.status} at the end: {ended.said[-300:]}"
    if victims.left(name) != wanted:
        return "other rows or weights than those of the run that nobody disturbed"
    if victims.clock(name) < before:
        return f"the clock fell from {before}"
    if not list((victims.home / name).glob("not_an_entry/digits/train/*.json")):
        return "no entry was written"
    shutil.rmtree(victims.home / name)
    return ""


def several(chosen: random.Random, operations: int) -> list[int]:
    """Draws operations at which one run is killed in turn, for the long mode."""
    return [chosen.randrange(operations) for _ in range(chosen.randint(1, 4))]
