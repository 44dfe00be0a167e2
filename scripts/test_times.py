"""Profiles the test suite with py-spy: seconds by cause, by file and by test.

    .venv/bin/pip install py-spy
    .venv/bin/python scripts/test_times.py [ARGUMENTS OF PYTEST]

Runs both parts of the default suite, or the tests of the arguments. py-spy samples the main thread
of each process ten times a second. A worker that waits for a process that a test started counts as
waiting; the process itself is counted in the second column.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RATE = 10  # samples per second
ROWS = 40  # rows of a table, at most
BOTH = (  # TF_USE_LEGACY_KERAS and arguments of both parts, as in scripts/test.sh
    (
        "0",
        [
            "-m",
            "both_kerases and not long",
            "tests/models",
            "tests/conformance/test_catalog.py",
            "tests/test_tta.py",
        ],
    ),
    ("1", []),
)
CAUSES = (  # pattern of a stack frame, cause; the innermost frame that matches decides
    (r"_run \(.*tests/warm\.py", "other Python"),  # a fork's program
    (r"[(/](subprocess|selectors|socket|threading)\.py|tests/warm\.py", "waiting"),
    (r"_bootstrap>|assertion/rewrite\.py", "imports"),
    (r"func_graph\.py|polymorphic_function\.py.*_initialize", "tracing"),
    (r"compiler_ir\.py", "lowering by XLA"),
    (r"lite/python|tf2onnx|convert_to_constants", "converting"),
    (r"keras/src/engine/base_layer|keras/src/layers/layer|keras/src/ops/operation", "building"),
    (r"quick_execute|call_function \(tensorflow/python/eager/context", "running operations"),
)
TEST = re.compile(r"^(test_\w+) \(.*?\b(tests/[\w/]+\.py)")


def record(environment: dict[str, str], arguments: Iterable[str], folder: Path) -> Iterator[str]:
    """Runs pytest under py-spy; yields its lines, each a stack and its number of samples."""
    path = folder / "stacks"
    spy = [str(Path(sys.executable).parent / "py-spy"), "record", "--subprocesses", "--nonblocking"]
    spy += ["--idle", "--threads", "--full-filenames", "--format=raw", f"--rate={RATE}"]
    tests = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist=worksteal", *arguments]
    command = [*spy, f"--output={path}", "--", *tests]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)
    yield from path.read_text(encoding="utf-8").splitlines()


def read(line: str) -> tuple[bool, str, str, float] | None:
    """Parses a stack: (whether it is a worker's, test, cause, seconds); None for other threads."""
    stack, _, count = line.rpartition(" ")
    processes, _, frames = stack.partition(": MainThread;")
    process = processes.rpartition("process ")[2]  # the innermost
    if not frames or "-m pytest" in process:
        return None
    tests = [match for match in map(TEST.match, frames.split(";")) if match]
    test = f"{tests[0][2]}::{tests[0][1]}" if tests else ""
    causes = (
        label
        for frame in reversed(frames.split(";"))
        for pattern, label in CAUSES
        if re.search(pattern, frame)
    )
    worker = "exec(eval" in process
    return worker, test, next(causes, "other Python"), int(count) / RATE


def table(head: str, *columns: Counter[str]) -> None:
    """Prints a row for each key, sorted by the seconds of the first column."""
    print(f"\n| {head} |" + " s |" * len(columns) + "\n|---|" + "---|" * len(columns))
    for key in sorted(set().union(*columns), key=lambda key: [-c[key] for c in columns])[:ROWS]:
        print(f"| {key} |" + "".join(f" {column[key]:,.0f} |" for column in columns))


def main() -> None:
    """Runs the suite, then prints the tables."""
    causes, started, files, tests = (Counter[str]() for _ in range(4))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for legacy, arguments in [("1", sys.argv[1:])] if sys.argv[1:] else BOTH:
            environment = {"TF_USE_LEGACY_KERAS": legacy}
            for sample in filter(None, map(read, record(environment, arguments, Path(folder)))):
                worker, test, cause, seconds = sample
                (causes if worker else started)[cause] += seconds
                if worker:
                    files[test.partition("::")[0] or "between tests"] += seconds
                    tests[test or "between tests"] += seconds
    print(f"\n{time.monotonic() - begin:,.0f} s on the wall")
    table("cause: workers, processes that tests started", causes, started)
    table("file: workers", files)
    table("test with all its parameters: workers", tests)


if __name__ == "__main__":
    main()
