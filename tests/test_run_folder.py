"""Claims of folders, and the state of a folder after a refusal."""

import os
from dataclasses import replace
from functools import partial

import pytest

from dawnbench_tf import recipes, run_folder, runs
from dawnbench_tf.clock import Clock, beating
from dawnbench_tf.refusals import Refusal

RECIPE = recipes.get("digits/resnet8")


def test_a_folder_with_other_files_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / ".checkpoint-mine").mkdir()
    for name in ("thesis.txt", ".env.tmpl", ".checkpoint-mine/notes", ".draft.tmp.txt"):
        (tmp_path / name).touch()
    before = {*tmp_path.rglob("*")}
    with pytest.raises(Refusal, match="holds other files and no run"):
        run_folder.claim(tmp_path, RECIPE)
    assert {*tmp_path.rglob("*")} == before
    run = tmp_path / "run"
    run.mkdir()
    (run / ".run.tmp.json").touch()  # of a process that was killed
    run_folder.claim(run, RECIPE).release()
    assert {path.name for path in run.iterdir()} == {".lock", "run.json"}


def test_the_same_recipe_is_let_in_and_another_is_not(tmp_path):
    run_folder.claim(tmp_path, RECIPE).release()
    run_folder.claim(tmp_path, replace(RECIPE, evidence=())).release()
    with pytest.raises(Refusal, match="with seed=0, not 1; name another folder"):
        run_folder.claim(tmp_path, replace(RECIPE, seed=1))


def test_what_is_refused_before_training_leaves_no_trace_but_an_earlier_speed_test(tmp_path):
    for name in ("empty", "timed"):
        (tmp_path / name).mkdir()
    (tmp_path / "timed/trial.json").write_text("{}")
    for name in ("deep/run", "empty", "timed"):
        claim = run_folder.claim(tmp_path / name, RECIPE)
        error = Refusal if name != "empty" else OSError  # of the user's own data
        with pytest.raises(error), claim.restored_on(error, {}):
            raise error("no data")
    assert {path.name for path in tmp_path.rglob("*")} == {"empty", "timed", "trial.json"}
    claim = run_folder.claim(tmp_path / "crash", RECIPE)
    with pytest.raises(OSError), claim.restored_on(Refusal, {}):
        raise OSError  # a study keeps it as a result
    assert (tmp_path / "crash/run.json").exists()


def test_a_clock_does_not_beat_in_a_folder_that_was_given_back(tmp_path):
    claim = run_folder.claim(tmp_path, RECIPE)
    beat = partial(run_folder.RunFolder(tmp_path, RECIPE).write_clock, Clock())
    with pytest.raises(Refusal), beating(beat), claim.restored_on(Refusal, {}):
        assert (tmp_path / "clock.json").exists()
        raise Refusal("no data")
    assert not list(tmp_path.iterdir())


def test_a_start_that_is_refused_takes_no_time_of_a_run(tmp_path):
    run_folder.claim(tmp_path, RECIPE).release()
    recorded, clock = {"load": 1.0, "train": 5.0}, Clock()
    clock.carry_on({"load": 3.0, "train": 5.0})
    claim = run_folder.claim(tmp_path, RECIPE)
    with pytest.raises(Refusal), beating(partial(claim.write_clock, clock)):
        with claim.restored_on(Refusal, recorded):
            assert run_folder.read_clock(tmp_path / "clock.json")["load"] == 3  # a kill keeps it
            raise Refusal("other data")
    assert run_folder.read_clock(tmp_path / "clock.json") == recorded


def test_a_folder_whose_path_is_not_utf_8_is_refused_and_not_made(tmp_path):
    folder = tmp_path / os.fsdecode(b"run-\xff")
    with pytest.raises(Refusal, match=r"^--output_dir=.*run-\\udcff: should be UTF-8"):
        run_folder.claim(folder, RECIPE)
    assert not list(tmp_path.iterdir())


def test_more_epochs_of_a_run_that_has_not_ended_are_refused(tmp_path):
    run_folder.claim(tmp_path, RECIPE).release()
    line = f"^--epochs=60: {tmp_path} holds a run with epochs=30 that has not ended; go on with it"
    with pytest.raises(Refusal, match=line):
        run_folder.claim(tmp_path, replace(RECIPE, epochs=60), replaced=["epochs"])


def test_more_epochs_that_are_refused_are_not_recorded(tmp_path):
    """A missed run is trained longer only once it is built."""
    recipe = replace(RECIPE, epochs=2)
    run_folder.claim(tmp_path, recipe).release()
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "rows.tsv").write_text("epoch\thours\ttop1Accuracy\n2\t0.1\t50.0\n")
    before = (tmp_path / "run.json").read_bytes()
    claim = run_folder.claim(tmp_path, replace(RECIPE, epochs=60))
    assert claim.recipe.epochs == 60 and (tmp_path / "run.json").read_bytes() == before
    claim.record(claim.recipe, {})
    claim.release()
    assert runs.read(tmp_path).recipe.epochs == 60
    assert run_folder.owner_of(tmp_path).epochs_before == [2]


@pytest.mark.parametrize(
    ("replaced", "numbers", "corners"),
    [
        ({"epochs"}, (30, 60), (0, 4, 60)),
        ({"epochs"}, (60, 120), (0, 8, 120)),
        ({"epochs"}, (10, 60), (0, 4, 60)),
        ({"epochs"}, (10, 20), (0, 2, 30)),
        ({"epochs"}, (30, 62, 124), (0, 248 / 30, 124)),
        ({"epochs", "schedule_epochs"}, (30, 60), (0, 4, 60)),
        (None, (30, 60, 120), (0, 8, 120)),  # of a file or from Python
    ],
)
def test_a_longer_run_does_not_train_at_a_rate_of_0(tmp_path, replaced, numbers, corners):
    """The default schedule ends at 0 in epoch 30."""
    assert RECIPE.schedule.epochs == (0, 2, 30) and RECIPE.schedule.factors[-1] == 0
    first, *longer = numbers
    run_folder.claim(tmp_path, replace(RECIPE, epochs=first), replaced=replaced).release()
    (tmp_path / "rows.tsv").write_text("epoch\thours\ttop1Accuracy\n1\t0.1\t50.0\n")
    for before, epochs in zip(numbers, longer, strict=False):
        (tmp_path / f"checkpoint-{before}").mkdir()
        for _ in range(2):  # the same command goes on with what the first has written
            claim = run_folder.claim(tmp_path, replace(RECIPE, epochs=epochs), replaced=replaced)
            claim.record(claim.recipe, {})
            claim.release()
            assert claim.recipe == runs.read(tmp_path).recipe
    assert claim.recipe.schedule.epochs == pytest.approx(corners)
    assert run_folder.owner_of(tmp_path).epochs_before == [*numbers[:-1]]
