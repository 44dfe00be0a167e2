"""Reads a user's study from a TOML file, for example:

question = "Does a projection in the shortcuts pay?"
recipe = "digits/resnet8"
trials = 5
thresholds = [95, 98]            # default: the recipe's threshold
figure = "curves"                # default: times

[settings]                       # of all runs: recipe fields and flags of `train`
epochs = 20

[factors]
batch_size = [32, 64, "4 * batch_size"]
[factors.shortcuts]              # named levels; a level may set several fields
padded = {model = "resnet8_v1_pad"}
projected = {model = "resnet8_v1_proj"}
"""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dawnbench_tf import files, typed
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.studies.grid import FIGURES, LARGEST, Factor, Level, Study

_TYPES: dict[str, tuple[Any, str]] = {
    "question": (str, "text"),
    "recipe": (str, "text, TASK/NAME"),
    "trials": (int, "a whole number"),
    "thresholds": (list, "a list of numbers"),
    "latency": (bool, "true or false"),
    "figure": (str, f"one of {', '.join(FIGURES)}"),
    "settings": (dict, "a table"),
    "factors": (dict, "a table"),
}
LARGEST_FILE = 2**15  # bytes, at most: tomllib takes 4 seconds for a dotted key of this length


def read(path: Path) -> Study:
    """Reads a study from a TOML file.

    Args:
      path: the file; its stem is the study's name.

    Raises:
      Refusal: the file can't be read or does not declare a study.
    """
    values = _parse(path)
    for key, value in values.items():
        if key not in _TYPES:
            near = get_close_matches(key, _TYPES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"should be one of {', '.join(_TYPES)}"
            raise Refusal(f"{path}: {one_line(key, 60)}: {hint}")
        value_type, expected = _TYPES[key]
        if not isinstance(value, value_type) or (value_type is int and isinstance(value, bool)):
            raise Refusal(f"{path}: {key}={one_line(value, 60)}: should be {expected}")
    if "recipe" not in values:
        raise Refusal(f'{path}: should name a recipe, as recipe = "digits/resnet8"')
    if not 1 <= values.get("trials", 1) <= LARGEST:
        raise Refusal(f"{path}: trials={values['trials']}: should be from 1 to {LARGEST:,}")
    if values.get("figure", "times") not in FIGURES:
        expected = _TYPES["figure"][1]
        raise Refusal(f"{path}: figure={one_line(values['figure'], 60)}: should be {expected}")
    thresholds = values.get("thresholds", [])
    if not all(type(number) in (int, float) and number > 0 for number in thresholds):
        raise Refusal(f"{path}: thresholds={one_line(thresholds, 60)}: should be numbers over 0")
    factors = values.get("factors", {})
    return Study(
        name=path.stem,
        question=values.get("question", ""),
        recipe=values["recipe"],
        trials=values.get("trials", 3),
        factors=tuple(_factor(path, name, levels) for name, levels in factors.items()),
        settings=values.get("settings", {}),
        thresholds=tuple(sorted(thresholds)),
        latency=values.get("latency", False),
        figure=values.get("figure", "times"),
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"is larger than {LARGEST_FILE >> 10} KiB")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        typed.check(values, dict[str, Any], path.name)
        return values
    except (OSError, ValueError, RecursionError) as error:
        raise files.cannot_read(path, error) from None


def _factor(path: Path, name: str, levels: Any) -> Factor:
    if isinstance(levels, list) and levels:
        return Factor(name.replace("_", " "), tuple(Level("", {name: value}) for value in levels))
    expected = "should be a list of values, or a table of levels: label = {field = value}"
    if not isinstance(levels, dict) or not levels:
        raise Refusal(f"{path}: factors.{name}: {expected}")
    for label, settings in levels.items():
        if not label or not isinstance(settings, dict):
            where = f"{path}: factors.{name}.{one_line(label, 60)}"
            raise Refusal(f"{where}={one_line(settings, 60)}: {expected}")
    return Factor(name, tuple(Level(label, settings) for label, settings in levels.items()))
