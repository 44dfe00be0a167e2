"""Type checks of values from JSON and TOML files, which anybody may have written."""

import math
import tomllib
import types
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, one_line

DEEPEST = 12  # lists and objects within each other
LONGEST = 10_000  # characters of a text
MOST = 1_000_000  # members of a list or an object
SUFFIX = ".toml"
LARGEST = 2**15  # bytes, at most: tomllib takes 4 seconds for a dotted key of this length

Keys = Mapping[str, tuple[Any, str]]  # key -> its type, and words for it in errors

Scalar = str | int | float | bool | None
Settings = dict[str, Scalar | list[Scalar]]  # of a study's levels


def check(value: object, kind: Any, name: str = "it", depth: int = DEEPEST) -> None:
    """Checks that a value is of a type.

    Args:
      value: as `json` or `tomllib` gives it.
      kind: str, int, float, bool, None, Any, and lists, tuples of fixed length, dicts and unions
        of these, and NamedTuple classes of these, whose values are objects; a float may be a whole
        number. Numbers are finite and less than 2^63.
      name: what messages call the value.
      depth: how many lists and objects there may be within each other.

    Raises:
      ValueError: it is of another type, too long or nested too deep; the message names the part.
    """
    if kind is Any:
        members: dict[type, Any] = {dict: dict[str, Any], list: list[Any]}
        kind = members.get(type(value), type(value))
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        _check_union(value, get_args(kind), name, depth)
    elif origin is dict:
        _check_dict(value, get_args(kind)[1], name, depth)
    elif origin in (list, tuple):
        _check_list(value, kind, name, depth)
    elif hasattr(kind, "_fields"):
        check_fields(value, kind, name)
    else:
        _check_scalar(value, kind, name)


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


def _check_union(value: object, kinds: tuple[Any, ...], name: str, depth: int) -> None:
    for kind in kinds:
        try:
            return check(value, kind, name, depth)
        except ValueError as error:
            refusal = error
    raise refusal


def _check_size(value: object, kind: Any, name: str, depth: int) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} should be {'an object' if kind is dict else 'a list'}")
    if not depth or len(value) > MOST:
        raise ValueError(f"{name} is nested too deep or too long")


def _check_dict(value: Any, kind: Any, name: str, depth: int) -> None:
    _check_size(value, dict, name, depth)
    for key, member in value.items():
        _check_scalar(key, str, f"a name in {name}")
        check(member, kind, f"{name}.{key}"[:80], depth - 1)


def _check_list(value: Any, kind: Any, name: str, depth: int) -> None:
    """A tuple has a type for each of its members; a list has one for all."""
    _check_size(value, list, name, depth)
    kinds = get_args(kind) if get_origin(kind) is tuple else get_args(kind) * len(value)
    if len(kinds) != len(value):
        raise ValueError(f"{name} should have {len(kinds)} members")
    for number, (member, member_kind) in enumerate(zip(value, kinds, strict=True)):
        check(member, member_kind, f"{name}.{number}"[:80], depth - 1)


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _check_scalar(value: object, kind: Any, name: str) -> None:
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


def read_toml(path: Path, keys: Keys) -> dict[str, Any]:
    """Reads a TOML file and checks its top-level keys.

    Args:
      path: path of the file, of at most 32 KiB.
      keys: type of each key that the file may have, and words for that type.

    Returns:
      The values of the keys that the file has. Numbers are finite, nesting is limited as in
      `check`.

    Raises:
      Refusal: the file can't be read, a key is unknown (the message suggests the nearest), or a
        value is of another type.
    """
    values = _parse_toml(path)
    for key, value in values.items():
        if key not in keys:
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"should be one of {', '.join(keys)}"
            raise Refusal(f"{path}: {one_line(key, 60)}: {hint}")
        value_type, expected = keys[key]
        if not isinstance(value, value_type) or (value_type is int and isinstance(value, bool)):
            raise Refusal(f"{path}: {key}={one_line(value, 60)}: should be {expected}")
    return values


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LARGEST:
            raise ValueError(f"is larger than {LARGEST >> 10} KiB")
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        check(values, dict[str, Any], path.name)
        return values
    except (OSError, ValueError, RecursionError) as error:
        raise files.cannot_read(path, error) from None
