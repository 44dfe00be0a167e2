"""Recipes in modules of users."""

import sys

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.refusals import Refusal

MODULE = """
from dawnbench_tf import recipes
FLOWERS = recipes.get("imagenette/resnet18", epochs=20)
EPOCHS = 3
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a module of a package in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mypackage").mkdir()
    yield lambda text, name="rows": (tmp_path / f"mypackage/{name}.py").write_text(text)
    for name in [key for key in sys.modules if key.partition(".")[0] == "mypackage"]:
        del sys.modules[name]


def test_a_recipe_of_a_module_in_the_working_directory(write):
    write(MODULE)
    before = list(sys.path)
    recipe = recipes.get("mypackage.rows:FLOWERS", batch_size=8)
    assert recipe == recipes.get("imagenette/resnet18", epochs=20, batch_size=8)
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("mypackage.row:FLOWERS", "importing mypackage.row raised ModuleNotFoundError: No module"),
        ("mypackage.rows:FLOWER", "mypackage.rows has no recipe FLOWER with a task and a mo"),
        ("mypackage.rows:EPOCHS", "mypackage.rows has no recipe EPOCHS with a task and a mo"),
        ("mypackage.rows:", "should be MODULE:ATTRIBUTE, as mypackage.recipes:FLOWERS"),
        ("../rows:A", "should be MODULE:ATTRIBUTE"),
        ("mypackage.fails:A", "importing mypackage.fails raised ZeroDivisionError: division by"),
        ("mypackage.ends:A", "importing mypackage.ends raised SystemExit: 3"),
        ("mypackage.broken:A", "importing mypackage.broken raised SyntaxError: "),
        ("mypackage.empty:A", "mypackage.empty has no recipe A with a task and a mo"),
    ],
)  # fmt: skip
def test_a_module_without_the_recipe_is_refused_in_a_line(write, name, line):
    write(MODULE)
    write("1 / 0", "fails")
    write("raise SystemExit(3)", "ends")
    write("a = = 1", "broken")
    write("from dawnbench_tf.recipe import Recipe\nA = Recipe()", "empty")
    with pytest.raises(Refusal) as refused:
        recipes.get(name)
    assert str(refused.value).startswith(f"--recipe={name}: {line}")
    assert "\n" not in str(refused.value)
