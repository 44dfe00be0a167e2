"""Fine-tuning: what is loaded, what stays, and how far each part moves in a step."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.models import parts
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.train import train
from dawnbench_tf.training import fitting
from tests.models.weights.test_resnets import resnet8, write

NAME = "resnet8_v1_proj"


@pytest.fixture
def weights(tmp_path):
    """A published file with 100 classes."""
    values = resnet8()
    rng = np.random.default_rng(3)
    values |= {"fc.weight": rng.normal(size=(100, 64)).astype("f"), "fc.bias": np.ones(100, "f")}
    return write(tmp_path / "resnet.safetensors", values)


def recipe(weights, **changes):
    tuned = {"model": NAME, "pretrained": str(weights), "batch_size": 16, "epochs": 2}
    row = recipes.get("digits/resnet8", **tuned, synthetic="decoded")
    return row.with_values(schedule="constant", **changes)


def built(*arguments, **changes):
    return fitting.build(dataset.open(recipe(*arguments, **changes)))


def values_of(part):
    return [np.array(weight) for layer in part for weight in layer.weights]


def test_all_but_a_head_of_other_classes_is_loaded(weights):
    model, whole = built(weights), models.build(NAME, num_classes=100)
    assert models.load_published(whole, weights)
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("f")
    features = [tf.keras.Model(m.input, m.get_layer("features").output) for m in (model, whole)]
    np.testing.assert_array_equal(*(one(images) for one in features))
    assert model.output_shape == (None, 10)
    assert models.load_published(models.build(NAME), weights, new_head=True) is False
    with pytest.raises(ValueError, match="build with num_classes=100"):
        models.load_published(models.build(NAME), weights)


def test_frozen_parts_stay_bit_by_bit_and_infer(weights):
    changes = {"frozen_parts": 2, "average": 0.9, "average_every": 2}
    model = built(weights, **changes)
    data = dataset.open(recipe(weights, **changes))
    before = [values_of(part) for part in parts.split(model)]
    model.fit(data.training_batches(), steps_per_epoch=3, epochs=1, verbose=0)
    after = [values_of(part) for part in parts.split(model)]
    same = [all(map(np.array_equal, *pair)) for pair in zip(before, after, strict=True)]
    assert same == [True, True, False, False, False]
    # What training's forward pass gives for the frozen parts is what inference gives.
    images = np.random.default_rng(0).normal(size=(4, 32, 32, 3)).astype("f")
    first = tf.keras.Model(model.input, model.get_layer("stage1").output)
    np.testing.assert_array_equal(first(images, training=True), first(images, training=False))


NAMES = ("adamw", "rmsprop", "adamax", "adadelta")
OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in NAMES]


@pytest.mark.parametrize("name", ["sgd", "adam", *OTHERS])
def test_each_part_moves_as_far_as_its_multiplier_says(weights, name):
    """One step of the same gradients, with and without multipliers."""
    changes = {"optimizer": name, "weight_decay": 0.01, "rate_in_velocity": False}
    one = built(weights, **changes)
    other = built(weights, **changes, backbone_rate=0.5, layer_rate_decay=0.25)
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=w.shape).astype("f") for w in one.trainable_variables]
    moves = []
    for model in (one, other):
        begin = [values_of(part) for part in parts.split(model)]
        pairs = zip(map(tf.constant, gradients), model.trainable_variables, strict=True)
        model.optimizer.apply_gradients(pairs)
        ends = [values_of(part) for part in parts.split(model)]
        moves.append([[*map(np.subtract, b, a)] for a, b in zip(begin, ends, strict=True)])
    for distance, pair in enumerate(zip(moves[0][::-1], moves[1][::-1], strict=True)):
        multiplier = 0.5 * 0.25**distance if distance else 1.0
        for move, scaled in zip(*pair, strict=True):
            error = np.abs(scaled - multiplier * move).max()
            assert error < 2e-6 + 1e-3 * np.abs(move).max()


def test_the_checkpoint_wins_over_a_file_that_is_gone(weights, tmp_path):
    tuned = replace(recipe(weights, frozen_parts=1), synthetic=None, batch_size=512)
    tuned = tuned.with_values(threshold=99.9, image_sizes=(8,))
    options = RunOptions(peak_tflops=1.0)
    short = train(replace(tuned, epochs=1), options, tmp_path / "run")
    weights.unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")  # this process holds the other's lock
    longer = train(tuned, options, tmp_path / "copy", replaced=["epochs"])
    assert [row["epoch"] for row in longer.rows] == [1, 2] and longer.rows[0] == short.rows[0]
    assert longer.entry.misc["violations"][-1].startswith("started from pretrained weights")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pretrained": "gone.pth"}, "--pretrained=gone.pth: can't be read (No such file"),
        ({"model": "resnet20_v1_proj"}, "it has 9 layers of kind convolution, the network 21"),
        ({"frozen_parts": 5}, "--frozen_parts=5: resnet8_v1_proj has 4 parts before its head"),
        ({"pretrained": "", "frozen_parts": 1}, "--frozen_parts=1: requires --pretrained"),
        ({"pretrained": "", "backbone_rate": 0.1}, "--backbone_rate=0.1: requires --pretrained"),
    ],
)
def test_bad_settings_are_one_line_and_leave_no_folder(weights, tmp_path, changes, words):
    with pytest.raises(Refusal, match=re.escape(words)):
        train(recipe(weights, **changes), RunOptions(peak_tflops=1.0), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_file_names_the_flag(weights, tmp_path):
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(Refusal, match="^--pretrained=.*: .* should contain published weights of"):
        built(weights)
