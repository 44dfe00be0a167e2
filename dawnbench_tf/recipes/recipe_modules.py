"""Recipes in a user's Python module: `mypackage.recipes:FLOWERS`."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import one_line, refuse, suggestion

SEPARATOR = ":"


def load(name: str) -> Recipe:
    """Imports a module and returns one of its recipes.

    The working directory is importable, as `python -m` has it.

    Args:
      name: MODULE:ATTRIBUTE; the module may be in packages: `mypackage.recipes:FLOWERS`.

    Raises:
      Refusal: there is no such module, its import raises, it has no such attribute (the message
        suggests the nearest), or the attribute is no `Recipe`.
    """
    module_name, _, attribute = name.partition(SEPARATOR)
    if not all(map(str.isidentifier, (*module_name.split("."), attribute))):
        refuse("recipe", name, "should be MODULE:ATTRIBUTE, as mypackage.recipes:FLOWERS")
    module = _import(name, module_name)
    recipes = [key for key, value in vars(module).items() if isinstance(value, Recipe)]
    if not hasattr(module, attribute):
        listed = f"its recipes: {one_line(', '.join(recipes) or 'none')}"
        hint = suggestion(name, [f"{module_name}:{key}" for key in recipes], listed)
        refuse("recipe", name, f"{module_name} has no {attribute}; {hint}")
    recipe = getattr(module, attribute)
    if not isinstance(recipe, Recipe):
        refuse("recipe", name, f"is of type {type(recipe).__name__}, should be a Recipe")
    if not recipe.task or not recipe.model:
        refuse("recipe", name, "should have a task and a model")
    return recipe


def _import(name: str, module_name: str) -> ModuleType:
    # A module may import TensorFlow, which reads this once; the commands train with tf-keras.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    try:
        with _working_directory_importable():
            return import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or one_line(error, 60)
        if f"{module_name}.".startswith(f"{missing}."):
            refuse("recipe", name, f"no module {missing}, neither installed nor in this folder")
        refuse("recipe", name, f"importing {module_name} needs {missing}, which is not installed")
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        refuse("recipe", name, f"importing {module_name} raised {_describe(error)}")


def _describe(error: BaseException) -> str:
    """Returns an exception's type, message, file and line, on one line."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    lines = [f" ({os.path.basename(frame.filename)}:{frame.lineno})" for frame in last]
    return f"{type(error).__name__}: {one_line(error, 120)}{''.join(lines)}"


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    folder = os.getcwd()
    if {"", folder} & set(sys.path):
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
