"""Recipes in TOML files, for example:

base = "imagenette/resnet18"     # a recipe of the library, or another file, relative to this one
name = "flowers/mine"            # default: TASK/STEM of this file
task = "imagenette"              # default: the base's

[settings]                       # settings that differ from the base's; flags of `train`
epochs = 20
image_sizes = [64]
image_size_epochs = []           # the base's has two sizes
"""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal, one_line, suggestion
from dawnbench_tf.settings import all_settings, flag_name, flat, parts, read_toml, setting_fields

SUFFIX = ".toml"
_TYPES = {"base": str, "name": str, "task": str, "settings": dict[str, Any]}
_NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)+", re.ASCII)
_LONGEST = 100  # characters of a name, at most
_WIDTH = 100  # columns of a written file, at most
_SHORTEST = 40  # columns of a comment beside its setting, at least


def is_path(name: str) -> bool:
    """Whether the name of a recipe is the path of a file."""
    return name.endswith(SUFFIX)


def read(path: Path) -> dict[str, Any]:
    """Reads base, name, task and settings, which are checked when the base gets them."""
    values = read_toml(path, _TYPES)
    base, name = values.get("base", ""), values.get("name", "")
    if not base:
        raise Refusal(f'{path}: should name a base, as base = "digits/resnet8"')
    if ":" in base:
        expected = "should be a recipe of the library or a FILE.toml, not of a module"
        raise Refusal(f"{path}: base={one_line(base, 60)}: {expected}")
    if "name" in values and not (_NAME.fullmatch(name) and len(name) <= _LONGEST):
        expected = f"should be TASK/NAME in letters, digits and ._+-, at most {_LONGEST} of them"
        raise Refusal(f"{path}: name={one_line(ascii(name), 60)}: {expected}")
    names, settings = all_settings(Recipe), values.get("settings", {})
    for key in (key for key in settings if key not in names):
        hint = suggestion(key, names, "`dawnbench train --helpfull` lists all")
        if key in all_settings(RunOptions):
            hint = f"give --{key} to the command: it is no part of a recipe"
        raise Refusal(f"{path}: settings.{one_line(key, 60)}: no setting of a recipe; {hint}")
    return {"name": "", "task": "", **values, "settings": settings}


def default_name(path: Path, task: str) -> str:
    """Returns the name of a recipe whose file states none: TASK/STEM.

    >>> default_name(Path("runs/my flowers.toml"), "imagenette")
    'imagenette/my-flowers'
    """
    words = (re.sub(r"[^A-Za-z0-9_.+-]+", "-", text) for text in (task, path.stem))
    return "/".join(words)[:_LONGEST]


def to_toml(recipe: Recipe, base: str) -> str:
    """Returns the text of a file to start one's own recipe from, each setting with a comment."""
    # `base` is the recipe's name in the library, or the path of its file.
    lines = [
        f"# dawnbench train FILE{SUFFIX}",
        f"base = {_format(base)}",
        '# name = "TASK/NAME"  # default: the task and the name of this file',
        f"# task = {_format(recipe.task_row.name)}  # default: the base's",
        "",
        "[settings]  # what is left out is as in the base; `dawnbench train --helpfull` has all",
    ]
    for title, part in {"recipe": recipe, **parts(recipe)}.items():
        default = flat(type(part)())
        helps = {flag_name(item): item.metadata["help"] for item in setting_fields(part)}
        changed = {n: v for n, v in flat(part).items() if v is not None and v != default[n]}
        lines += [f"# {title}"] * bool(changed)
        for name, value in changed.items():
            line, help = f"{name} = {_format(value)}", helps[name].partition(";")[0]
            left = _WIDTH - len(line) - len("  # ")
            if left >= _SHORTEST:  # the comment stands beside the setting, else above
                lines.append(f"{line}  # {textwrap.shorten(help, left, placeholder=' ...')}")
                continue
            lines.append(f"# {textwrap.shorten(help, _WIDTH - 2, placeholder=' ...')}")
            if len(line) > _WIDTH and line.endswith("]"):
                start, _, members = line.partition("[")
                inner = textwrap.wrap(members[:-1], _WIDTH - 4)
                lines += [f"{start}[", *(f"    {text}" for text in inner), "]"]
            else:
                lines.append(line)
    return "\n".join(lines)


def _format(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # TOML writes texts, numbers and lists as JSON
