"""Settings: dataclass fields with help text, bounds and choices.

Plain Python: `flags.py` turns such fields into flags, `check` holds any instance to them. A setting
has a flat name, which is its flag's: its field's name unless it states another.
"""

import math
import types
from collections.abc import Mapping
from dataclasses import Field, field, fields, is_dataclass, replace
from typing import Any, TypeVar, get_args, get_origin

from dawnbench_tf.refusals import one_line, refuse

T = TypeVar("T")
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def setting(  # noqa: PLR0913, all but two by keyword: each a property of a flag
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    flag: str = "",
    group: str = "",
) -> Any:
    """Returns a dataclass field with its help text (with units), bounds and choices.

    Bounds `low` and `high` are inclusive, `above` is not. `flag` is its flat name, by default its
    field's; `group` is the heading of its flag in --help, by default its class's GROUP.
    """
    bounds = {"low": low, "high": high, "above": above}
    metadata = {"help": help, "choices": choices, "flag": flag, "group": group, **bounds}
    return field(default=default, metadata=metadata)


def flag_name(item: Any) -> str:
    """Returns the flat name of a setting."""
    return item.metadata.get("flag") or item.name


def setting_fields(cls: Any) -> list[Any]:
    """Returns the fields of a dataclass, or of an instance, that are settings."""
    return [item for item in fields(cls) if "help" in item.metadata]


def all_settings(cls: Any) -> dict[str, tuple[Any, Any]]:
    """Returns (class, field) of each setting of a dataclass and of its parts, by flat name.

    A field whose class varies lists the classes as `parts` in its metadata.
    """
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
    own = {item.name: flag_name(item) for item in setting_fields(instance)}
    changes = {name: values[flag] for name, flag in own.items() if flag in values}
    return replace(instance, **changes, **others)  # type: ignore[type-var]


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
        if "help" in item.metadata or item.type is str:
            value = getattr(instance, item.name)
            _check_type(item, value)
            _check_bounds(item, value)


def refuse_group(instance: Any, group: str, expected: str) -> None:
    """Raises Refusal for the first setting of a group that differs from its default.

    Args:
      instance: a dataclass with settings.
      group: heading of the settings.
      expected: end of the message: what the settings require.
    """
    for item in setting_fields(instance):
        value = getattr(instance, item.name)
        if item.metadata["group"] == group and value != item.default:
            refuse(flag_name(item), value, expected)


def _check_type(item: Field[Any], value: Any) -> None:
    kinds: list[Any] = [item.type]
    if isinstance(item.type, types.UnionType):
        kinds = [kind for kind in get_args(item.type) if kind is not types.NoneType]
        if value is None:
            return
    kind, values = kinds[0], (value,)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
        if not isinstance(value, tuple):
            refuse(flag_name(item), repr(value), f"should be a list of {kind.__name__}s")
        values = value
    accepted = (int, float) if kind is float else kind
    for one in values:
        if not isinstance(one, accepted) or (isinstance(one, bool) and kind is not bool):
            refuse(flag_name(item), one_line(repr(one), 60), f"should be {_NAMES[kind]}")
        if kind is float and not _is_finite(one):
            refuse(flag_name(item), one_line(repr(one), 60), "should be a finite number")


def _is_finite(number: float) -> bool:
    return math.isfinite(number) if isinstance(number, float) else abs(number) < 2**63


def _check_bounds(item: Field[Any], value: Any) -> None:
    low, high, above, choices = (
        item.metadata.get(key) for key in ("low", "high", "above", "choices")
    )
    if choices and value is not None and value not in choices:
        refuse(flag_name(item), value, f"should be one of {', '.join(choices)}")
    for number in value if isinstance(value, tuple) else (value,):
        if number is None:
            continue
        if low is not None and not number >= low:  # NaN fails both
            refuse(flag_name(item), number, f"should be at least {low:g}")
        if above is not None and not number > above:
            refuse(flag_name(item), number, f"should be over {above:g}")
        if high is not None and not number <= high:
            refuse(flag_name(item), number, f"should be at most {high:g}")
