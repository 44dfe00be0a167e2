"""What commands say on stderr and stdout: lines, and a status line that the next one replaces.

Whoever reads them may go away (a closed terminal, `| head -1`, `2>&-`): what is said is then lost,
and nothing else is.
"""

import os
import signal
import sys
import threading
from typing import NoReturn, TextIO

from dawnbench_tf.refusals import one_line, shown

CLEAR = "\r\x1b[K"  # back to the line's start, and wipe it
LONGEST = 1000  # characters of a last line
_speaking = threading.RLock()  # a training says things from two threads


def say(text: str, stream: TextIO | None = None, end: str = "\n") -> None:
    """Prints at once, on stderr unless another stream is given, if anybody is still there to read.

    When the reader has gone, the stream leads nowhere from then on: no later print fails, and the
    exit status stays the command's own.
    """
    stream = sys.stderr if stream is None else stream
    if stream is None:  # closed before Python began
        return
    try:
        with _speaking:
            print(text, end=end, file=stream, flush=True)
    except (OSError, ValueError):  # ValueError: closed
        lead_nowhere(stream)


def lead_nowhere(stream: TextIO) -> None:
    """Lets a stream whose reader has gone lead nowhere from now on."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # it has no descriptor of its own to lead anywhere


def hold_standard_streams() -> None:
    """Opens descriptors 0 to 2 if they are closed: else the next file opened would be stderr."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free one, which is this


def status(line: str, logged: bool = True) -> None:
    """Shows what goes on: in place of the line before on a terminal; elsewhere as a line.

    Args:
      line: what to show; "" wipes the line.
      logged: whether to print it where stderr is no terminal but, say, a log file.
    """
    if is_terminal():
        say(f"{CLEAR}{line}", end="")
    elif line and logged:
        say(line)


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream, stderr if none is given, is a terminal."""
    stream = sys.stderr if stream is None else stream
    return stream is not None and not stream.closed and stream.isatty()


def exit_with(line: str, status: int = 1, at_once: bool = False) -> NoReturn:
    """Prints one line on stderr, in place of a status line if one is alive there, and exits.

    `at_once`, without the interpreter's clean-up: TensorFlow's waits there for lost workers.
    """
    start = CLEAR if is_terminal() else ""
    say(f"{start}{sys.argv[0].rsplit('/', 1)[-1]}: {one_line(shown(line), LONGEST)}")
    if at_once:
        say("", sys.stdout, end="")  # flushes it
        os._exit(status)
    raise SystemExit(status)


def end_quietly() -> None:
    """Lets Ctrl-C, and a reader that has seen enough, end a command without a traceback."""
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
