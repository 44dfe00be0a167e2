"""What a folder refuses, and what comes back out of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import checkpoints
from dawnbench_tf.tta import TimeToAccuracy

RECIPE = recipes.get("digits/resnet8")
X, Y = np.random.default_rng(0).normal(size=(32, 4)).astype("f"), np.arange(32) % 2


def saver(path, optimizer="adam", units=3):
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(units, input_shape=(4,)), tf.keras.layers.BatchNormalization()]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(2)])
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    timer = TimeToAccuracy(2, "top1", evaluate=lambda: {"top1": 1})
    return model, checkpoints.Saver(checkpoints.Folder(path), model, timer)


def fit(model_and_saver, first, epochs):
    model, keeper = model_and_saver
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    callbacks = [keeper.timer, keeper]
    return model.fit(data, initial_epoch=first, epochs=epochs, verbose=0, callbacks=callbacks)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_restored_run_ends_with_the_very_weights(tmp_path, optimizer):
    (tmp_path / "whole").mkdir()
    whole = saver(tmp_path / "whole", optimizer)
    fit(whole, 0, 4)
    fit(saver(tmp_path, optimizer), 0, 2)
    resumed = saver(tmp_path, optimizer)
    assert resumed[1].restore() == 2 and len(resumed[1].timer.rows) == 2
    fit(resumed, 2, 4)
    for one, other in zip(whole[0].get_weights(), resumed[0].get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [row["epoch"] for row in resumed[1].timer.rows] == [1, 2, 3, 4]


def test_the_last_row_is_saved_though_its_epoch_was_not_due(tmp_path):
    model_and_saver = saver(tmp_path)
    model_and_saver[1].timer.every = 2
    fit(model_and_saver, 0, 3)
    again = saver(tmp_path)[1]
    again.restore()
    assert [row["epoch"] for row in again.timer.rows] == [2, 3]


def test_half_a_checkpoint_does_not_count(tmp_path):
    fit(saver(tmp_path), 0, 2)
    (tmp_path / "checkpoint-2").rename(tmp_path / ".checkpoint-xyz")  # killed before the rename
    assert saver(tmp_path)[1].restore() == 1


def test_the_clock_written_last_counts_not_the_checkpoint_s(tmp_path):
    fit(saver(tmp_path), 0, 1)
    (tmp_path / "clock.json").write_text(json.dumps({"train": 5000.0}))
    keeper = saver(tmp_path)[1]
    keeper.restore()
    assert keeper.timer.clock.parts()["train"] == 5000.0


@pytest.mark.parametrize("damage", ["truncate", "other model", "state"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    fit(saver(tmp_path), 0, 1)
    path = tmp_path / "checkpoint-1"
    if damage == "truncate":
        file = next(path.glob("*.data*"))
        file.write_bytes(file.read_bytes()[:-400])
    if damage == "state":
        (path / "state.json").write_text("{")
    with pytest.raises(Refusal, match="checkpoint-1.*: (damaged|can't be read)"):
        saver(tmp_path, units=5 if damage == "other model" else 3)[1].restore()


def test_only_the_last_two_checkpoints_stay(tmp_path):
    fit(saver(tmp_path), 0, 4)
    assert [epochs for epochs, _ in checkpoints.Folder(tmp_path).checkpoints()] == [3, 4]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(Refusal, match="holds other files and no run"):
        checkpoints.claim(tmp_path, RECIPE)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["thesis.txt"]


def test_the_same_recipe_is_let_in_and_another_is_not(tmp_path):
    checkpoints.claim(tmp_path, RECIPE)
    for lock in tmp_path.glob(".lock"):
        lock.unlink()  # this process still holds the first claim's
    checkpoints.claim(tmp_path, replace(RECIPE, evidence=()))
    for lock in tmp_path.glob(".lock"):
        lock.unlink()
    with pytest.raises(Refusal, match="with seed=0, not 1; name another folder"):
        checkpoints.claim(tmp_path, replace(RECIPE, seed=1))
