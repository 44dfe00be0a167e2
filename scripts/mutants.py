"""Mutation testing: breaks the code in small ways and prints which mutants the tests catch.

    .venv/bin/python scripts/mutants.py [COUNT [SEED [PATH ...]]]      # default: 30 with seed 0

A mutant is one change in one file of a copy of the tree: a negated comparison, a number increased
by one, or a removed statement. Packages take turns; PATHs restrict it to files and folders. The
tests that the file affects run, nearest first, until one fails or two minutes have passed; if none
fails, the long mode's tests run too.
"""

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, cycle, islice
from pathlib import Path
from typing import NamedTuple

from changed_tests import ROOT, modules, touched

SECONDS = 120  # time after which no further test starts
NEGATED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Delete)


class Mutant(NamedTuple):
    """A replacement of a range of characters in a file."""

    path: str
    line: int
    start: int  # offset in the file
    end: int
    replacement: str

    def apply(self, root: Path) -> str:
        """Changes the file below `root`; returns a description of the change."""
        path = root / self.path
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: self.start] + self.replacement + text[self.end :], encoding="utf-8")
        old = " ".join(text[self.start : self.end].split())
        return f"{self.path}:{self.line}: `{old}` -> `{self.replacement}`"


def mutants(path: Path) -> Iterator[Mutant]:
    """Yields all mutants of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    name = str(path.relative_to(ROOT))

    starts = [0, *accumulate(map(len, lines))]

    def offset(line, column):  # ast counts columns in bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node):
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def mutant(node, replacement):
        return Mutant(name, node.lineno, *span(node), replacement)

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = (node.left, node.comparators[0])
            left, right = (text[slice(*span(side))] for side in sides)
            yield mutant(node, f"{left} {NEGATED[type(node.ops[0])]} {right}")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield mutant(node, repr(node.value + 1))
        elif isinstance(node, SIMPLE) and not _is_text(node):
            yield mutant(node, "pass")


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def choose(count: int, seed: int, below: Sequence[str] = ()) -> list[Mutant]:
    """Draws mutants from the folders of the source in turn, or from those files and folders."""
    rooms: dict[str, list[Path]] = {}
    for path in modules().values():
        if not below or any(path.is_relative_to(ROOT / item) for item in below):
            rooms.setdefault(str(path.parent.relative_to(ROOT)), []).append(path)
    candidates = cache(lambda room: [m for path in rooms[room] for m in mutants(path)])
    turns = cycle([several for room in sorted(rooms) if (several := candidates(room))])
    draw = random.Random(seed)
    return [draw.choice(m) for m in islice(turns, count)] or sys.exit("no mutant in these paths")


def run_tests(root: Path, mutant: Mutant, mark: str) -> str:
    """Runs the tests that a mutant's file affects; returns the first that fails, or ""."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--dist=load"]
    command += ["--maxschedchunk=1", f"--seconds={SECONDS}", "-m", mark, *touched([mutant.path])]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 5 and mark == "not long":  # also where a worker can't collect
        raise RuntimeError(f"no test ran: {done.stdout[-200:]}{done.stderr[-200:]}")
    if done.returncode in (1, 2, 3, 4):
        return failures[0] if failures else f"the tests do not start: {done.stdout[-200:]}"
    return ""


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {".venv", ".git", "runs"} & {*names} if Path(folder) == ROOT else {"__pycache__"}


def main(count: str = "30", seed: str = "0", *below: str) -> None:
    """Tests each mutant and prints a line with its verdict."""
    for number, mutant in enumerate(choose(int(count), int(seed), below)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "tree"
            shutil.copytree(ROOT, root, symlinks=True, ignore=_ignored)
            change, begin = mutant.apply(root), time.monotonic()
            by = run_tests(root, mutant, "not long")
            verdict = f"caught by {by}" if by else "not caught"
            if not by:
                by = run_tests(root, mutant, "long")
                verdict = f"caught by the long mode alone: {by}" if by else verdict
        print(f"{number} {change}: {verdict} ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
