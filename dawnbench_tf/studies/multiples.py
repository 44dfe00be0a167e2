"""Names and values of a study's settings; multiples such as "4 * batch_size"."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from dawnbench_tf import typed
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.settings import all_settings, setting_fields

_MULTIPLE = re.compile(r"(\d{1,9}|\d{0,9}\.\d{1,9}) \* (\w+)")
RECIPE_SETTINGS = set(all_settings(Recipe))
CREDITS_SETTINGS = {item.name for item in setting_fields(Credits)}
RUN_SETTINGS = {item.name for item in setting_fields(RunOptions)} - {"output_dir", "max_steps"}
_ALL = RECIPE_SETTINGS | CREDITS_SETTINGS | RUN_SETTINGS
_SETTINGS = all_settings(Recipe) | all_settings(RunOptions)
_TEXTS = {name for name, (_, item) in _SETTINGS.items() if item.type is str}


def is_multiple(value: object) -> bool:
    """Whether a setting is a multiple of a number of the recipe, as "4 * batch_size"."""
    return isinstance(value, str) and bool(_MULTIPLE.fullmatch(value))


def reference_values(
    get: Callable[..., Recipe], name: str, common: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the values that multiples refer to: the study's recipe and its price per hour."""
    common = {key: _as_tuple(value) for key, value in common.items() if not is_multiple(value)}
    recipe = get(name, **{k: v for k, v in common.items() if k in RECIPE_SETTINGS})
    return {**recipe.values(), "cost_per_hour": common.get("cost_per_hour")}


def _as_tuple(value: Any) -> Any:
    """Returns a list, as JSON and TOML have it, as the tuple that a setting is."""
    return tuple(value) if isinstance(value, list) else value


def resolve(key: str, value: Any, base: Mapping[str, Any]) -> Any:
    """Returns the value of a setting, with a multiple computed.

    Args:
      key: name of the setting.
      value: its value, or a multiple.
      base: values that multiples refer to.

    Returns:
      The value; None for a multiple of cost_per_hour if no price is given.

    Raises:
      Refusal: the field is unknown, the value is not a JSON value, or the multiple is invalid.
    """
    if key == "max_steps":
        refuse(key, value, "times steps and trains no run; leave it out")
    if key not in _ALL:
        near = get_close_matches(key, _ALL, n=1)
        hint = f"did you mean {near[0]}?" if near else "`dawnbench train --helpfull` lists all"
        raise Refusal(
            f"{one_line(key, 60)}={one_line(value)}: no field of a recipe or a run; {hint}"
        )
    values = value if isinstance(value, list | tuple) else [value]
    try:
        typed.check(list(values), list[typed.Scalar], key)
    except ValueError as error:
        raise Refusal(f"{error}; it is {one_line(value, 40)}") from None
    if not all(text.isprintable() for text in values if isinstance(text, str)):
        refuse(key, ascii(value)[:80], "should be printable")
    match = _MULTIPLE.fullmatch(value) if isinstance(value, str) and key not in _TEXTS else None
    if not match:
        return _as_tuple(value)
    return _multiplied(key, value, match, base)


def _multiplied(key: str, text: str, match: re.Match[str], base: Mapping[str, Any]) -> float | None:
    if match[2] not in base:
        near = get_close_matches(match[2], base, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        refuse(key, text, f"{one_line(match[2], 60)} is no number of the recipe{hint}")
    own = base[match[2]]
    if own is None and match[2] == "cost_per_hour":  # no price is given
        return None
    if isinstance(own, bool) or not isinstance(own, int | float):
        refuse(key, text, f"{match[2]} is no number of the recipe")
    number = float(match[1]) * own
    if isinstance(own, int):  # a multiple of an integer field stays an integer
        number = round(number)
    if number <= 0 or number >= 2**63:
        refuse(key, text, f"comes to {number:g}; should be over 0")
    return number
