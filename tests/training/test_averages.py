"""Averages of weights and statistics, compared with the rule in plain Python."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.recipe import Average, Optimizer, Recipe
from dawnbench_tf.training import averages, optimizers

STEPS = 10
GRADIENTS = (0.2, -0.1, 0.4, 0.3, 0.2, -0.5, 0.1, 0.6, -0.2, 0.3)
STATISTICS = range(STEPS)


def tiny(recipe):
    """Returns a model of one weight and one statistic, with a built optimizer."""
    inputs = tf.keras.Input([1])
    norm = tf.keras.layers.BatchNormalization(center=False, scale=False)
    model = tf.keras.Model(inputs, norm(tf.keras.layers.Dense(1, use_bias=False)(inputs)))
    model.compile(optimizers.build(recipe, [STEPS], model))
    averages.inner_optimizer(model).build(model.trainable_variables)
    return model


def rule(recipe, weight, statistic):
    """Yields (weight, its average, average of the statistic) after each step, by the sources."""
    average, statistic_average, velocity = weight, statistic, 0.0
    for step, (gradient, moved) in enumerate(zip(GRADIENTS, STATISTICS, strict=True), 1):
        statistic = moved
        velocity = 0.9 * velocity + gradient
        weight -= 0.5 * velocity
        if step % recipe.average.every == 0:
            kept = recipe.average.decay
            if recipe.average.ramp:  # tf.train.ExponentialMovingAverage's num_updates
                kept = min(kept, (1 + step) / (10 + step))
            kept **= recipe.average.every
            if recipe.average.lookahead:
                kept *= (step / STEPS) ** 3
            average += (weight - average) * (1 - kept)  # torch.lerp
            statistic_average += (statistic - statistic_average) * (1 - kept)
            if recipe.average.lookahead:
                weight, statistic = average, statistic_average
        yield weight, average, statistic_average


@pytest.mark.parametrize("options", [{}, {"lookahead": True}, {"ramp": True}])
@pytest.mark.parametrize("every", [1, 3])
def test_averages_follow_their_rule(every, options):
    average = Average(decay=0.5, every=every, **options)
    recipe = Recipe(optimizer=Optimizer(learning_rate=0.5, momentum=0.9), average=average)
    model = tiny(recipe)
    (weight,), mean = model.trainable_variables, model.non_trainable_variables[0]
    wanted = rule(recipe, float(weight[0, 0]), float(mean[0]))

    @tf.function
    def step(gradient, moved):
        mean.assign([moved])
        model.optimizer.apply_gradients([([[gradient]], weight)])

    inputs = zip(GRADIENTS, STATISTICS, wanted, strict=True)
    for gradient, moved, (after, average, mean_average) in inputs:
        step(tf.constant(gradient), tf.constant(float(moved)))
        assert float(weight[0, 0]) == pytest.approx(after, rel=1e-5, abs=1e-6)
        with averages.use_averages(model, tf.distribute.get_strategy()):
            assert float(weight[0, 0]) == pytest.approx(average, rel=1e-5, abs=1e-6)
            assert float(mean[0]) == pytest.approx(mean_average, rel=1e-5, abs=1e-6)
        assert float(weight[0, 0]) == pytest.approx(after, rel=1e-5, abs=1e-6)
    kept = {id(v): value for v, value in zip(model.weights, averages.values(model), strict=True)}
    assert float(kept[id(weight)][0, 0]) == pytest.approx(average, rel=1e-5, abs=1e-6)
    assert float(kept[id(mean)][0]) == pytest.approx(mean_average, rel=1e-5, abs=1e-6)


def test_they_follow_another_optimizer_s_steps():
    model = tiny(Recipe(optimizer=Optimizer(name="adam"), average=Average(decay=0.5)))
    (weight,) = model.trainable_variables
    before = weight.numpy()
    model.optimizer.apply_gradients([(tf.ones([1, 1]), weight)])
    with averages.use_averages(model, tf.distribute.get_strategy()):
        average = weight.numpy()
    assert weight.numpy() != before
    np.testing.assert_allclose(average, (before + weight.numpy()) / 2, rtol=1e-6)


def test_without_them_nothing_changes():
    model = tiny(Recipe())
    with averages.use_averages(model, tf.distribute.get_strategy()):
        for variable, value in zip(model.weights, averages.values(model), strict=True):
            np.testing.assert_array_equal(variable, value)
    assert len(model.optimizer.variables) == 2  # the step, a velocity
