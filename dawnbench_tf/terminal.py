"""Output of commands on stdout and stderr: lines, and a status line that the next one replaces.

Only commands print: until `show` is called, lines go to the logger "dawnbench_tf", at INFO.

Whoever reads them may go away (a closed terminal, `| head -1`, `2>&-`): what is said is then lost,
and nothing else is.
"""

import errno
import logging
import os
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import NoReturn, TextIO

from rich.cells import cell_len, set_cell_size

from dawnbench_tf.refusals import one_line, shown

CLEAR = "\r\x1b[K"  # back to the line's start, and wipe it
LONGEST = 1000  # characters of a last line
COLUMNS = 80  # of a terminal that does not know its own
OF_A_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_speaking = threading.RLock()  # training prints from two threads
unwritten: list[Exception] = []  # of results that a full disk did not take: `flags.run` fails
_live: list[TextIO] = []  # the terminal that shows a status line, if one does
_shows = False
_logger = logging.getLogger("dawnbench_tf")


def show(shows: bool = True) -> None:
    """Makes `say` and `status` print, for commands, or log to "dawnbench_tf", for the library."""
    global _shows  # noqa: PLW0603
    _shows = shows


def say(text: str, stream: TextIO | None = None, end: str = "\n", is_prose: bool = False) -> None:
    """Prints a line at once, by default on stderr; a terminal breaks `is_prose` between words."""
    if not _shows:
        _logger.info(text)
        return
    stream = sys.stderr if stream is None else stream
    if is_prose and is_terminal(stream):
        text = wrapped(text, columns(stream))
    with _speaking:
        while _live:  # wiped first, whichever stream it is on: both may be the same terminal
            _write(_live.pop(), CLEAR)
        _write(stream, f"{text}{end}")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed before Python began
        return
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: closed
        # No later print fails then, and the exit status stays the command's own.
        lead_nowhere(stream)
        number = getattr(error, "errno", None)  # EIO: perhaps of a terminal that was closed
        if stream is sys.stdout and number in OF_A_FULL_DISK and number != errno.EIO:
            unwritten.append(error)


def lead_nowhere(stream: TextIO) -> None:
    """Redirects a stream whose reader has gone to the null device."""
    with suppress(OSError, ValueError):  # it has no descriptor of its own to lead anywhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def silent() -> Iterator[None]:
    """Hides output of C++ code on stderr: TensorFlow logs some messages at every level."""
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def hold_standard_streams() -> None:
    """Opens descriptors 0 to 2 if they are closed: else the next file opened would be stderr."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free one, which is this
        if getattr(sys, name) is None:  # it was closed before Python began
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def status(line: str, logged: bool = True, stream: TextIO | None = None) -> None:
    """Shows progress: on a terminal in place of the line before; elsewhere, if `logged`, a line."""
    # It is cut to the terminal's columns; "" wipes it.
    stream = sys.stderr if stream is None else stream
    if not _shows or not is_terminal(stream):
        if line and logged:
            say(line, stream)
        return
    with _speaking:
        # The stream's encoding may lack characters: what replaces them is cut too.
        encoding = getattr(stream, "encoding", None) or "utf-8"
        printed = shown(line).encode(encoding, getattr(stream, "errors", None) or "replace")
        line_printed = cut(printed.decode(encoding, "replace"), columns(stream) - 1)
        _write(stream, f"{CLEAR}{line_printed}")
        _live[:] = [stream] if line else []


def columns(stream: TextIO) -> int:
    """Returns the number of columns of a terminal; 80 if it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


def cut(line: str, most: int) -> str:
    """Returns a printable line of at most `most` columns; a longer one is cut and ends in "..."."""
    # East Asian wide characters count as two columns, combining ones as none.
    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 3)}..."


def padded(text: str, width: int) -> str:
    """Returns a text in exactly `width` columns; a longer one is cut."""
    return set_cell_size(cut(text, max(width, 4)), width)


def wrapped(text: str, most: int = COLUMNS, indent: int = 2) -> str:
    """Breaks lines between words at `most` columns; those that begin with a space stay whole."""
    wrapper = textwrap.TextWrapper(
        most, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    lines = text.split("\n")
    return "\n".join(line if line[:1] in ("", " ") else wrapper.fill(line) for line in lines)


def fitted(line: str, stream: TextIO | None = None) -> str:
    """Drops parts, separated by two spaces, from a line's end until it fits the terminal."""
    # It stays whole where the stream, stderr by default, is no terminal.
    stream = sys.stderr if stream is None else stream
    if is_terminal(stream):
        while cell_len(line) > columns(stream) and "  " in line:
            line = line.rpartition("  ")[0]
    return line


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream, stderr if none is given, is a terminal that can wipe a line."""
    stream = sys.stderr if stream is None else stream
    is_one = stream is not None and not stream.closed and stream.isatty()
    return is_one and os.environ.get("TERM") != "dumb"


def counted(number: float, noun: str) -> str:
    """Formats a number of things.

    >>> counted(1.0, "epoch"), counted(1.5, "epoch"), counted(1_500_000, "step")
    ('1 epoch', '1.5 epochs', '1,500,000 steps')
    """
    text = f"{number:,.0f}" if number == round(number) else f"{number:,g}"
    return f"{text} {noun}{'s' * (number != 1)}"


def dollars(usd: float) -> str:
    """Formats US dollars: to the cent, below a cent to two digits, never with an exponent.

    >>> dollars(1112.6402), dollars(0.00123), dollars(9.459e-14)
    ('$1,112.64', '$0.0012', '$0.000000000000095')
    """
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${Decimal(f'{usd:.2g}'):f}"


def exit_with(line: str, status: int = 1, at_once: bool = False) -> NoReturn:
    """Prints one line on stderr, in place of a status line, and exits."""
    show()
    command = sys.argv[0].removesuffix("/__main__.py").rpartition("/")[2]
    say(f"{command}: {one_line(shown(line), LONGEST)}")
    if at_once:  # without the interpreter's clean-up: TensorFlow's waits there for lost workers
        say("", sys.stdout, end="")  # flushes it
        os._exit(status)
    raise SystemExit(status)
