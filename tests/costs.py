"""Counts what tests spend, by file, and holds the default suite to a budget.

    python -m pytest -p tests.costs          # as scripts/test.sh runs each part of the suite

Seconds differ by machine and hour; the work does not. Counted are tests, processes started, forks
of tests/warm.py, networks built and graphs traced: in pytest's processes and in the forks. Of any
other process only its start is. A part of the suite fails above BUDGET.
"""

import functools
import json
import os
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

KINDS = ("tests", "processes", "forks", "networks", "graphs")
# A change that needs more takes it away elsewhere. Ten processes, forks or networks, or 700 graphs,
# are about a minute of one core.
BUDGET = {
    "Keras 3": dict(zip(KINDS, (180, 4, 2, 36, 850), strict=True)),
    "tf-keras": dict(zip(KINDS, (2_080, 225, 90, 445, 24_700), strict=True)),
}
WORKER_SECONDS = 1200  # of both parts together, printed for comparison
RECORD = "DAWNBENCH_TEST_COSTS"  # path of the file to which each process adds a line
SHOWN = 10  # files

_counts: dict[str, Counter[str]] = {}  # file of tests -> kind -> number
_seconds: Counter[str] = Counter()  # file of tests -> worker-seconds; in the main process alone


def _count(kind, number=1):
    test = os.environ.get("PYTEST_CURRENT_TEST", "between tests")
    _counts.setdefault(test.partition("::")[0], Counter())[kind] += number


def _on_event(event, arguments):
    if event == "subprocess.Popen":
        _count("forks" if "relay" in arguments[1] else "processes")


def count_tensorflow():
    """Counts from now on networks and graphs; TensorFlow has been imported."""
    import tensorflow as tf

    from dawnbench_tf.models import networks

    def counted(function, kind):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            _count(kind)
            return function(*args, **kwargs)

        return wrapper

    networks.build = counted(networks.build, "networks")
    tf.Graph.__init__ = counted(tf.Graph.__init__, "graphs")


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def record() -> None:
    """Adds this process's counts to the file that the main process reads."""
    if RECORD in os.environ:
        with open(os.environ[RECORD], "a", encoding="utf-8") as file:  # one write: lines stay whole
            file.write(json.dumps(_counts) + "\n")


def pytest_configure():
    if RECORD not in os.environ:  # the main process: workers inherit the variable
        number, os.environ[RECORD] = tempfile.mkstemp("-costs")
        os.close(number)
    sys.addaudithook(_on_event)


def pytest_collection_finish():
    if "tensorflow" in sys.modules:
        count_tensorflow()


def pytest_runtest_logreport(report):
    file = report.nodeid.partition("::")[0]
    _seconds[file] += report.duration
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        _counts.setdefault(file, Counter())["tests"] += 1


def pytest_sessionfinish(session):
    if "PYTEST_XDIST_WORKER" in os.environ:
        record()
    else:
        _sum_up(Path(os.environ[RECORD]))
        if _excess() and session.exitstatus == 0:
            session.exitstatus = 1


def _sum_up(path):
    """Adds the counts of all other processes to this one's."""
    for line in path.read_text(encoding="utf-8").splitlines():
        for file, counts in json.loads(line).items():
            _counts.setdefault(file, Counter()).update(counts)
    path.unlink()


def _part():
    return "Keras 3" if os.environ.get("TF_USE_LEGACY_KERAS") == "0" else "tf-keras"


def _excess():
    """Returns the kinds of which more was spent than the budget has."""
    total = sum(_counts.values(), Counter())
    return [kind for kind in KINDS if total[kind] > BUDGET[_part()][kind]]


def pytest_terminal_summary(terminalreporter):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    write = terminalreporter.write_line
    terminalreporter.section(f"costs under {_part()}")
    total = sum(_counts.values(), Counter())
    write(f"{sum(_seconds.values()):,.0f} worker-seconds (goal: {WORKER_SECONDS:,} in both parts)")
    write(f"{'':44}" + "".join(f"{kind:>10}" for kind in (*KINDS, "seconds")))
    write(f"{'budget':44}" + "".join(f"{BUDGET[_part()][kind]:10,}" for kind in KINDS))
    rows = [("all", total, sum(_seconds.values()))]
    rows += [(file, _counts.get(file, {}), s) for file, s in _seconds.most_common(SHOWN)]
    for name, counts, seconds in rows:
        columns = "".join(f"{counts.get(kind, 0):10,}" for kind in KINDS)
        write(f"{name:44}{columns}{seconds:10,.0f}")
    for kind in _excess():
        files = sorted(_counts, key=lambda file: -_counts[file][kind])[:5]
        most = ", ".join(f"{file} {_counts[file][kind]:,}" for file in files)
        write(f"over the budget: {total[kind]:,} {kind}; most in {most}", red=True)
