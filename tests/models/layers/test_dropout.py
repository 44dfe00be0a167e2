"""Dropout's rate and gradient; its random state is saved in checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers.dropout import Dropout

pytestmark = pytest.mark.both_kerases


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_the_rate_is_dropped_and_the_rest_is_scaled(rate):
    tf.keras.utils.set_random_seed(0)
    x = tf.ones([100, 10, 101])
    outputs = Dropout(rate)(x, training=True).numpy()
    assert np.unique(outputs) == pytest.approx([0, 1 / (1 - rate)], rel=1e-3)
    assert np.mean(outputs == 0) == pytest.approx(rate, abs=0.01)
    for axis in range(3):  # no two slices are equal
        assert np.unique(outputs, axis=axis).shape == outputs.shape
    np.testing.assert_array_equal(Dropout(rate)(x, training=False), x)
    np.testing.assert_array_equal(Dropout(rate)(x), x)


def test_a_rate_is_from_0_to_below_1():
    for rate in (1.5, 1.0, -0.2):
        with pytest.raises(ValueError, match=r"`rate` should be in \[0, 1\). Received: rate="):
            Dropout(rate)
    assert np.mean(Dropout(0.999995)(tf.ones([100]), training=True) == 0) > 0.9


def test_one_draw_is_shared_along_shared_axes():
    outputs = Dropout(0.5, shared=(1,))(tf.ones([40, 7, 30]), training=True).numpy()
    assert (outputs == outputs[:, :1]).all() and 0.4 < np.mean(outputs == 0) < 0.6
    draws = [Dropout(0.5, (0, 1))(tf.ones([3, 4]), training=True).numpy() for _ in range(20)]
    assert all(len(np.unique(draw)) == 1 for draw in draws) and len(np.unique(draws)) == 2


def test_the_gradient_is_that_of_the_kept_values():
    x, layer = tf.random.normal([50, 20]), Dropout(0.3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = layer(x, training=True)
    gradient = tape.gradient(outputs, x)
    np.testing.assert_allclose(outputs, x * gradient, rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_each_call_draws_anew_and_a_checkpoint_restores_the_state(tmp_path, compiled):
    layer, x = Dropout(0.5), tf.ones([8, 9])
    call = tf.function(lambda x: layer(x, training=True), jit_compile=compiled)
    first, second = call(x), call(x)
    assert np.any(first != second)
    path = tf.train.Checkpoint(layer=layer).write(str(tmp_path / "variables"))
    third = call(x)
    again = Dropout(0.5)
    tf.train.Checkpoint(layer=again).read(path).assert_consumed()
    np.testing.assert_array_equal(again(x, training=True), third)
    assert not layer.weights  # the state is not among a model's weights


def test_bfloat16_stays_bfloat16():
    x = tf.ones([4, 5], tf.bfloat16)
    assert Dropout(0.5, dtype="mixed_bfloat16")(x, training=True).dtype == tf.bfloat16
