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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import typed
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, suggestion
from dawnbench_tf.settings import all_settings, flag_name, flat, parts, setting_fields

_TYPES: typed.Keys = {
    "base": (str, "text, TASK/NAME or FILE.toml"),
    "name": (str, "text, TASK/NAME"),
    "task": (str, "text"),
    "settings": (dict, "a table"),
}
_NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)+", re.ASCII)
_LONGEST = 100  # characters of a name, at most
_WIDTH = 100  # columns of a written file, at most
_SHORTEST = 40  # columns of a comment beside its setting, at least


class RecipeFile(NamedTuple):
    """The content of a recipe's file."""

    base: str  # TASK/NAME, or the path of another file
    name: str  # "": TASK/STEM of the file
    task: str  # "": the base's
    settings: dict[str, Any]  # by flat name; lists are tuples


def is_path(name: str) -> bool:
    """Whether the name of a recipe is the path of a file."""
    return name.endswith(typed.SUFFIX)


def read(path: Path) -> RecipeFile:
    """Reads a recipe's file; its values are checked when they are applied to the base.

    Args:
      path: path of the file. The path of a base in it is relative to its folder.

    Raises:
      Refusal: the file can't be read, or does not have the form of a recipe; the message names the
        file and suggests the nearest name for an unknown one.
    """
    values = typed.read_toml(path, _TYPES)
    base, name = values.get("base", ""), values.get("name", "")
    if not base:
        raise Refusal(f'{path}: should name a base, as base = "digits/resnet8"')
    if ":" in base:
        expected = "should be a recipe of the library or a FILE.toml, not of a module"
        raise Refusal(f"{path}: base={one_line(base, 60)}: {expected}")
    if "name" in values and not (_NAME.fullmatch(name) and len(name) <= _LONGEST):
        expected = f"should be TASK/NAME in letters, digits and ._+-, at most {_LONGEST} of them"
        raise Refusal(f"{path}: name={one_line(ascii(name), 60)}: {expected}")
    settings = values.get("settings", {})
    for key in settings:
        _check_name(path, key)
    return RecipeFile(
        str(path.parent / base) if is_path(base) else base,
        name,
        values.get("task", ""),
        {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()},
    )


def _check_name(path: Path, name: str) -> None:
    """Refuses what is no setting of a recipe, with the nearest name."""
    settings = all_settings(Recipe)
    if name in settings:
        return
    hint = suggestion(name, settings, "`dawnbench train --helpfull` lists all")
    if name in all_settings(RunOptions):
        hint = f"give --{name} to the command: it is no part of a recipe"
    raise Refusal(f"{path}: settings.{one_line(name, 60)}: no setting of a recipe; {hint}")


def default_name(path: Path, task: str) -> str:
    """Returns the name of a recipe whose file states none: TASK/STEM.

    >>> default_name(Path("runs/my flowers.toml"), "imagenette")
    'imagenette/my-flowers'
    """
    words = (re.sub(r"[^A-Za-z0-9_.+-]+", "-", text) for text in (task, path.stem))
    return "/".join(words)[:_LONGEST]


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Has a Refusal of the body name the file: `FILE: setting=value: expected`."""
    try:
        yield
    except Refusal as refusal:
        raise Refusal(f"{path}: {str(refusal).removeprefix('--')}") from None


def to_toml(recipe: Recipe, base: str) -> str:
    """Returns the text of a file that describes a recipe, to start a recipe of one's own from.

    Settings that differ from the library's defaults are active lines, each with a comment.

    Args:
      recipe: recipe to describe.
      base: its name in the library, or the path of its file.
    """
    lines = [
        f"# dawnbench train FILE{typed.SUFFIX}",
        f"base = {_format(base)}",
        '# name = "TASK/NAME"  # default: the task and the name of this file',
        f"# task = {_format(recipe.task_row.name)}  # default: the base's",
        "",
        "[settings]  # what is left out is as in the base; `dawnbench train --helpfull` has all",
    ]
    for title, part in {"recipe": recipe, **parts(recipe)}.items():
        default = flat(type(part)())
        fields = {flag_name(item): item for item in setting_fields(part)}
        changed = {n: v for n, v in flat(part).items() if v is not None and v != default[n]}
        lines += [f"# {title}"] * bool(changed)
        for name, value in changed.items():
            lines += _setting_lines(name, value, fields[name].metadata["help"])
    return "\n".join(lines)


def _setting_lines(name: str, value: Any, help: str) -> list[str]:
    """Returns the line of a setting, with its help as a comment at its end or above it."""
    line = f"{name} = {_format(value)}"
    left = _WIDTH - len(line) - len("  # ")
    beside = left >= _SHORTEST
    comment = textwrap.shorten(
        help.partition(";")[0], left if beside else _WIDTH - 2, placeholder=" ..."
    )
    if beside:
        return [f"{line}  # {comment}"]
    return [f"# {comment}", *_wrapped(line)]


def _wrapped(line: str) -> list[str]:
    """Wraps a list that is longer than a line."""
    if len(line) <= _WIDTH or not line.endswith("]"):
        return [line]
    start, _, members = line.partition("[")
    inner = textwrap.wrap(members[:-1], _WIDTH - 4)
    return [f"{start}[", *(f"    {text}" for text in inner), "]"]


def _format(value: Any) -> str:
    """Formats a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format, value))}]"
    return repr(value)
