"""A run is read back from its folder: finished, missed, cut off by a crash, of an older version."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dawnbench_tf import files, recipes, run_folder, runs
from dawnbench_tf.recipe.options import Credits, RunOptions, to_record, with_recorded
from dawnbench_tf.refusals import Refusal
from tests import warm

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD = FIXTURES / "digits_run_0_1_0"  # killed in its fourth epoch
RELEASES = ("0_1_0", "0_2_0", "0_3_0")


@pytest.fixture
def old(tmp_path):
    """A copy of the run that version 0.1.0 began."""
    return shutil.copytree(OLD, tmp_path / "run")


def test_a_finished_run_is_read(trained_digits):
    run = runs.read(trained_digits / "run")
    assert run.recipe == recipes.get("digits/resnet8") and run.reached
    assert run.first_hit == run.rows[-1] and run.first_hit["top1Accuracy"] >= 98
    assert run.clock["train"] > 0 and [row["epoch"] for row in run.rows][:2] == [1, 2]
    assert run.first_hit["hours"] * 3600 <= sum(run.clock.values())


def test_a_miss_is_read_and_a_folder_s_name_is_enough(old):
    run = runs.read(str(old))
    assert not run.reached and run.first_hit is None
    assert [row["top1Accuracy"] for row in run.rows] == [10.0, 26.6, 46.2]


def test_a_row_that_a_crash_cut_off_does_not_count(old):
    path = old / "rows.tsv"
    path.write_text(path.read_text() + "4\t0.0")
    assert len(runs.read(old).rows) == 3
    path.write_text("")
    assert len(runs.read(old).rows) == 3  # the checkpoint has them


def test_rows_that_were_damaged_are_refused(old):
    path = old / "rows.tsv"
    path.write_text(path.read_text().replace("26.6", "96.6"))
    with pytest.raises(Refusal, match="rows.tsv: differs from the rows in checkpoint-3"):
        runs.read(old)


def test_a_run_that_died_at_once_has_no_rows_and_no_clock(old):
    for name in ("rows.tsv", "clock.json"):
        (old / name).unlink()
    shutil.rmtree(old / "checkpoint-3")
    run = runs.read(old)
    assert (run.rows, run.clock, run.reached) == ([], {}, False)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("run.json", "{", "run.json: can't be read"),
        ("run.json", "[]", "run.json: can't be read (holds a list, should hold an object)"),
        ("run.json", '{"colour": 1}', "run.json: is no recipe of this version"),
        ("rows.tsv", "epoch\thours\ttop1Accuracy\n1\tx\t3\n", "rows.tsv:2: should be 3 numbers"),
        ("rows.tsv", "epoch\thours\n1\t2\n", "rows.tsv:1: should have columns epoch, hours"),
        ("clock.json", "{", "clock.json: can't be read"),
    ],
)
def test_a_damaged_file_is_one_line(old, name, content, words):
    (old / name).write_text(content)
    with pytest.raises(Refusal) as refusal:
        runs.read(old)
    assert words in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_folder_that_is_no_run_s_is_refused(tmp_path):
    with pytest.raises(Refusal, match="holds no run.json; should be the --output_dir"):
        runs.read(tmp_path)


def test_a_run_begun_before_a_recipe_had_some_field_is_still_its_own(old):
    """A new field's default keeps the curve as it was: the folder is not orphaned."""
    path = old / "run.json"
    values = json.loads(path.read_text())
    for name in ("average", "bucket_boundaries", "synthetic"):
        del values[name]
    path.write_text(json.dumps(values))
    recipe = replace(recipes.get("digits/resnet8"), seed=5)
    assert run_folder.owner_of(old)[1:3] == (recipe, None)
    run_folder.claim(old, recipe).release()
    # The library's row has changed since: the run goes on as it began.
    changed = recipes.get("digits/resnet8", seed=5, weight_decay=0.1)
    claim = run_folder.claim(old, changed, replaced=["seed"])
    claim.release()
    assert claim.recipe == recipe
    with pytest.raises(Refusal, match="with seed=5, not 6; name another folder"):
        run_folder.claim(old, replace(changed, seed=6), replaced=["seed"])
    with pytest.raises(Refusal, match="with average=0.0, not 0.5; name another folder"):
        run_folder.claim(old, replace(recipe, average=replace(recipe.average, decay=0.5)))


@pytest.mark.parametrize("release", RELEASES)
def test_a_run_of_each_release_is_read_and_claimed(tmp_path, release):
    old = shutil.copytree(FIXTURES / f"digits_run_{release}", tmp_path / "run")
    folder = run_folder.claim(old, recipes.get("digits/resnet8", seed=5), replaced=["seed"])
    newest = folder.newest()
    assert newest.epochs == 3 and newest.state["rows"] == runs.read(old).rows
    assert folder.read_clock(newest)["train"] > 0 and not newest.is_last(folder.recipe)
    if release != "0_1_0":  # which wrote no weights.npz
        assert len(run_folder.read_weights(old)) == 37


