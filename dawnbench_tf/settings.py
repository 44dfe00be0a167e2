"""Settings: dataclass fields with help text, bounds and choices; types of values from files.

Plain Python: `flags.py` turns such fields into flags, `check` holds any instance to them. A setting
has a flat name, which is its flag's: its field's name unless it states another. `check_type` holds
values of JSON and TOML files, which anybody may have written, to a type.
"""

import inspect
import math
import textwrap
import tomllib
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing, suggestion

T = TypeVar("T")

DEEPEST = 12  # lists and objects within each other
LONGEST = 10_000  # characters of a text
MOST = 1_000_000  # members of a list or an object
LARGEST = 2**15  # bytes, at most: tomllib takes 4 seconds for a dotted key of this length

Scalar = str | int | float | bool | None
PlainSettings = dict[str, Scalar | list[Scalar]]  # of a study's levels
_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    types.NoneType: "nothing",
}


def setting(  # noqa: PLR0913, all but two by keyword: each a property of a flag
    default: Any,
    help: str,
    *,
    low: float = 0,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    flag: str = "",
    group: str = "",
    needs: str = "",
) -> Any:
    """Returns a dataclass field with its help text (with units), bounds and choices."""
    # Bounds `low`, of numbers, and `high` are inclusive, `above` is not. `flag` is its flat name,
    # by default its field's; `group` is its heading in --help, by default its class's GROUP.
    # `needs`: the setting of its class whose default leaves this one without effect, by flat name;
    # or NAME=VALUE,VALUE, the values that do not.
    bounds = {"low": low, "high": high, "above": above, "needs": needs}
    metadata = {"help": help, "choices": choices, "flag": flag, "group": group, **bounds}
    return field(default=default, metadata=metadata)


def documented(cls: type[T]) -> type[T]:
    """A decorator that adds the help text of each setting to a dataclass's docstring."""
    lines = []
    for item in setting_fields(cls):
        text = f"{item.name}: {help_text(item)}"
        lines.append(textwrap.fill(text, 96, initial_indent="  ", subsequent_indent="    "))
    cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", "Settings:", *lines, ""])
    return cls


def help_text(item: Any) -> str:
    """Returns the help text of a setting, with what it needs and its choices."""
    help, choices, needs = (item.metadata[name] for name in ("help", "choices", "needs"))
    help += f"; needs --{needs}" * bool(needs)
    return f"{help} [{', '.join(filter(None, choices))}]" if choices else help


def flag_name(item: Any) -> str:
    """Returns the flat name of a setting."""
    return item.metadata.get("flag") or item.name


def setting_fields(cls: Any) -> list[Any]:
    """Returns the fields of a dataclass, or of an instance, that are settings."""
    return [item for item in fields(cls) if "help" in item.metadata]


def all_settings(cls: Any) -> dict[str, tuple[Any, Any]]:
    """Returns (class, field) of each setting of a dataclass and of its parts, by flat name."""
    # A field whose class varies lists the classes as `parts` in its metadata.
    settings = {flag_name(item): (cls, item) for item in setting_fields(cls)}
    kinds = [kind for item in fields(cls) for kind in item.metadata.get("parts", (item.type,))]
    for kind in filter(is_dataclass, kinds):
        settings |= all_settings(kind)
    return settings


def parts(instance: Any) -> dict[str, Any]:
    """Returns the fields of an instance that are dataclasses with settings, by name."""
    values = {item.name: getattr(instance, item.name) for item in fields(instance)}
    return {n: part for n, part in values.items() if is_dataclass(part) and setting_fields(part)}


def flat(instance: Any) -> dict[str, Any]:
    """Returns the values of an instance's settings, without those of its parts, by flat name."""
    return {flag_name(item): getattr(instance, item.name) for item in setting_fields(instance)}


def replaced(instance: T, values: Mapping[str, Any], **others: Any) -> T:
    """Returns an instance with new values: `values` by flat name, `others` by field name."""
    # Settings that have no effect any more, as cutout's color without cutout, get their defaults.
    items, own = setting_fields(instance), flat(instance)
    changes = {item.name: values[flag_name(item)] for item in items if flag_name(item) in values}
    after = own | {name: value for name, value in values.items() if name in own}
    for item in items:
        if flag_name(item) not in values and _lack(item, instance, after):
            changes[item.name] = after[flag_name(item)] = item.default
    return replace(instance, **changes, **others)  # type: ignore[type-var]


def _lack(item: Any, instance: Any, values: Mapping[str, Any]) -> str:
    """Returns what a setting that is not its default lacks to have an effect; "" if nothing."""
    name, _, wanted = item.metadata["needs"].partition("=")
    if not name or values[flag_name(item)] == item.default:
        return ""
    if wanted:
        chosen = wanted.split(",")
        return "" if values[name] in chosen else f"is for --{name}={', '.join(chosen)}"
    default = next(each.default for each in setting_fields(instance) if flag_name(each) == name)
    other = f" other than {default}" if isinstance(default, str) and default else ""
    return f"requires --{name}{other}" if values[name] == default else ""


