"""A program in a fork behaves as in a process of its own, however the suite was started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import warm

ROOT = Path(__file__).parents[1]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def test_streams_arguments_folder_environment_and_status_are_its_own(tmp_path):
    program = """
import os, sys
print(os.getcwd(), os.environ["WORD"], sys.argv[1:], sys.stdin.read())
print("tensorflow" in sys.modules, file=sys.stderr)
sys.exit(3)
"""
    command = [*warm.python(), "-c", program, "a b"]
    own = {"cwd": tmp_path, "env": {**os.environ, "WORD": "w"}, "input": "in"}
    done = subprocess.run(command, **own, capture_output=True, text=True)
    assert done.stdout == f"{tmp_path} w ['a b'] in\n"
    assert (done.stderr, done.returncode) == ("True\n", 3)


def test_what_is_raised_is_told_with_status_1():
    done = subprocess.run([*warm.python(), "-c", "1 / 0"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("ZeroDivisionError")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number, tmp_path):
    program = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    process = subprocess.Popen([*warm.python(), "-c", program], cwd=tmp_path, **PIPES)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    process.send_signal(number)
    process.communicate(timeout=20)  # its pipes are closed: the fork has gone too
    assert process.returncode == -number
    wait_until(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists())


def wait_until(true):
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_where_signals_are_ignored_what_the_suite_starts_has_the_default():
    """A shell script's `&` makes a process ignore SIGINT; nohup makes it ignore SIGHUP."""
    program = """
import signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
from tests import conftest, warm
conftest.pytest_configure()
asks = "import signal; print(*(signal.getsignal(n) == signal.SIG_IGN for n in (1, 2)))"
for python in ([sys.executable], warm.python()):
    print(subprocess.run([*python, "-c", asks], capture_output=True, text=True).stdout, end="")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False False\n" * 2, done.stderr
