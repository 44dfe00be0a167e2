"""Dataclass fields that carry their own help, bounds and choices, and the error for bad input.

Plain Python: `options.py` turns such fields into flags, `check` holds any instance to them.
"""

from dataclasses import field, fields


class Refusal(ValueError):
    """Input or an environment that a command refuses. The message is the one line to print."""


def setting(default, help, *, low=None, high=None, choices=None):
    """A dataclass field with its help (units included), inclusive bounds and choices."""
    return field(
        default=default, metadata={"help": help, "low": low, "high": high, "choices": choices}
    )


def check(instance) -> None:
    """Raises Refusal for the first field that is outside its bounds or choices."""
    for item in fields(instance):
        value = getattr(instance, item.name)
        low, high, choices = (item.metadata.get(key) for key in ("low", "high", "choices"))
        if choices and value not in choices:
            refuse(item.name, value, f"should be one of {', '.join(choices)}")
        for number in value if isinstance(value, tuple) else (value,):
            if low is not None and number is not None and not number >= low:  # NaN fails both
                refuse(item.name, number, f"should be at least {low:g}")
            if high is not None and number is not None and not number <= high:
                refuse(item.name, number, f"should be at most {high:g}")


def refuse(name: str, value, right: str):
    """Raises the Refusal of one setting, in the form that names its flag."""
    raise Refusal(f"--{name}={value}: {right}")


def one_line(error: Exception | str, most: int = 200) -> str:
    """What an error says, on one line of `most` characters at most."""
    return " ".join(str(error).split())[:most]
