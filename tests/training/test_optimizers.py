"""Schedules word for word, first steps by hand."""

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import optimizers


def seed_rate(step):
    """resnet_main.py's rule, word for word: 391 steps an epoch."""
    if step < 391:
        return 0.01
    if step < 91 * 391:
        return 0.1
    if step < 136 * 391:
        return 0.01
    if step < 181 * 391:
        return 0.001
    return 0.0001


@pytest.mark.parametrize("edge", [0, 1, 91, 136])
def test_the_seed_recipes_follow_the_seed_schedule(edge):
    recipe = recipes.get("cifar10/resnet56_tf")
    rate = optimizers.build(recipe, 391).learning_rate
    for step in (max(edge * 391 - 1, 0), edge * 391, edge * 391 + 1, 181 * 391 - 1):
        assert float(optimizers.factor(recipe, 391)(step)) * 0.1 == pytest.approx(seed_rate(step))
    assert float(rate) == pytest.approx(0.01)


def test_linear_scaling_multiplies_the_rate_by_the_batch():
    recipe = Recipe(batch_size=512, learning_rate=0.1, scale_learning_rate_from=128)
    assert float(optimizers.build(recipe, 98).learning_rate) == pytest.approx(0.4)


def test_cosine_warms_up_and_ends_at_zero():
    recipe = Recipe(epochs=10, schedule="cosine", schedule_epochs=(2,))
    factor = optimizers.factor(recipe, 5)
    values = [round(float(factor(step)), 4) for step in (0, 5, 10, 30, 50)]
    assert values == [0.0, 0.5, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_first_step_is_the_textbook_one(name):
    import tensorflow as tf

    weight = tf.Variable([1.0])
    recipe = Recipe(optimizer=name, learning_rate=0.5, momentum=0.9)
    optimizer = optimizers.build(recipe, 10)
    optimizer.apply_gradients([(tf.constant([0.2]), weight)])
    optimizer.apply_gradients([(tf.constant([0.2]), weight)])
    # sgd: v = 0.2, then 0.9 x 0.2 + 0.2; adam with a constant gradient steps by the rate
    wanted = 1 - 0.5 * 0.2 - 0.5 * 0.38 if name == "sgd" else 1 - 0.5 - 0.5
    assert float(weight[0]) == pytest.approx(wanted, abs=1e-4)
