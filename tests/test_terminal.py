"""A status line is replaced on a terminal, and a line of a log elsewhere."""

import errno
import io
import os
import shlex
import subprocess
import sys
from unittest.mock import Mock

import pytest
from rich.cells import cell_len

from dawnbench_tf import terminal
from tests import screen, warm


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "logged", "text"),
    [
        (Terminal(), True, "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"),
        (Terminal(), False, "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"),
        (io.StringIO(), True, "one\ntwo\n"),
        (io.StringIO(), False, ""),
    ],
)
def test_status_lines(monkeypatch, stream, logged, text):
    monkeypatch.setattr(sys, "stderr", stream)
    for line in ("one", "two", ""):
        terminal.status(line, logged)
    assert stream.getvalue() == text
    monkeypatch.setenv("TERM", "dumb")  # Emacs' shell
    monkeypatch.setattr(sys, "stderr", dumb := Terminal())
    terminal.status("one")
    assert dumb.getvalue() == "one\n"


def test_a_full_disk_fails_the_command_and_a_closed_terminal_does_not(monkeypatch):
    for number, count in ((errno.ENOSPC, 1), (errno.EIO, 0)):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "flush", Mock(side_effect=OSError(number, "")))
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(terminal, "unwritten", [])
        terminal._write(stream, "a result")
        assert len(terminal.unwritten) == count


@pytest.mark.parametrize("command", ["infer --instance=?", "leaderboard --json", "--help"])
def test_a_reader_that_has_seen_enough_is_no_error(command):
    shell = f"{sys.executable} -u -m dawnbench_tf {command} | head -1"
    ended = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout.count("\n") == 1 and ended.stderr == ""


def test_help_that_is_still_in_a_buffer_when_its_reader_goes_is_no_error():
    program = """
import os, runpy, sys
read, write = os.pipe()
os.close(read)
sys.stdout = os.fdopen(write, "w", 1 << 20)
sys.argv = ["train.py", "--help"]
runpy.run_module("dawnbench_tf.train", run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_last_line_takes_the_status_line_s_place(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "argv", ["/somewhere/train.py"])
    terminal.status("epoch 1")
    with pytest.raises(SystemExit) as error:
        terminal.exit_with("it is wrong", 3)
    assert error.value.code == 3
    assert stream.getvalue().endswith("\r\x1b[Ktrain.py: it is wrong\n")


def test_a_reader_that_has_gone_is_no_error_and_no_later_print_fails():
    program = """
import os, sys
from dawnbench_tf import terminal
terminal.show()
if sys.argv[1] == "closed":
    os.close(2)
    terminal.hold_standard_streams()
for _ in range(3):
    terminal.say("lost")
    terminal.say("lost too", sys.stdout)
print("as well", flush=True)
"""
    for how in ("closed", "broken"):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-c", program, how]
        done = subprocess.run(command, stdout=write, stderr=write, timeout=60)
        os.close(write)
        assert done.returncode == 0


def test_a_line_of_odd_characters_is_printable_and_short(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SystemExit):
        terminal.exit_with("--author=\x1b[2J\ud800: " + "x" * 9000)
    line = stream.getvalue()
    assert line.endswith("...\n") and line[:-1].isprintable() and len(line) < 1100


LIVE = """
import sys
from dawnbench_tf import terminal
terminal.show()
for step in range(3):
    terminal.status(f"{step} " + TEXT * 100)
if END:
    terminal.say("a remark")
    terminal.status("again")
    terminal.say("reached 99.4", sys.stdout)
"""


@pytest.mark.parametrize("text", ["word ", "\u4e2d\u6587", "e\u0301", "\x1b[2Jx\n"])
def test_a_live_line_is_one_line_of_the_screen_and_gone_when_a_result_is_printed(text):
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    for end in (True, False):
        command = [sys.executable, "-c", f"TEXT, END = {text!r}, {end}\n{LIVE}"]
        status, lines = screen.run(command, 40, env=environment)
        assert status == 0 and (lines == ["a remark", "reached 99.4"]) == end
    (line,) = lines
    assert line.startswith("2 ") and line.endswith("...") and 37 < cell_len(line) < 40


def test_a_live_line_in_a_narrow_encoding_is_cut_as_it_is_printed():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:backslashreplace"}
    command = [sys.executable, "-c", f"TEXT, END = {chr(0x4E2D)!r}, False\n{LIVE}"]
    _, lines = screen.run(command, env=environment)
    assert len(lines) == 1 and "\\u4e2d" in lines[0]


def test_a_command_runs_with_closed_streams_too():
    flags = "--max_steps=1 --batch_size=8"
    command = f"{shlex.join(warm.python())} -m dawnbench_tf.train {flags} <&- 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0 and "ms a step" in done.stdout
