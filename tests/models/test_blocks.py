"""Stochastic depth: what is kept, what is skipped, what is expected."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import blocks

IMAGES = np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype("f")


def branch():
    inputs = tf.keras.Input((8, 8, 3))
    outputs = tf.keras.layers.BatchNormalization()(tf.keras.layers.Conv2D(5, 3, 2, "same")(inputs))
    return tf.keras.Model(inputs, outputs)


def test_at_inference_the_branch_is_whole_and_unscaled():
    inner = branch()
    layer = blocks.StochasticDepth(inner, 0.3)
    np.testing.assert_array_equal(layer(IMAGES, training=False), inner(IMAGES, training=False))


def test_a_dropped_branch_does_no_work():
    inner = branch()
    layer = blocks.StochasticDepth(inner, 1e-9)
    before = inner.get_weights()
    with tf.GradientTape() as tape:
        outputs = tf.function(layer)(tf.constant(IMAGES), training=True)
    assert outputs.shape == (4, 4, 4, 5) and not outputs.numpy().any()
    for old, new in zip(before, inner.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)  # BN saw no batch: its statistics have not moved
    assert not any(g.numpy().any() for g in tape.gradient(outputs, inner.trainable_variables))


def test_a_kept_branch_is_divided_by_its_survival():
    inner = branch()
    layer = blocks.StochasticDepth(inner, 0.5)
    wanted = inner(IMAGES, training=True).numpy() / 0.5
    outputs = [layer(IMAGES, training=True).numpy() for _ in range(20)]
    kept = [output for output in outputs if output.any()]
    assert 0 < len(kept) < 20
    for output in kept:
        np.testing.assert_allclose(output, wanted, rtol=1e-5)


def test_the_mean_over_draws_is_the_full_branch():
    inputs = tf.keras.Input((3,))
    inner = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))  # linear, no statistics
    layer = tf.function(blocks.StochasticDepth(inner, 0.7))
    x = tf.constant([[1.0, 2.0, 3.0]])
    draws = np.stack([layer(x, training=True).numpy() for _ in range(2000)])
    wanted = inner(x).numpy()
    error = np.abs(wanted) * np.sqrt(
        0.3 / 0.7 / 2000
    )  # standard error of the mean of Bernoulli / p
    assert (np.abs(draws.mean(0) - wanted) < 4 * error).all()


def test_survival_falls_linearly_to_the_last_unit():
    model = models.build("resnet56_stochastic")
    found = [layer.survival for layer in model.layers if isinstance(layer, blocks.StochasticDepth)]
    np.testing.assert_allclose(found, [1 - unit / 27 * 0.5 for unit in range(1, 28)])


def test_survival_of_one_is_exactly_the_plain_network():
    names = [
        [type(layer).__name__ for layer in models.build("resnet56_stochastic", **args).layers]
        for args in ({"depth": 8, "final_survival": 1.0}, {"depth": 8})
    ]
    assert "StochasticDepth" not in names[0] and "StochasticDepth" in names[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_drops_the_same_blocks(seed):
    def losses():
        tf.keras.utils.set_random_seed(seed)
        model = tf.function(models.build("resnet56_stochastic", depth=20, input_shape=(8, 8, 3)))
        return [float(tf.reduce_sum(model(IMAGES, training=True))) for _ in range(5)]

    assert losses() == losses()


def test_a_model_with_skipped_blocks_comes_back_from_its_configuration():
    model = models.build("resnet56_stochastic", depth=8, input_shape=(8, 8, 3))
    again = tf.keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(model(IMAGES), again(IMAGES))
