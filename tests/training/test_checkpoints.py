"""Saving and restoring checkpoints, and refusals."""

import json
import os
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import files, recipes, run_folder
from dawnbench_tf.clock import Clock
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe import Average, Recipe
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import checkpoints, optimizers
from dawnbench_tf.tta import TimeToAccuracy

MACHINE = Machine("2 CPU", "2cpu", {"python": "3.11"})
RECIPE, METRIC = recipes.get("digits/resnet8"), "top1Accuracy"
LOOKAHEAD = Recipe(epochs=4, average=Average(decay=0.9, every=3, lookahead=True))
X, Y = np.random.default_rng(0).normal(size=(32, 4)).astype("f"), np.arange(32) % 2


def saver(path, optimizer="adam", units=3):
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(units, input_shape=(4,)), tf.keras.layers.BatchNormalization()]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(2)])
    if optimizer == "lookahead":
        optimizer = optimizers.build(LOOKAHEAD, [4], model)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, run_eagerly=True)  # 4 steps are sooner done than traced
    timer = TimeToAccuracy(2, METRIC, evaluate=lambda: {METRIC: 1})
    return model, checkpoints.Saver(run_folder.RunFolder(path, RECIPE), model, timer, MACHINE)


def restore(keeper):
    """Restores the clock, then weights and rows, as `train` does."""
    newest = keeper.folder.newest()
    keeper.timer.clock.carry_on(keeper.folder.read_clock(newest))
    return keeper.restore(newest)


def fit(model_and_saver, first, epochs, *others):
    model, keeper = model_and_saver
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    callbacks = [keeper.timer, keeper, *others]
    model.fit(data, initial_epoch=first, epochs=epochs, verbose=0, callbacks=callbacks)


def everything(model_and_saver):
    """Returns weights and optimizer variables."""
    model = model_and_saver[0]
    return [*model.get_weights(), *(variable.numpy() for variable in model.optimizer.variables)]


@pytest.mark.parametrize("optimizer", ["adam", "lookahead"])
def test_a_restored_run_ends_with_the_very_weights(tmp_path, optimizer):
    whole = saver(tmp_path / "whole", optimizer)
    (tmp_path / "whole").mkdir()
    fit(whole, 0, 4)
    fit(saver(tmp_path, optimizer), 0, 2)
    resumed = saver(tmp_path, optimizer)
    assert restore(resumed[1]) == 2 and len(resumed[1].timer.rows) == 2
    fit(resumed, 2, 4)
    for one, other in zip(everything(whole), everything(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [row["epoch"] for row in resumed[1].timer.rows] == [1, 2, 3, 4]


def test_the_last_row_is_saved_though_its_epoch_was_not_due(tmp_path):
    model_and_saver = saver(tmp_path)
    model_and_saver[1].timer.every = 2
    fit(model_and_saver, 0, 3)
    again = saver(tmp_path)[1]
    restore(again)
    assert [row["epoch"] for row in again.timer.rows] == [2, 3]


def test_the_clock_written_last_counts_not_the_checkpoint_s(tmp_path, monkeypatch):
    fit(saver(tmp_path), 0, 1)
    (tmp_path / "clock.json").write_text(json.dumps({"train": 5000.0}))  # as 0.1.0 wrote it
    keeper = saver(tmp_path)[1]
    restore(keeper)
    assert 5000.0 <= keeper.timer.clock.parts()["train"] < 5000.1
    lost = tf.errors.UnavailableError(None, None, "a peer is gone")
    for error, kind in ((lost, tf.errors.UnavailableError), (OSError(28, "full"), Refusal)):
        monkeypatch.setattr(keeper, "_write", Mock(side_effect=error))
        with pytest.raises(kind):
            keeper._save(9)


DAMAGED = (None, b"", b"[]", b"null", b'{"train":"x"}', b'{"train":NaN}', b'{"train":1e400}')


def test_a_clock_that_is_gone_or_damaged_goes_on_from_the_checkpoint_s(tmp_path, capsys):
    fit(saver(tmp_path), 0, 1)
    spent = json.loads((tmp_path / "checkpoint-1/state.json").read_text())["clock"]
    assert spent["compile"] > 0
    for content in DAMAGED:
        (tmp_path / "clock.json").unlink(missing_ok=True)
        if content is not None:
            (tmp_path / "clock.json").write_bytes(content)
        folder = run_folder.RunFolder(tmp_path, RECIPE)
        assert folder.read_clock(folder.newest()) == spent, content
        assert files.read_json(tmp_path / "clock.json") == spent  # a finished run's entry reads it
        assert "the clock goes on from the checkpoint's" in capsys.readouterr().err


def test_a_clock_of_another_content_than_was_written_does_not_count(tmp_path, capsys):
    fit(saver(tmp_path), 0, 1)
    folder, path = run_folder.RunFolder(tmp_path, RECIPE), tmp_path / "clock.json"
    (tmp_path / "run.json").touch()
    folder.write_clock(Clock({"train": 7000.0}))
    path.write_text(path.read_text().replace("7000", "9000"))
    assert folder.read_clock(folder.newest()).get("train", 0) < 1
    assert "checksum differs" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["flip", "edited", "unlink"])
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path, capsys, damage):
    fit(saver(tmp_path), 0, 2)
    path = tmp_path / "checkpoint-2"
    file = next(path.glob("*.data*"))
    content, state = file.read_bytes(), path / "state.json"
    if damage == "flip":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "edited":
        state.write_text(state.read_text().replace(f'"{METRIC}": 1', f'"{METRIC}": 99'))
    else:
        file.unlink()
    keeper = saver(tmp_path)
    assert restore(keeper[1]) == 1 and len(keeper[1].timer.rows) == 1
    error = capsys.readouterr().err
    assert "checkpoint-2" in error and "passed over" in error
    fit(keeper, 1, 2)  # the damaged one gives way
    assert restore(saver(tmp_path)[1]) == 2


