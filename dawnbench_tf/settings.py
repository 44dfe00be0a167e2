"""Dataclass fields that carry their own help, bounds and choices.

Plain Python: `flags.py` turns such fields into flags, `check` holds any instance to them.
"""

from dataclasses import field, fields
from typing import Any

from dawnbench_tf.refusals import refuse


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with its help (units included), inclusive bounds and choices."""
    return field(
        default=default, metadata={"help": help, "low": low, "high": high, "choices": choices}
    )


def check(instance: Any) -> None:
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
