"""The error for bad input: one line that names the flag or file, the value, and what is right."""

from typing import NoReturn

__all__ = ["Refusal"]


class Refusal(ValueError):
    """Input or an environment that a command refuses. The message is the one line to print."""


def refuse(name: str, value: object, right: str) -> NoReturn:
    """Raises the Refusal of one setting, in the form that names its flag: `--name=value: right`."""
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    elif isinstance(value, bool):
        value = str(value).lower()
    raise Refusal(f"--{name}={one_line(value)}: {right}")


def shown(value: object, kept: str = "") -> str:
    """A stranger's text without characters that a terminal or a log would act on.

    Args:
      value: whose text is meant.
      kept: such characters that stay nevertheless: "\\n\\t" keeps lines and tabs.
    """
    replaced = "\N{REPLACEMENT CHARACTER}"
    return "".join(c if c.isprintable() or c in kept else replaced for c in str(value))


def defused(cell: object) -> object:
    """A cell of a CSV file: text shown, and not one that a spreadsheet would run as a formula.

    >>> defused("=1+1"), defused(-1)
    ("'=1+1", -1)
    """
    if not isinstance(cell, str):
        return cell
    cell = shown(cell)
    return f"'{cell}" if cell.lstrip()[:1] in ("=", "+", "-", "@", "|", "%") else cell


def one_line(error: object, most: int = 200) -> str:
    """What an error or a value says, on one line of `most` characters at most."""
    line = " ".join(str(error)[: 20 * most].split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
