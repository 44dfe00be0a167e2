"""Dataclass fields that carry their own help, bounds and choices.

Plain Python: `flags.py` turns such fields into flags, `check` holds any instance to them.
"""

import math
import types
from dataclasses import field, fields
from typing import Any, get_args, get_origin

from dawnbench_tf.refusals import one_line, refuse

_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with its help (units included), bounds and choices.

    Bounds `low` and `high` are inclusive, `above` is not.
    """
    bounds = {"low": low, "high": high, "above": above}
    return field(default=default, metadata={"help": help, "choices": choices, **bounds})


def setting_fields(cls: Any) -> list[Any]:
    """The fields of a dataclass, or of an instance, that are settings."""
    return [item for item in fields(cls) if "help" in item.metadata]


def check(instance: Any) -> None:
    """Raises Refusal for the first field that is not of its type, its bounds or its choices."""
    for item in fields(instance):
        if "help" in item.metadata or item.type is str:
            value = getattr(instance, item.name)
            _check_type(item, value)
            _check_bounds(item, value)


def _check_type(item, value):
    kinds = [item.type]
    if isinstance(item.type, types.UnionType):
        kinds = [kind for kind in get_args(item.type) if kind is not types.NoneType]
        if value is None:
            return
    kind, values = kinds[0], (value,)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
        if not isinstance(value, tuple):
            refuse(item.name, repr(value), f"should be a list of {kind.__name__}s")
        values = value
    accepted = (int, float) if kind is float else kind
    for one in values:
        if not isinstance(one, accepted) or (isinstance(one, bool) and kind is not bool):
            refuse(item.name, one_line(repr(one), 60), f"should be {_NAMES[kind]}")
        if kind is float and not _is_finite(one):
            refuse(item.name, one_line(repr(one), 60), "should be a finite number")


def _is_finite(number):
    return math.isfinite(number) if isinstance(number, float) else abs(number) < 2**63


def _check_bounds(item, value):
    low, high, above, choices = (
        item.metadata.get(key) for key in ("low", "high", "above", "choices")
    )
    if choices and value is not None and value not in choices:
        refuse(item.name, value, f"should be one of {', '.join(choices)}")
    for number in value if isinstance(value, tuple) else (value,):
        if number is None:
            continue
        if low is not None and not number >= low:  # NaN fails both
            refuse(item.name, number, f"should be at least {low:g}")
        if above is not None and not number > above:
            refuse(item.name, number, f"should be over {above:g}")
        if high is not None and not number <= high:
            refuse(item.name, number, f"should be at most {high:g}")
