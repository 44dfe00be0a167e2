"""Grids in TOML files."""

import os

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import figures, grid, grid_files
from tests.studies import samples


def test_a_grid_is_read_as_it_stands(tmp_path):
    path = tmp_path / "shortcuts.toml"
    path.write_text(samples.GRID)
    study = grid_files.read(path)
    planned = grid.plan(study)
    assert study.name == "shortcuts" and study.thresholds == (95, 98) and len(planned) == 8
    assert planned[3].labels == ("128", "projected")
    values = planned[3].recipe.values()
    assert (values["model"], values["learning_rate"]) == ("resnet8_v1_proj", 0.05)
    assert (values["epochs"], values["threshold"]) == (20, 98)


def test_the_figures_that_a_file_may_name_are_those_that_are_drawn():
    assert set(grid_files.FIGURES) == set(figures.FIGURES)


BASE = 'recipe = "digits/resnet8"\ntrials = 1\n'
MANY = "\n".join(f"a{n} = [{', '.join(map(str, range(1, 40)))}]" for n in range(9))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recipe = 3", "recipe=3 (recipe should be text)"),
        ("trials = 2", "should name a recipe"),
        ("recipe = 'x'\ntrials = 0", "trials=0: should be from 1 to 10,000"),
        ("recipe = 'x'\ntrials = 10001", "trials=10001: should be from 1 to 10,000"),
        ("recipe = 'x'\ntrails = 3", "trails: did you mean trials?"),
        ("recipe = 'x'\nfigure = 'pie'", "figure=pie: should be one of times"),
        ("recipe = 'x'\nthresholds = [0]", "should be numbers over 0"),
        ("recipe = 'x'\n[factors]\nmodel = 3", "factors.model: should be a list of values"),
        ("recipe = 'x'\n[factors.a]\nb = 3", "factors.a.b=3: should be a list of values"),
        (
            "recipe = 'x'\n[factors]\nepochs = [1, 2]\n[factors.b]\na = {}\nc = {epochs = 3}",
            "factors.b: sets epochs, which factors.epochs sets too; leave one out",
        ),
        (BASE + "[factors]\n" + MANY, "should come to 1 to 10,000 runs"),
        (BASE + "[factors]\nrecipe = [[1, 2]]", "--recipe=1,2: should be text"),
        (BASE + "[settings]\nrecipe = 3", "settings.recipe: is named twice"),
        (f"{BASE}[settings]\nbatch_size = {'9' * 400}", "should be less than 2^63"),
        (BASE + "[factors]\nbatch_size = ['2 * batch_size']", "--batch_size='2 * batch"),
        (f"{BASE}[factors.a]\n{'x' * 5000} = {{epochs = 1}}", "of 100 characters at most"),
        (BASE + "[factors.a]\n'' = {epochs = 1}", "should be a list of values"),
        (BASE + '[factors.a]\n"\\u001b[2J" = {epochs = 1}', "of 100 characters at most"),
        (BASE + '[factors."\\u001b[2J"]\na = {epochs = 1}', "name should be printable"),
        (BASE + '[settings]\ndata_dir = "a\\u0000b"', "should be printable"),
        (f"{BASE}[settings]\nepochs = {'[' * 5000}{']' * 5000}", "can't be read"),
        (f"{BASE}[settings]\nepochs = {'[' * 50}{']' * 50}", "nested too deep"),
        (BASE + "[settings]\nepochs = {a = 1}", "should be a number"),
        (BASE + "[settings]\nseed = 'x'", "--seed='x': should be a whole number"),
        (BASE + "[factors]\nseed = [1, 2]", "--seed=1: is what trials vary"),
        (BASE + "[settings]\nepochs = inf", "should be a finite number"),
    ],
)
def test_what_declares_no_grid_is_refused_in_a_line(tmp_path, text, words):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(Refusal) as refused:
        grid.plan(grid_files.read(path))
    assert words in str(refused.value)
    assert text.startswith(BASE) or str(path) in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refusal, match="can't be read.*No such file"):
        grid_files.read(tmp_path / "none.toml")
    path = tmp_path / "own.toml"
    path.write_text("recipe = 'x'\n[settings]\nepochs = 3\n[factors.b]\na = {}\nc = {epochs = 2}")
    assert grid_files.read(path).settings == {"epochs": 3}  # a's
    path.write_text(path.read_text().replace("{}", "{epochs = 1}"))
    with pytest.raises(Refusal, match="factors.b: sets epochs, which settings sets too"):
        grid_files.read(path)


def test_what_is_no_file_or_too_large_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "large.toml").write_text("a." * 2**15 + "a = 1")  # tomllib's time is quadratic
    for name, words in (("fifo", "is no regular file"), ("large", "is larger than 32 KiB")):
        with pytest.raises(Refusal, match=words):
            grid_files.read(tmp_path / f"{name}.toml")
