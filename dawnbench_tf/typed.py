"""Type checks of values from JSON and TOML files, which anybody may have written."""

import math
import tomllib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from dawnbench_tf.refusals import Refusal, one_line, refusing, suggestion

DEEPEST = 12  # lists and objects within each other
LONGEST = 10_000  # characters of a text
MOST = 1_000_000  # members of a list or an object
SUFFIX = ".toml"
LARGEST = 2**15  # bytes, at most: tomllib takes 4 seconds for a dotted key of this length

Keys = Mapping[str, tuple[Any, str]]  # key of a TOML file -> its type, and words for it in errors
Scalar = str | int | float | bool | None
Settings = dict[str, Scalar | list[Scalar]]  # of a study's levels
_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    types.NoneType: "nothing",
}


def fault(value: object, kind: type) -> str:
    """Returns why a value is no text, number, bool or None; "" if it is one. No bool is a number.

    >>> fault(True, int), fault(float("nan"), float), fault(3, float)
    ('should be a whole number', 'should be a finite number', '')
    """
    accepted = (int, float) if kind is float else kind
    if kind not in _NAMES or not isinstance(value, accepted):
        return f"should be {_NAMES.get(kind, 'plain')}"
    if isinstance(value, bool) and kind is not bool:
        return f"should be {_NAMES[kind]}"
    if isinstance(value, str) and len(value) > LONGEST:
        return f"is longer than {LONGEST:,} characters"
    if isinstance(value, float) and not math.isfinite(value):
        return "should be a finite number"
    return "should be less than 2^63" if isinstance(value, int) and abs(value) >= 2**63 else ""


def check(value: object, kind: Any, name: str = "it", depth: int = DEEPEST) -> None:
    """Checks that a value, as `json` or `tomllib` gives it, is of a type. Raises ValueError.

    Types: str, int, float, bool, None, Any; lists, tuples of fixed length, dicts and unions of
    these; NamedTuples of these, whose values are objects. A float may be a whole number; numbers
    are finite and less than 2^63. The message names the part.
    """
    if kind is Any:
        kind = {dict: dict[str, Any], list: list[Any]}.get(type(value), type(value))  # type: ignore[call-overload]
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for number, one in enumerate(kinds, 1):
            try:
                return check(value, one, name, depth)
            except ValueError:
                if number == len(kinds):
                    raise
    if hasattr(kind, "_fields"):
        return check_fields(value, kind, name)
    if origin not in (dict, list, tuple):
        if text := fault(value, kind):
            raise ValueError(f"{name} {text}")
        return None
    if not isinstance(value, dict if origin is dict else list):
        raise ValueError(f"{name} should be {'an object' if origin is dict else 'a list'}")
    if not depth or len(value) > MOST:  # type: ignore[arg-type]
        raise ValueError(f"{name} is nested too deep or too long")
    members: Any = value
    if isinstance(value, dict):
        for key in value:
            check(key, str, f"a name in {name}")
        members, kinds = value.values(), kinds[1:] * len(value)
    elif origin is list:  # a tuple has a type for each of its members
        kinds *= len(members)
    if len(kinds) != len(members):
        raise ValueError(f"{name} should have {len(kinds)} members")
    keys = value if isinstance(value, dict) else range(len(members))
    for key, member, one in zip(keys, members, kinds, strict=True):
        check(member, one, f"{name}.{key}"[:80], depth - 1)
    return None


def check_fields(values: object, cls: type | dict[str, Any], name: str = "it") -> None:
    """Checks an object against a class's annotated fields, or name -> type. Raises ValueError."""
    hints = cls if isinstance(cls, dict) else get_type_hints(cls)
    if not isinstance(values, dict):
        raise ValueError(f"{name} should be an object")
    for field in hints.keys() ^ values.keys():
        text = "is missing" if field in hints else "is no field of it"
        raise ValueError(f"{name}: {field[:60]!r} {text}")
    for field, value in values.items():
        check(value, hints[field], field)


def read_toml(path: Path, keys: Keys) -> dict[str, Any]:
    """Reads a TOML file, of at most 32 KiB; `keys` has type and words of each key that it may have.

    Raises Refusal: the file can't be read, a key is unknown (the message suggests the nearest), or
    a value is of another type.
    """
    with refusing(path, "can't be read", OSError, ValueError, RecursionError):
        if path.exists() and not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LARGEST:
            raise ValueError(f"is larger than {LARGEST >> 10} KiB")
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        check(values, dict[str, Any], path.name)
    for key, value in values.items():
        if key not in keys:
            raise Refusal(f"{path}: {one_line(key, 60)}: {suggestion(key, keys)}")
        value_type, expected = keys[key]
        if not isinstance(value, value_type) or (value_type is int and isinstance(value, bool)):
            raise Refusal(f"{path}: {key}={one_line(value, 60)}: should be {expected}")
    return values
