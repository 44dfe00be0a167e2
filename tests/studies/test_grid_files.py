"""A user's grid, as a TOML file."""

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import figures, grid, grid_files

WHOLE = """
question = "Does a projection pay?"
recipe = "digits/resnet8"
trials = 2
thresholds = [98, 95]
figure = "curves"
[settings]
epochs = 20
[factors]
batch_size = [32, "2 * batch_size"]
[factors.shortcuts]
padded = {model = "resnet8_v1_pad"}
projected = {model = "resnet8_v1_proj", learning_rate = 0.05}
"""


def test_a_grid_is_read_as_it_stands(tmp_path):
    path = tmp_path / "shortcuts.toml"
    path.write_text(WHOLE)
    study = grid_files.read(path)
    planned = grid.plan(study)
    assert study.name == "shortcuts" and study.thresholds == (95, 98) and len(planned) == 8
    assert planned[3].labels == ("128", "projected")
    recipe = planned[3].recipe
    assert (recipe.model, recipe.learning_rate, recipe.epochs) == ("resnet8_v1_proj", 0.05, 20)
    assert recipe.goal == 98


def test_the_figures_that_a_file_may_name_are_those_that_are_drawn():
    assert set(grid_files.FIGURES) == set(figures.FIGURES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recipe = 3", "recipe=3: should be text"),
        ("trials = 2", "should name a recipe"),
        ("recipe = 'x'\ntrials = 0", "trials=0: should be at least 1"),
        ("recipe = 'x'\ntrails = 3", "trails: did you mean trials?"),
        ("recipe = 'x'\nfigure = 'pie'", "figure=pie: should be one of times"),
        ("recipe = 'x'\nthresholds = ['a']", "should be numbers over 0"),
        ("recipe = 'x'\n[factors]\nmodel = 3", "factors.model: should be a list of values"),
        ("recipe = 'x'\n[factors.a]\nb = 3", "factors.a.b=3: should be a list of values"),
        ("recipe = ", "can't be read"),
    ],
)
def test_what_declares_no_grid_is_refused_in_a_line(tmp_path, text, words):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(Refusal) as refused:
        grid_files.read(path)
    assert words in str(refused.value) and str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refusal, match="No such file"):
        grid_files.read(tmp_path / "none.toml")
