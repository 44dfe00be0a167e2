"""The error for bad input: one line that names the flag or file, the value, and what is right."""

from typing import NoReturn


class Refusal(ValueError):
    """Input or an environment that a command refuses. The message is the one line to print."""


def refuse(name: str, value: object, right: str) -> NoReturn:
    """Raises the Refusal of one setting, in the form that names its flag: `--name=value: right`."""
    raise Refusal(f"--{name}={value}: {right}")


def one_line(error: Exception | str, most: int = 200) -> str:
    """What an error says, on one line of `most` characters at most."""
    return " ".join(str(error).split())[:most]
