"""Recipes in TOML files."""

import os
import re

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.recipes import recipe_files
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, grid_files
from tests.studies import samples


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a recipe's file in the working directory."""
    monkeypatch.chdir(tmp_path)
    return lambda text, name="my.toml": (tmp_path / name).write_text(text)


def test_a_file_has_the_values_of_its_base_but_for_its_settings(write):
    write(samples.RECIPE)
    recipe, base = recipes.get("my.toml"), recipes.get("imagenette/resnet18")
    changed = {"name": "flowers/mine", "epochs": 20, "image_sizes": (64,), "learning_rate": 1}
    changed["image_size_epochs"] = ()
    assert recipe.values() == base.values() | changed
    assert recipes.get("my.toml", epochs=3).epochs == 3
    assert base.evidence and not recipe.evidence


def test_a_base_may_be_another_file_relative_to_the_file(write, tmp_path):
    (tmp_path / "deep").mkdir()
    write(samples.RECIPE)
    write('base = "../my.toml"\n[settings]\nbatch_size = 8', "deep/small one.toml")
    recipe = recipes.get(str(tmp_path / "deep/small one.toml"))
    assert (recipe.name, recipe.epochs, recipe.batch_size) == ("imagenette/small-one", 20, 8)


def test_the_printed_file_reads_back_as_the_recipe(write):
    for name, recipe in recipes.rows().items():
        text, row = recipe_files.to_toml(recipe, name), recipe.values()
        write(text, f"{name.rpartition('/')[2]}.toml")
        assert recipes.get(f"{name.rpartition('/')[2]}.toml").values() == row, name
        assert max(map(len, text.splitlines())) <= 100, name
        # Its settings alone make the recipe, whichever the base.
        base = next(other for other in recipes.rows() if other.startswith(recipe.task))
        write(text.replace(f'base = "{name}"', f'base = "{base}"'))
        read = recipes.get("my.toml").values()
        active = set(re.findall(r"^(\w+) =", text, re.MULTILINE)) - {"base"}
        assert {key: read[key] for key in active} == {key: row[key] for key in active}, name


BASE = 'base = "digits/resnet8"\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[settings]\nepochs = 1", 'my.toml: should name a base, as base = "digits/resnet8"'),
        ("base = 3", "my.toml: base=3 (base should be text)"),
        ("bases = 'x'", "my.toml: bases: did you mean base?"),
        ("base = 'digits/resnet9'", "my.toml: recipe=digits/resnet9: no such recipe; did you mean"),
        ("base = 'os:path'", "my.toml: base=os:path: should be a recipe of the library or a FILE"),
        ("base = 'none.toml'", "none.toml: can't be read (No such file or directory)"),
        (BASE + "name = '../x/y'", "my.toml: name='../x/y': should be TASK/NAME in letters"),
        (BASE + "task = 'digit'", "my.toml: task=digit: did you mean digits?"),
        (BASE + "[settings]\nepoch = 3", "my.toml: settings.epoch: no setting of a recipe; did yo"),
        (BASE + "[settings]\ndata_dir = 'x'", "my.toml: settings.data_dir: no setting of a recipe; "
         "give --data_dir to the command"),
        (BASE + "[settings]\nname = 'x'", "my.toml: settings.name: no setting of a recipe"),
        (BASE + "[settings]\nepochs = -1", "my.toml: epochs=-1: should be over 0"),
        (BASE + "[settings]\nbatch_size = 2.5", "my.toml: batch_size=2.5: should be a whole"),
        (BASE + "[settings]\nschedule_epochs = 3", "my.toml: schedule_epochs=3: should be a list"),
        (BASE + "[settings]\nepochs = {a = 1}", "my.toml: epochs={'a': 1}: should be a number"),
        (BASE + "[settings]\nmodel = 'bidaf'", "my.toml: model=bidaf: takes questions, and digits"),
        (f"{BASE}settings = {'[' * 50}{']' * 50}", "my.toml: can't be read (my.toml.settings"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_refused_in_a_line_that_names_it(write, text, line):
    write(text)
    with pytest.raises(Refusal, match="^" + re.escape(line)) as refused:
        recipes.get("my.toml")
    assert "\n" not in str(refused.value)


def test_a_circle_of_bases_and_what_is_no_file_are_refused(write, tmp_path):
    write('base = "b.toml"', "a.toml")
    write('base = "./a.toml"', "b.toml")
    with pytest.raises(Refusal, match="^a.toml: is based on itself, through its base$"):
        recipes.get("a.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(Refusal, match="pipe.toml: can't be read .is no regular file"):
        recipes.get("pipe.toml")


def test_a_grid_s_recipe_may_be_a_file_beside_it(write, tmp_path, monkeypatch):
    write(samples.RECIPE)
    write(samples.RECIPE.replace("20", "5"), "short.toml")
    write('recipe = "my.toml"\ntrials = 1\n[factors]\nrecipe = ["my.toml", "short.toml"]', "g.toml")
    monkeypatch.chdir(tmp_path.parent)
    planned = grid.plan(grid_files.read(tmp_path / "g.toml"))
    assert [run.recipe.epochs for run in planned] == [20, 5]
    assert [run.labels for run in planned] == [("my.toml",), ("short.toml",)]
    assert planned[1].flags[0] == f"--recipe={tmp_path / 'short.toml'}"
