"""Settings: dataclass fields with help text, bounds and choices.

Plain Python: `flags.py` turns such fields into flags, `check` holds any instance to them. A setting
has a flat name, which is its flag's: its field's name unless it states another.
"""

import inspect
import textwrap
import types
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, TypeVar, get_args, get_origin

from dawnbench_tf import typed
from dawnbench_tf.refusals import one_line, refuse, suggestion

T = TypeVar("T")


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


def documented(cls: type[T]) -> type[T]:
    """A decorator that adds the help text of each setting to a dataclass's docstring."""
    lines = []
    for item in setting_fields(cls):
        text = f"{item.name}: {help_text(item)}"
        lines.append(textwrap.fill(text, 96, initial_indent="  ", subsequent_indent="    "))
    doc = inspect.cleandoc(cls.__doc__ or "")
    cls.__doc__ = "\n".join([doc, "", "Settings:", *lines, ""])
    return cls


def help_text(item: Any) -> str:
    """Returns the help text of a setting, with its choices."""
    help, choices = item.metadata["help"], item.metadata["choices"]
    return f"{help} [{', '.join(filter(None, choices))}]" if choices else help


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
            kind, values = get_args(kind)[0], value
            if not isinstance(value, tuple):
                refuse(name, repr(value), f"should be a list of {kind.__name__}s")
        for one in values:
            if text := typed.fault(one, kind):
                refuse(name, one_line(repr(one), 60), text)
            if (low := bounds.get("low")) is not None and one < low:
                refuse(name, one, f"should be at least {low:g}")
            if (above := bounds.get("above")) is not None and one <= above:
                refuse(name, one, f"should be over {above:g}")
            if (high := bounds.get("high")) is not None and one > high:
                refuse(name, one, f"should be at most {high:g}")
            if (choices := bounds.get("choices")) and one not in choices:
                hint = suggestion(one, choices, "")
                refuse(name, one, f"should be one of {', '.join(choices)}{'; ' * bool(hint)}{hint}")


class Checked:
    """A dataclass whose settings are of their types and within their bounds."""

    def __post_init__(self) -> None:
        check(self)


def refuse_group(instance: Any, group: str, expected: str) -> None:
    """Raises Refusal, which ends in `expected`, for a group's setting that is not its default."""
    for item in setting_fields(instance):
        value = getattr(instance, item.name)
        if item.metadata["group"] == group and value != item.default:
            refuse(flag_name(item), value, expected)
