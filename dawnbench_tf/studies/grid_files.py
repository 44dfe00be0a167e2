"""Reads a user's study from a TOML file; docs/studies.md has an example with all its keys."""

from pathlib import Path
from typing import Any

from dawnbench_tf.recipes import recipe_files
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.settings import read_toml
from dawnbench_tf.studies.grid import FIGURES, LARGEST, Factor, Level, Study

_TYPES = {
    **{"question": str, "recipe": str, "figure": str, "trials": int, "latency": bool},
    **{"thresholds": list[float], "settings": dict[str, Any], "factors": dict[str, Any]},
}


def read(path: Path) -> Study:
    """Reads a study, named as the file. Raises Refusal if it can't be read or declares none."""
    values = read_toml(path, _TYPES)
    if "recipe" not in values:
        raise Refusal(f'{path}: should name a recipe, as recipe = "digits/resnet8"')
    if not 1 <= values.get("trials", 1) <= LARGEST:
        raise Refusal(f"{path}: trials={values['trials']}: should be from 1 to {LARGEST:,}")
    if (figure := values.get("figure", "times")) not in FIGURES:
        text = f"should be one of {', '.join(FIGURES)}"
        raise Refusal(f"{path}: figure={one_line(figure, 60)}: {text}")
    thresholds = values.get("thresholds", [])
    if not all(number > 0 for number in thresholds):
        raise Refusal(f"{path}: thresholds={one_line(thresholds, 60)}: should be numbers over 0")
    factors = values.get("factors", {}).items()
    own = {
        "name": path.stem,
        "recipe": _beside(path, values["recipe"]),
        "factors": tuple(_factor(path, name, levels) for name, levels in factors),
        "thresholds": tuple(sorted(thresholds)),
    }
    setter = dict.fromkeys(values.get("settings", ()), "settings")
    if "recipe" in setter:
        raise Refusal(f"{path}: settings.recipe: is named twice; leave recipe in the first lines")
    for factor in own["factors"]:
        each = [set(level.settings) for level in factor.levels]
        for field in sorted(set().union(*each)):
            other = setter.get(field, "")
            # A value in [settings] may be that of the levels that set none.
            if other.startswith("factors") or (other and field in set.intersection(*each)):
                text = f"factors.{factor.name}: sets {field}, which {other} sets too; leave one out"
                raise Refusal(f"{path}: {one_line(text)}")
            setter[field] = f"factors.{factor.name}"
    return Study(**{"question": "", "trials": 3, **values, **own})


def _factor(path: Path, name: str, levels: Any) -> Factor:
    if isinstance(levels, list) and levels:
        files = [_beside(path, v) if name == "recipe" else v for v in levels]
        # A recipe's file is labelled as the grid's file names it.
        pairs = [("" if v == f else v, {name: f}) for v, f in zip(levels, files, strict=True)]
        return Factor(name.replace("_", " "), tuple(Level(*pair) for pair in pairs))
    expected = "should be a list of values, or a table of levels: label = {field = value}"
    if not isinstance(levels, dict) or not levels:
        raise Refusal(f"{path}: factors.{name}: {expected}")
    named = []
    for label, settings in levels.items():
        if not label or not isinstance(settings, dict):
            where = f"{path}: factors.{name}.{one_line(label, 60)}"
            raise Refusal(f"{where}={one_line(settings, 60)}: {expected}")
        file = {"recipe": _beside(path, settings["recipe"])} if "recipe" in settings else {}
        named.append(Level(label, {**settings, **file}))
    return Factor(name, tuple(named))


def _beside(path: Path, recipe: Any) -> Any:
    """Returns a recipe's name; the path of a recipe's file is relative to the grid's file."""
    if isinstance(recipe, str) and recipe_files.is_path(recipe):
        return str(path.parent / recipe)
    return recipe