def test_checkpoints_that_are_all_damaged_are_refused(tmp_path):
    fit(saver(tmp_path), 0, 2)
    for state in tmp_path.glob("*/state.json"):
        state.write_text('{"rows":[],"step":-1}')
    with pytest.raises(Refusal, match="no checkpoint in it is whole"):
        restore(saver(tmp_path)[1])


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    fit(saver(tmp_path), 0, 1)
    with pytest.raises(Refusal, match="checkpoint-1: damaged or of another model"):
        restore(saver(tmp_path, units=5)[1])


def test_files_of_strange_kinds_are_one_line_or_swept_away(tmp_path):
    run_folder.claim(tmp_path, RECIPE).release()
    (tmp_path / ".checkpoint-x").touch()
    (tmp_path / "checkpoint-7").touch()
    (tmp_path / "checkpoint-x").mkdir()
    folder = run_folder.claim(tmp_path, RECIPE)
    folder.release()
    assert not (tmp_path / ".checkpoint-x").exists()
    with pytest.raises(Refusal, match="no checkpoint in it is whole"):
        folder.newest()
    os.mkfifo(tmp_path / "clock.json")
    with pytest.raises(Refusal, match="clock.json: should be a file"):
        run_folder.claim(tmp_path, RECIPE)


def test_a_checkpoint_holds_only_regular_files_of_its_own(tmp_path):
    fit(saver(tmp_path), 0, 1)
    folder = tmp_path / "checkpoint-1"
    state = files.read_json(folder / run_folder.STATE)
    files.write_json(folder / run_folder.STATE, {**state, "files": {"/dev/zero": ""}})
    with pytest.raises(Refusal, match="checkpoint-1: has no /dev/zero; should hold what"):
        restore(saver(tmp_path)[1])
    files.write_json(folder / run_folder.STATE, {**state, "files": {}})
    (folder / "variables.index").unlink()
    os.mkfifo(folder / "variables.index")
    with pytest.raises(Refusal, match="variables.index: is no regular file"):
        restore(saver(tmp_path)[1])


def test_rows_are_not_written_through_a_link(tmp_path):
    run_folder.claim(tmp_path, RECIPE).release()
    (tmp_path / "somebody's").write_text("epoch\n")
    (tmp_path / run_folder.ROWS).symlink_to(tmp_path / "somebody's")
    with pytest.raises(Refusal, match="rows.tsv: should be a file; move it away"):
        run_folder.claim(tmp_path, RECIPE)


@pytest.mark.parametrize(
    ("moment", "step", "checkpoint", "rows"),
    [("on_batch_end", 9, 2, 0), ("on_epoch_end", 12, 3, 1)],
)
def test_a_run_that_a_callback_ends_is_saved(tmp_path, moment, step, checkpoint, rows):
    model, keeper = saver(tmp_path)
    keeper.timer.every, keeper.timer.last_step = 5, 100

    def stop(*_, logs=None):
        model.stop_training = keeper.timer.step == step

    fit((model, keeper), 0, 9, tf.keras.callbacks.LambdaCallback(**{moment: stop}))
    newest = keeper.folder.newest()
    assert newest.epochs == checkpoint and len(newest.state["rows"]) == rows
    assert len(keeper.timer.rows) == 1


def test_a_checkpoint_has_the_machines_that_trained(tmp_path):
    first, second = (Machine(name, "1gpu", {"python": "3.11"}) for name in ("A", "B"))
    for epochs, machine in enumerate((first, first, second)):
        model, keeper = saver(tmp_path)
        keeper.machine = machine
        if epochs:
            restore(keeper)
        fit((model, keeper), epochs, epochs + 1)
    assert keeper.machines == [first, second]
    machines = keeper.folder.newest().state["machines"]
    assert [Machine(**facts) for facts in machines] == keeper.machines
