"""Files that appear whole or not at all."""

import os
from pathlib import Path
from typing import Any

from dawnbench_tf.refusals import Refusal, one_line


def write_whole(path: Path, text: str, durable: bool = True) -> None:
    """Writes a text file under a temporary name, then renames it. Raises Refusal if it can't.

    What is not `durable` may be lost with the machine's power: thousands of files that a command
    makes anew take seconds instead of minutes.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from None


def save_figure(figure: Any, path: Path) -> None:
    """Writes a `matplotlib.figure.Figure`; the suffix decides the format. Raises Refusal."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise cannot_write(path, error) from None


def make_folder(path: Path) -> None:
    """Makes a folder and those above it. Raises Refusal if that can't be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: Exception) -> Refusal:
    """The Refusal of an output that can't be written: nothing so far is lost by it."""
    reason = getattr(error, "strerror", None) or str(error).split(";")[-1]  # TensorFlow: PATH; why
    why = one_line(reason, 100)
    return Refusal(f"{path}: can't be written ({why}); mend that, then the same command goes on")
