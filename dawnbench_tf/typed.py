"""Values out of JSON or TOML that anybody may have written, held to the types that code expects."""

import math
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

DEEPEST = 12  # lists and objects within each other
LONGEST = 10_000  # characters of a text
MOST = 1_000_000  # members of a list or an object

Scalar = str | int | float | bool | None
Settings = dict[str, Scalar | list[Scalar]]  # of a study's levels


def check(value: object, kind: Any, name: str = "it", depth: int = DEEPEST) -> None:
    """Holds a value to a type.

    Args:
      value: as `json` or `tomllib` gives it.
      kind: str, int, float, bool, None, Any, and lists, tuples, dicts and unions of these; a float
        may be a whole number. Numbers are finite and less than 2^63.
      name: what messages call the value.
      depth: how many lists and objects there may be within each other.

    Raises:
      ValueError: it is of another type, too long or nested too deep; the message names the part.
    """
    if get_origin(kind) in (Union, types.UnionType):
        _check_union(value, get_args(kind), name, depth)
    elif kind is Any or get_origin(kind) in (list, tuple, dict):
        _check_members(value, kind, name, depth)
    else:
        _check_scalar(value, kind, name)


def check_fields(values: object, cls: type, name: str = "it") -> None:
    """Holds an object to the fields of a class by their annotations. Raises ValueError."""
    hints = get_type_hints(cls)
    if not isinstance(values, dict):
        raise ValueError(f"{name} should be an object")
    for field in (*hints, *values):
        if field not in values or field not in hints:
            text = "is missing" if field in hints else "is no field of it"
            raise ValueError(f"{name}: {field[:60]!r} {text}")
        check(values[field], hints[field], field)


def _check_union(value, kinds, name, depth):
    for kind in kinds:
        try:
            return check(value, kind, name, depth)
        except ValueError as error:
            refusal = error
    raise refusal


def _check_members(value, kind, name, depth):
    if not isinstance(value, list | tuple | dict):
        if kind is Any:
            return _check_scalar(value, type(value), name)
        raise ValueError(
            f"{name} should be {'an object' if get_origin(kind) is dict else 'a list'}"
        )
    if kind is not Any and isinstance(value, dict) != (get_origin(kind) is dict):
        raise ValueError(f"{name} should be {'a list' if isinstance(value, dict) else 'an object'}")
    if not depth or len(value) > MOST:
        raise ValueError(f"{name} is nested too deep or too long")
    parts = [part for part in get_args(kind) if part is not Ellipsis]
    inner = parts[-1] if parts else Any
    if isinstance(value, dict):
        for key in value:
            _check_scalar(key, str, f"a name in {name}")
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        if len(parts) > 1 and isinstance(value, tuple | list) and len(parts) != len(value):
            raise ValueError(f"{name} should have {len(parts)} members")
        each = parts[key] if len(parts) > 1 and not isinstance(value, dict) else inner
        check(member, each, f"{name}.{key}"[:80], depth - 1)


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _check_scalar(value, kind, name):
    if kind in (None, types.NoneType):
        fits = value is None
    elif kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fits = type(value) is kind and kind in _NAMES
    if not fits:
        raise ValueError(
            f"{name} should be {_NAMES.get(kind, 'nothing' if kind is None else 'plain')}"
        )
    if isinstance(value, str) and len(value) > LONGEST:
        raise ValueError(f"{name} is longer than {LONGEST:,} characters")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} should be finite")
    if isinstance(value, int) and not abs(value) < 2**63:
        raise ValueError(f"{name} should be less than 2^63")
