"""What commands say on stderr: a status line that the next one replaces, and a last line."""

import signal
import sys
from typing import NoReturn

CLEAR = "\r\x1b[K"  # back to the line's start, and wipe it


def status(line: str, logged: bool = True) -> None:
    """Shows what goes on: in place of the line before on a terminal; elsewhere as a line.

    Args:
      line: what to show; "" wipes the line.
      logged: whether to print it where stderr is no terminal but, say, a log file.
    """
    if sys.stderr.isatty():
        print(f"{CLEAR}{line}", end="", file=sys.stderr, flush=True)
    elif line and logged:
        print(line, file=sys.stderr)


def exit_with(line: str, status: int = 1) -> NoReturn:
    """Prints one line on stderr, in place of a status line if one is alive there, and exits."""
    start = CLEAR if sys.stderr.isatty() else ""
    print(f"{start}{sys.argv[0].rsplit('/', 1)[-1]}: {line}", file=sys.stderr)
    raise SystemExit(status)


def end_quietly() -> None:
    """Lets Ctrl-C, and a reader that has seen enough, end a command without a traceback."""
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