def flag_text(name: str, value: Any) -> str:
    """Returns the flag that gives a setting its value: `--name=value`."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return f"--{name}={value}"


def check(instance: Any) -> None:
    """Raises Refusal for the first setting of a wrong type, out of bounds, or not a choice."""
    for item in fields(instance):
        if "help" not in item.metadata and item.type is not str:
            continue
        kind: Any = item.type
        name, value, bounds = flag_name(item), getattr(instance, item.name), item.metadata
        if isinstance(kind, types.UnionType):
            if value is None:
                continue
            kind = next(one for one in get_args(kind) if one is not types.NoneType)
        values: Any = (value,)
        if get_origin(kind) is tuple:
            if isinstance(value, list):  # of JSON, TOML or a user; as a tuple it is hashed
                value = tuple(value)
                object.__setattr__(instance, item.name, value)
            kind, values = get_args(kind)[0], value
            if not isinstance(value, tuple):
                refuse(name, repr(value), f"should be a list of {kind.__name__}s")
        for one in values:
            if text := fault(one, kind):
                refuse(name, one_line(repr(one), 60), text)
            if (above := bounds.get("above")) is not None and one <= above:
                refuse(name, one, f"should be over {above:.10g}")
            if (low := bounds.get("low")) is not None and not isinstance(one, str) and one < low:
                refuse(name, one, f"should be at least {low:.10g}")
            if (high := bounds.get("high")) is not None and one > high:
                refuse(name, one, f"should be at most {high:.10g}")
            if (choices := bounds.get("choices")) and one not in choices:
                hint = suggestion(one, choices, "")
                refuse(name, one, f"should be one of {', '.join(choices)}{'; ' * bool(hint)}{hint}")
        if bounds.get("needs") and (text := _lack(item, instance, flat(instance))):
            refuse(name, value, text)


class Checked:
    """A dataclass whose settings are of their types and within their bounds."""

    def __post_init__(self) -> None:
        check(self)


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


def check_type(value: object, kind: Any, name: str = "it", depth: int = DEEPEST) -> None:
    """Checks that a value, as `json` or `tomllib` gives it, is of a type. Raises ValueError."""
    # Types: str, int, float, bool, None, Any; lists, tuples of fixed length, dicts and unions of
    # these; NamedTuples of these, whose values are objects. A float may be a whole number; numbers
    # are finite and less than 2^63. The message names the part.
    if kind is Any:
        kind = {dict: dict[str, Any], list: list[Any]}.get(type(value), type(value))  # type: ignore[call-overload]
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for one in kinds[1:]:
            with suppress(ValueError):
                return check_type(value, one, name, depth)
        kind, kinds = kinds[0], get_args(kinds[0])  # whose fault is named
        origin = get_origin(kind)
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
            check_type(key, str, f"a name in {name}")
        members, kinds = value.values(), kinds[1:] * len(value)
    elif origin is list:  # a tuple has a type for each of its members
        kinds *= len(members)
    if len(kinds) != len(members):
        raise ValueError(f"{name} should have {len(kinds)} members")
    keys = value if isinstance(value, dict) else range(len(members))
    for key, member, one in zip(keys, members, kinds, strict=True):
        check_type(member, one, f"{name}.{key}"[:80], depth - 1)
    return None


def check_fields(values: object, cls: type | dict[str, Any], name: str = "it") -> None:
    """Checks an object against a class's annotated fields, or name -> type. Raises ValueError."""
    hints = cls if isinstance(cls, dict) else get_type_hints(cls)
    if not isinstance(values, dict):
        raise ValueError(f"{name} should be an object")
    for key in hints.keys() ^ values.keys():
        text = "is missing" if key in hints else "is no field of it"
        raise ValueError(f"{name}: {key[:60]!r} {text}")
    for key, value in values.items():
        check_type(value, hints[key], key)


def read_toml(path: Path, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Reads a TOML file of at most 32 KiB; `keys` has the type of each key that it may have."""
    with refusing(path, "can't be read", OSError, ValueError, RecursionError):
        if path.exists() and not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LARGEST:
            raise ValueError(f"is larger than {LARGEST >> 10} KiB")
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        check_type(values, dict[str, Any], path.name)
    for key, value in values.items():
        if key not in keys:
            raise Refusal(f"{path}: {one_line(key, 60)}: {suggestion(key, keys)}")
        with refusing(path, f"{key}={one_line(value, 60)}", ValueError):
            check_type(value, keys[key], key)
    return values
