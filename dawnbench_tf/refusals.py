"""The error for bad input: one line with the flag or file, its value, and what is expected."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NoReturn

__all__ = ["Refusal"]


class Refusal(ValueError):
    """Bad input or an unfit environment. The message is one line for the user.

    It is a ValueError: a program can catch it, a command prints it and exits with status 1. A
    notebook shows the line alone, with the names of arguments in place of flags.
    """

    def _render_traceback_(self) -> list[str]:  # of IPython
        text, *command = re.split(r"(?=dawnbench [a-z]+ )", str(self), maxsplit=1)
        text = re.sub(r"(?<![-\w])--(\w+)=", r"\1=", text)
        text = re.sub(r"(?<![-\w])--(\w+)", r"`\1`", text)
        return ["Refusal: " + "".join([text, *command])]


def refuse(name: str, value: object, expected: str) -> NoReturn:
    """Raises a Refusal of one setting, in the form of its flag: `--name=value: expected`."""
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    elif isinstance(value, bool):
        value = str(value).lower()
    text = one_line(value)
    raise Refusal(f"--{name}{'=' * bool(text)}{text}: {expected}")


@contextmanager
def refusing(where: object, fault: str, *kinds: type[Exception], hint: str = "") -> Iterator[None]:
    """Raises Refusal for errors of `kinds` in the body: "where: fault (reason); hint"."""
    # Without a fault it is "where: reason".
    try:
        yield
    except Refusal:
        raise
    except kinds as error:
        own = str(getattr(error, "filename", None) or where) == str(where)
        text = (
            (own and getattr(error, "strerror", None)) or getattr(error, "message", None) or error
        )
        # `message` is TensorFlow's: "{{node ...}} what is wrong [Op:...] name:".
        reason = one_line(re.sub(r"\{\{.*?\}\} | \[Op:.*", "", str(text)))
        text = f"{fault} ({reason})" if fault else reason
        raise Refusal(f"{where}: {text}{'; ' * bool(hint)}{hint}") from None


def suggestion(
    name: str, names: Iterable[str], otherwise: str | None = None, cutoff: float = 0.6
) -> str:
    """Returns "did you mean NAME?" for the nearest of the names in any case."""
    # Without a near one it returns `otherwise`, or by default a list of all names.
    originals = {one.lower(): one for one in names}
    near = get_close_matches(name.lower(), originals, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {originals[near[0]]}?"
    return f"should be one of {', '.join(originals.values())}" if otherwise is None else otherwise


def shown(value: object, kept: str = "") -> str:
    """Returns text of unknown origin without characters that a terminal or a log would act on.

    Args:
      value: whose text is meant.
      kept: such characters that stay nevertheless: "\\n\\t" keeps lines and tabs.
    """
    replaced = "\N{REPLACEMENT CHARACTER}"
    return "".join(c if c.isprintable() or c in kept else replaced for c in str(value))


def defused(cell: object) -> object:
    """Returns a CSV cell that no terminal acts on and no spreadsheet runs as a formula.

    >>> defused("=1+1"), defused(-1), defused("a\\nb")
    ("'=1+1", -1, 'a\\\\nb')
    """
    if not isinstance(cell, str):
        return cell
    cell = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cell)
    first = unicodedata.normalize("NFKC", cell.lstrip()[:1])  # full-width forms count too
    return f"'{cell}" if first in ("=", "+", "-", "@", "|", "%") else cell


def one_line(error: object, most: int = 200) -> str:
    """Returns the printable text of an error or a value: one line of at most `most` characters."""
    line = shown(" ".join(str(error)[: 20 * most].split()))
    return line if len(line) <= most else f"{line[: most - 3]}..."
