"""What a terminal shows of what a program writes to it."""

import os
import subprocess
import termios
import threading

from rich.cells import cell_len


def lines(text, columns):
    """The lines that a terminal of so many columns holds after `text`, the last empty ones cut.

    Knows printable characters, line feed, carriage return, and ESC [ K: erase to the line's end.
    """
    screen, row, column = [[]], 0, 0
    while text:
        if text.startswith("\x1b[K"):
            del screen[row][column:]
            text = text[3:]
            continue
        character, text = text[0], text[1:]
        if character == "\r":
            column = 0
        elif character == "\n":
            row, column = row + 1, 0
        else:
            assert character.isprintable(), repr(character)
            if not cell_len(character):
                screen[row][column - 1] += character
                continue
            if column + cell_len(character) > columns:
                row, column = row + 1, 0
            if row == len(screen):
                screen.append([])
            screen[row][column:] = [character, *[""] * (cell_len(character) - 1)]
            column += cell_len(character)
        if row == len(screen):
            screen.append([])
    return "\n".join("".join(cells).rstrip() for cells in screen).rstrip("\n").split("\n")


def run(words, columns=80, **kwargs):
    """Runs a command on a terminal of so many columns; returns its exit status and the screen."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    written = []

    def read():
        try:
            while block := os.read(ours, 65536):
                written.append(block)
        except OSError:  # the other end is closed
            pass

    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, **kwargs)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    status = process.wait(300)
    reader.join(10)
    os.close(ours)
    return status, lines(b"".join(written).decode(), columns)