@pytest.mark.parametrize(
    "release", ["0_1_0", *(pytest.param(name, marks=pytest.mark.long) for name in RELEASES[1:])]
)
def test_a_run_that_an_earlier_release_began_goes_on(tmp_path, release):
    old = shutil.copytree(FIXTURES / f"digits_run_{release}", tmp_path / "run")
    before = runs.read(old)
    flags = ["--seed=5", f"--output_dir={old}", "--epochs=30"]
    command = [*warm.python(), "-m", "dawnbench_tf.train", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "epoch 3/30" not in ended.stderr and "epoch 4/30" in ended.stderr
    run = runs.read(old)
    assert run.rows[:3] == before.rows and run.reached
    assert run.clock["train"] > before.clock["train"] and os.listdir(old / "digits/train")


def test_a_recipe_of_no_known_model_or_task_is_refused(old):
    values = json.loads((old / "run.json").read_text())
    for changes in ({"model": "nope"}, {"task": "nope"}, {"model": "bidaf"}):
        (old / "run.json").write_text(json.dumps({**values, **changes}))
        with pytest.raises(Refusal, match="run.json: is no recipe of this version"):
            runs.read(old)


@pytest.mark.parametrize(
    "version, words",
    [
        (3, "has format 3; this release reads formats up to 2: install a newer dawnbench_tf"),
        ("2", "format should be a whole number from 1 to 2; has '2'"),
        (True, "format should be a whole number from 1 to 2; has True"),
        (0, "format should be a whole number from 1 to 2; has 0"),
    ],
)
def test_a_folder_of_an_unknown_format_is_refused(tmp_path, version, words):
    run_folder.claim(tmp_path, recipes.get("digits/resnet8"), replaced=None)
    values = json.loads((tmp_path / "run.json").read_text())
    assert values["format"] == run_folder.NEWEST_FORMAT
    values = {name: value for name, value in values.items() if name != "sha256"}
    files.write_json(tmp_path / "run.json", {**values, "format": version})
    with pytest.raises(Refusal, match=re.escape(f"run.json: {words}")):
        runs.read(tmp_path)


def test_rows_larger_than_memory_are_refused(old):
    os.truncate(old / "rows.tsv", 2**40)  # sparse
    with pytest.raises(Refusal, match="rows.tsv: can't be read .is larger than 16 MiB"):
        runs.read(old)


OPTIONS = RunOptions(
    output_dir="out",
    data_dir="gs://bucket/data",
    strategy="multi_worker_mirrored",
    worker_hosts="a:1,b:1",
    task_index=1,
    profile_steps=(2, 4),
    credits=Credits(author="Ada", cost_per_hour=3),
)
RECORDED = replace(OPTIONS, output_dir="", worker_hosts="", task_index=-1, profile_steps=())


def test_a_folder_records_options_but_not_those_of_one_call(tmp_path):
    run_folder.claim(tmp_path, recipes.get("digits/resnet8"), options=to_record(OPTIONS))
    assert runs.read(tmp_path).options == RECORDED
    assert runs.read(tmp_path).recipe == recipes.get("digits/resnet8")
    assert to_record(RunOptions(data_dir="x")) == {"data_dir": os.path.abspath("x")}
    assert to_record(RunOptions(data_dir="~/x")) == {"data_dir": os.path.expanduser("~/x")}
    assert with_recorded(OPTIONS, {}) == OPTIONS


def test_new_options_replace_the_recorded_ones_and_nothing_else(old):
    assert runs.read(old).options == RunOptions()
    before = (old / "run.json").read_bytes()
    recipe = runs.read(old).recipe
    claim = run_folder.RunFolder(old, recipe)
    claim.record(recipe, {})
    assert (old / "run.json").read_bytes() == before
    claim.record(recipe, to_record(OPTIONS))
    assert runs.read(old).options == RECORDED
    claim.record(recipe, {})
    values = json.loads((old / "run.json").read_text())
    assert {k: v for k, v in values.items() if k != "sha256"} == json.loads(before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": 1}, "colour: no option of a run"),
        ({"strategy": "none"}, "--strategy=none: should be one of off"),
        ({"cost_per_hour": "1"}, "--cost_per_hour='1': should be a number"),
        ({"profile_steps": [2, 4]}, "profile_steps: no option of a run"),
        (3, "should be an object"),
    ],
)
def test_damaged_options_are_one_line(old, options, words):
    values = json.loads((old / "run.json").read_text())
    (old / "run.json").write_text(json.dumps({**values, "options": options}))
    with pytest.raises(Refusal, match=re.escape(f"options are none of this version ({words}")):
        str(runs.read(old).options)
