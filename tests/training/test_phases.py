"""Training in phases: batch sizes, image sizes and trained weights that change within a run."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes, run_folder
from dawnbench_tf.data import dataset
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipe.schedule import Phase
from dawnbench_tf.train import train
from dawnbench_tf.training import (
    fitting,
    losses,
    optimizers,
    progress,
    schedules,
    speed_test,
    strategies,
)
from tests.training import interruption, source_steps
from tests.training.test_strategies import TWO, finish, same_curve, start

RECIPE = recipes.get(
    "digits/resnet8",
    threshold=100,
    epochs=3,
    batch_size=128,
    later_batch_sizes=(256, 64),
    batch_size_epochs=(1, 2),
    precision="float64",
    schedule="constant",
    learning_rate=2**-8,  # exact in float32, as optimizers hold it
    weight_decay=0,
    train_examples=512,
    image_sizes=(8,),
    average=0.9,
    average_every=3,
)
FLAGS = (
    *("--train_examples=256", "--steps_per_execution=1", "--precision=float64", "--epochs=3"),
    *("--batch_size=64", "--later_batch_sizes=32,128", "--batch_size_epochs=1,2"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(RECIPE, output=tmp_path_factory.mktemp("phases") / "run")


def test_epochs_have_the_steps_of_their_batch_size():
    data = dataset.open(RECIPE)
    assert data.epoch_steps == [4, 2, 8] and RECIPE.total_steps(data.epoch_steps) == 14
    assert [data.in_epoch(epoch).steps_per_epoch for epoch in range(3)] == [4, 2, 8]
    assert RECIPE.phases(1) == [Phase(1, 2, 256), Phase(2, 3, 64)]
    for epoch, size in enumerate((128, 256, 64)):
        assert {images.shape[0] for images, _ in data.train(epoch)} == {size}


def test_a_run_equals_a_loop_with_plain_gradient_descent(trained):
    """The weights are those of a written-out loop over `data.train`: momentum and an average."""
    data = dataset.open(RECIPE)
    model = fitting.build(data)  # for its initial weights
    velocities = [np.zeros(weight.shape) for weight in model.trainable_variables]
    momentum, rate = RECIPE.optimizer.momentum, RECIPE.optimizer.learning_rate
    averages, step = model.get_weights(), 0

    @tf.function(reduce_retracing=True)
    def gradients(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        return tape.gradient(loss, model.trainable_variables)

    for epoch in range(3):
        for batch in data.train(epoch):
            pairs = zip(gradients(*batch), model.trainable_variables, strict=True)
            for index, (gradient, weight) in enumerate(pairs):
                velocities[index] = momentum * velocities[index] + gradient.numpy()
                weight.assign_sub(rate * velocities[index])
            step += 1
            if step % 3 == 0:  # also across the phases, of 4, 2 and 8 steps
                pairs = zip(averages, model.get_weights(), strict=True)
                averages = [0.9**3 * average + (1 - 0.9**3) * weight for average, weight in pairs]
    for ours, loop in zip(trained.model().get_weights(), averages, strict=True):
        np.testing.assert_allclose(ours, loop, rtol=1e-5, atol=1e-6)


def test_rows_and_checkpoints_count_epochs(trained):
    assert [row["epoch"] for row in trained.rows] == [1, 2, 3]
    assert [epochs for epochs, _ in run_folder.checkpoints(trained.folder)] == [2, 3]
    assert trained.clock["train"] > 0 and trained.used["examplesPerSecond"] > 0


@pytest.mark.long
def test_a_run_goes_on_at_a_change_with_equal_rows(trained, tmp_path):
    interruption.check_continued(trained, tmp_path)


@pytest.mark.long
def test_a_speed_test_times_the_first_batch_size():
    test = speed_test.measure(RECIPE, RunOptions(max_steps=6))  # its epochs have 4 steps
    assert test.steps == 6 and test.phases[0].steps_per_epoch == 4
    assert test.phases[0].end == 1 and "1 of 3 epochs " in str(test)
    assert test.seconds == pytest.approx(4 * test.phases[0].seconds_per_step)


@pytest.mark.long
def test_two_devices_give_the_single_device_s_curve(tmp_path):
    alone, two = start(tmp_path / "1", *FLAGS), start(tmp_path / "2", *FLAGS, *TWO)
    same_curve(finish(two), finish(alone), steps=4 + 8 + 2)


def test_the_linear_scaling_rule_follows_the_batch_size():
    recipe = RECIPE.with_values(scale_learning_rate_from=64, learning_rate=0.1)
    rate = optimizers.build(recipe, [4, 2, 8]).learning_rate
    assert recipe.scaled_learning_rate == pytest.approx(0.2)
    factor = schedules.factor(recipe, [4, 2, 8])
    assert float(rate) == pytest.approx(0.2)
    rates = [0.2 * float(factor(step)) for step in (3, 4, 5, 6)]
    assert rates == pytest.approx([0.2, 0.4, 0.4, 0.1])


def test_the_summary_has_every_change():
    changes = {"later_batch_sizes": (64, 128), "batch_size_epochs": (1, 2)}
    data = dataset.open(RECIPE.with_values(batch_size=128, **changes))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile()
    text = progress.summary(data, model, "here")
    assert "4 steps of 128, then 8 steps of 64, then 4 steps of 128" in text
    sizes = {"image_sizes": (16, 32), "image_size_epochs": (1,)}
    same = dataset.open(recipes.get("digits/resnet8", train_examples=512, **sizes))
    assert progress.summary(same, model, "here").count("steps of") == 1


def test_images_of_one_size_grow_within_a_run(tmp_path):
    sizes = {"image_sizes": (16, 24, 32), "image_size_epochs": (1, 2), "batch_size": 64}
    short = {"threshold": 100, "epochs": 3, "train_examples": 256}
    recipe = recipes.get("digits/resnet8", **short, **sizes).with_values(eval_from=2)
    data = dataset.open(recipe)
    assert recipe.phases() == [Phase(0, 1, 64), Phase(1, 2, 64), Phase(2, 3, 64)]
    whole = dataset.open(recipe.with_values(image_sizes=(), image_size_epochs=()))
    for epoch, side in enumerate((16, 24, 32)):
        pairs = zip(data.train(epoch), whole.train(epoch), strict=True)
        for (images, labels), (expected, same) in pairs:
            resized = tf.image.resize(expected, (side, side), antialias=True)
            np.testing.assert_allclose(images, resized, atol=1e-5)
            np.testing.assert_array_equal(labels, same)

    run = train(recipe, output=tmp_path / "run")
    assert [row["epoch"] for row in run.rows] == [2, 3]
    assert run.model().input_shape == (None, 32, 32, 3)


@pytest.mark.long
def test_freezing_the_whitening_s_bias_changes_no_weight(tmp_path, monkeypatch):
    """Its rate is 0 from one and a half epochs on; so its layer is frozen from the third epoch."""
    settings = {"threshold": 100, "epochs": 3, "train_examples": 48, "batch_size": 16}
    settings |= {"precision": "float64", "whitening_bias_epochs": 1.5, "rate_in_velocity": False}
    settings |= {"learning_rate": 1e-5, "average": 0.95, "average_every": 2}
    recipe = replace(recipes.get("digits/resnet8", **settings), model="airbench94")
    strategy = tf.distribute.get_strategy()
    assert fitting.phases(recipe, 0, strategy) == [Phase(0, 2, 16), Phase(2, 3, 16)]
    with monkeypatch.context() as patch:
        patch.setattr(strategies, "accelerators", lambda _: ("GPU", 1))
        assert fitting.phases(recipe, 0, strategy) == recipe.phases() == [Phase(0, 3, 16)]
    biases = []
    apply = tf.keras.optimizers.Optimizer.apply_gradients

    def watch(optimizer, pairs, **kwargs):
        pairs = list(pairs)
        biases.append(sum(losses.is_whitening_bias(weight) for _, weight in pairs))
        return apply(optimizer, pairs, **kwargs)

    monkeypatch.setattr(tf.keras.optimizers.Optimizer, "apply_gradients", watch)
    with source_steps.building(32, {"widths": (8, 16, 16)}):
        frozen = train(recipe, output=tmp_path / "frozen")
    assert (biases[0], biases[-1]) == (1, 0)
    traces = len(biases)
    anew = lambda model, *_: setattr(model, "train_function", None)  # noqa: E731
    monkeypatch.setattr(fitting, "begin_phase", anew)
    with source_steps.building(32, {"widths": (8, 16, 16)}):
        trained = train(recipe, output=tmp_path / "trained")
    assert set(biases[traces:]) == {1}
    weights = [run_folder.read_weights(run.folder) for run in (frozen, trained)]
    for ours, expected in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
