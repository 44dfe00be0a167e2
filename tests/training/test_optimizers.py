"""Schedules, compared with the sources' rules; first steps of optimizers, computed by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Optimizer, Recipe, Schedule
from dawnbench_tf.recipe.optimizer import USED_BY
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import losses, optimizers, schedules


def seed_rate(step):
    """resnet_main.py's rule: epochs of 391 steps from which a rate holds."""
    begins = ((136, 0.001), (91, 0.01), (1, 0.1), (0, 0.01))
    return next(rate for epoch, rate in begins if step >= epoch * 391)


def test_the_seed_recipes_follow_the_seed_schedule():
    recipe = recipes.get("cifar10/resnet56_tf")
    factor = schedules.factor(recipe, [391])
    steps = [epoch * 391 + step for epoch in (1, 91, 136) for step in (-1, 0, 1)]
    for step in (0, 1, *steps, 181 * 391 - 1):
        assert float(factor(step)) * 0.1 == pytest.approx(seed_rate(step))
    assert float(optimizers.build(recipe, [391]).learning_rate) == pytest.approx(0.01)


def test_amoebanet_warms_up_in_a_third_of_the_first_epoch():
    recipe = recipes.get("imagenet/amoebanet_d")
    peak = 0.64 * 1024 / 256  # tensorflow/tpu's learning rate, linear in the batch size
    factor = schedules.factor(recipe, [1000])
    rates = [float(factor(step)) * recipe.scaled_learning_rate for step in (0, 175, 350, 999)]
    assert rates == pytest.approx([0, peak / 2, peak, peak])  # 0.35 epochs; half of it at 0.175


def test_cosine_warms_up_and_ends_at_zero():
    recipe = Recipe(epochs=10, schedule=Schedule(form="cosine", epochs=(2,)))
    factor = schedules.factor(recipe, [5])
    values = [round(float(factor(step)), 4) for step in (0, 5, 10, 30, 50)]
    assert values == [0.0, 0.5, 1.0, 0.5, 0.0]
    whole_warmup = schedules.factor(recipe.with_values(epochs=2), [5])
    assert whole_warmup(np.array([0, 5, 10])).tolist() == [0.0, 0.5, 1.0]
    two_on_a_step = Recipe(epochs=3, schedule=Schedule("linear", (1, 1.7, 3), (0, 1, 0)))
    assert schedules.factor(two_on_a_step, [1])(np.arange(3)).tolist() == [0.0, 1.0, 0.5]


def test_quadratic_is_tensorflows_polynomial_of_the_second_power():
    recipe = Recipe(epochs=10, schedule=Schedule(form="quadratic", epochs=(2,)))
    factor = schedules.factor(recipe, [5])
    decay = tf.keras.optimizers.schedules.PolynomialDecay(1.0, 40, 0.0, power=2.0)
    assert [float(factor(step)) for step in (0, 5)] == [0, 0.5]
    for step in range(10, 51, 8):
        assert float(factor(step)) == pytest.approx(float(decay(step - 10)), abs=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_lars_is_that_of_its_paper(nesterov):
    """You et al. 2017, algorithm 1: the rate is trust |w| / (|g| + d |w|), the step's g + d w."""
    rng, trust, decay = np.random.default_rng(0), 0.01, 0.1
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(2)])
    model.build((None, 3))
    model.layers[0].bias.assign(rng.normal(size=4))
    model.layers[1].kernel.assign(np.zeros((4, 2)))  # without a norm: the plain rate
    own = {"learning_rate": 3.0, "trust": trust, "nesterov": nesterov, "weight_decay": decay}
    optimizer = Optimizer(name="lars", **own)
    recipe = Recipe(epochs=4, optimizer=optimizer, schedule=Schedule(form="quadratic"))
    losses.add_weight_decay(model, recipe)
    assert not model.losses
    ours, weights = optimizers.build(recipe, [3], model), model.trainable_variables
    wanted = [weight.numpy().astype(float) for weight in weights]
    momenta = [np.zeros(w.shape) for w in wanted]
    for step in range(10):
        gradients = [rng.normal(size=w.shape) for w in wanted]
        tensors = [tf.constant(g, tf.float32) for g in gradients]
        ours.apply_gradients(zip(tensors, weights, strict=True))
        for w, g, v, weight in zip(wanted, gradients, momenta, weights, strict=True):
            rate = 3.0 * (1 - step / 12) ** 2
            if w.ndim > 1:
                norm = np.linalg.norm(w)
                rate *= trust * norm / (np.linalg.norm(g) + decay * norm) if norm else 1.0
                g = g + decay * w
            v[:] = 0.9 * v - rate * g
            w += 0.9 * v - rate * g if nesterov else v
            np.testing.assert_allclose(weight, w, rtol=2e-5, atol=1e-6)


def test_adam_is_the_textbook_s_in_float64():
    """The betas are not rounded to float32."""
    weight, w, mean, square = tf.Variable([1.0], dtype=tf.float64), 1.0, 0.0, 0.0
    recipe = Recipe(optimizer=Optimizer(name="adam", learning_rate=0.5, momentum=0.9))
    optimizer = optimizers.build(recipe, [10])
    for step, g in enumerate((0.2, -0.1, 0.4), 1):
        optimizer.apply_gradients([(tf.constant([g], tf.float64), weight)])
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        rate = 0.5 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
        w -= rate * mean / (square**0.5 + optimizer.epsilon)
    assert float(weight[0]) == pytest.approx(w, rel=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("rate_in_velocity", [False, True])
def test_momentum_where_the_rate_changes(nesterov, rate_in_velocity):
    """PyTorch's documented rule, and Keras's, in plain Python."""
    own = Optimizer(learning_rate=0.5, nesterov=nesterov, rate_in_velocity=rate_in_velocity)
    schedule = Schedule(form="steps", epochs=(1, 2), factors=(1, 0.1, 0.01))
    recipe = Recipe(epochs=3, optimizer=own, schedule=schedule)
    weight, optimizer = tf.Variable([1.0]), optimizers.build(recipe, [2])
    wanted, velocity = 1.0, 0.0
    for step, gradient in enumerate((0.2, -0.1, 0.4, 0.3, 0.2, -0.5)):
        optimizer.apply_gradients([(tf.constant([gradient]), weight)])
        rate = 0.5 * 0.1 ** (step // 2)
        if rate_in_velocity:
            velocity = 0.9 * velocity - rate * gradient
            wanted += 0.9 * velocity - rate * gradient if nesterov else velocity
        else:
            velocity = 0.9 * velocity + gradient
            wanted -= rate * (0.9 * velocity + gradient if nesterov else velocity)
        assert float(weight[0]) == pytest.approx(wanted, rel=1e-5)


def test_shifts_and_the_whitening_s_bias_have_rates_of_their_own():
    names = ("conv2d/kernel", "batch_normalization/beta", "whitening/bias", "dense/bias")
    weights = [tf.Variable([0.0], name=name) for name in names]
    model = SimpleNamespace(trainable_variables=weights, non_trainable_variables=[], layers=[])
    own = Optimizer(learning_rate=1.0, momentum=0.0, shift_rate=64, whitening_bias_epochs=1.5)
    pairs, biases = [(tf.constant([-1.0]), weight) for weight in weights], []
    optimizer = optimizers.build(Recipe(epochs=9, optimizer=own), [2], model)
    for _ in range(5):
        optimizer.apply_gradients(pairs)
    assert [float(weight[0]) for weight in weights] == [5, 320, 3, 5]
    own = replace(own, momentum=0.9, rate_in_velocity=True)
    optimizer = optimizers.build(Recipe(epochs=9, optimizer=own), [2], model)
    for _ in range(5):
        optimizer.apply_gradients(pairs)
        biases.append(float(weights[2][0]))
    # The velocity does not move a frozen bias.
    assert biases[1] < biases[2] == biases[3] == biases[4]


def test_rmsprop_is_tensorflow_1_s():
    """The mean square starts at 1, epsilon is inside the root."""
    own = Optimizer(name="rmsprop", learning_rate=0.3, momentum=0.9, epsilon=0.01)
    rng = np.random.default_rng(0)
    start = rng.normal(size=5).astype("f")
    ours, theirs = tf.Variable(start), tf.Variable(start)
    optimizer = optimizers.build(Recipe(optimizer=own), [10])
    source = tf.compat.v1.train.RMSPropOptimizer(0.3, 0.9, momentum=0.9, epsilon=0.01)
    for _ in range(6):
        gradient = tf.constant(rng.normal(size=5).astype("f"))
        optimizer.apply_gradients([(gradient, ours)])
        source.apply_gradients([(gradient, theirs)])
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_adamax_and_clipping_are_their_papers_formulas():
    """Kingma & Ba 2015, algorithm 2; Pascanu et al. 2013: gradients scaled to one norm over all."""
    own = Optimizer(name="adamax", learning_rate=0.02, clip_norm=1.5, epsilon=1e-8)
    rng = np.random.default_rng(0)
    wanted = [rng.normal(size=shape) for shape in ((3, 2), (4,))]
    weights = [tf.Variable(value.astype("f")) for value in wanted]
    moments, greatest = ([np.zeros_like(value) for value in wanted] for _ in range(2))
    optimizer = optimizers.build(Recipe(optimizer=own), [10])
    for step in range(1, 7):
        gradients = [rng.normal(0, step / 3, value.shape) for value in wanted]
        tensors = [tf.constant(g.astype("f")) for g in gradients]
        optimizer.apply_gradients(zip(tensors, weights, strict=True))
        norm = np.sqrt(sum((g**2).sum() for g in gradients))
        for i, gradient in enumerate(gradients):
            gradient = gradient * min(1, 1.5 / norm)
            moments[i] = 0.9 * moments[i] + 0.1 * gradient
            greatest[i] = np.maximum(0.999 * greatest[i], np.abs(gradient))
            wanted[i] -= 0.02 / (1 - 0.9**step) * moments[i] / (greatest[i] + 1e-8)
            np.testing.assert_allclose(weights[i], wanted[i], rtol=1e-4, atol=1e-6)


def test_a_bert_learns_from_the_sum_of_losses_as_its_source_does_from_their_mean():
    """google-research/bert: optimization.py's clipping to 1 and epsilon, with Adam's correction."""
    recipe = recipes.get("squad/bert_base", schedule="constant")
    begin, m, v = np.array([1 / 2, -1 / 4, 1 / 64]), 0.0, 0.0
    weight, wanted = tf.Variable(begin, dtype=tf.float32), begin.copy()
    optimizer, mean = optimizers.build(recipe, [10]), np.array([0.7, -0.2, 2e-6])
    for step, size in enumerate((1, 4, 0.1), 1):  # the second is clipped, by source and recipe
        optimizer.apply_gradients([(tf.constant(2 * size * mean, tf.float32), weight)])
        gradient = size * mean / max(1, size * np.linalg.norm(mean))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        update = m * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) / (np.sqrt(v) + 1e-6)
        wanted -= 3e-5 * (update + 0.01 * wanted)
    np.testing.assert_allclose(weight - begin, wanted - begin, rtol=2e-3)


def test_adamw_shrinks_the_weights_that_decay_alone():
    layers = [tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()]
    network = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    constant = Schedule(form="constant", epochs=(), factors=())
    for kind, shrunk in (  # kernel, bias, gamma, beta
        ("kernels", (1, 0, 0, 0)),
        ("all_but_norms", (1, 1, 0, 0)),
        ("all", (1, 1, 1, 1)),
    ):
        network.set_weights([np.ones_like(weight) for weight in network.get_weights()])
        own = Optimizer(name="adamw", learning_rate=0.5, weight_decay=0.1, decays=kind)
        optimizer = optimizers.build(Recipe(optimizer=own, schedule=constant), [10], network)
        weights = network.trainable_variables
        optimizer.apply_gradients([(tf.zeros_like(weight), weight) for weight in weights])
        means = [float(tf.reduce_mean(weight)) for weight in weights]
        assert means == pytest.approx([1 - 0.5 * 0.1 * each for each in shrunk])


def test_adam_s_momentum_cycles_as_pytorch_s_does():
    """torch.optim.Adam with OneCycleLR: beta_1 of the step, also in the bias's correction."""
    own = Optimizer(name="adam", learning_rate=0.1, epsilon=1e-9)
    cycle = Schedule(form="linear", epochs=(0, 1), factors=(1, 1), momenta=(0.9, 0.5))
    optimizer = optimizers.build(Recipe(epochs=1, optimizer=own, schedule=cycle), [4])
    weight, wanted, m, v = tf.Variable([1.0]), 1.0, 0.0, 0.0
    for step, (beta, gradient) in enumerate(zip((0.9, 0.8, 0.7), (1, -3, 2), strict=True), 1):
        optimizer.apply_gradients([(tf.constant([float(gradient)]), weight)])
        m, v = beta * m + (1 - beta) * gradient, 0.999 * v + 0.001 * gradient**2
        wanted -= 0.1 * m / (1 - beta**step) / np.sqrt(v / (1 - 0.999**step))
        assert float(weight[0]) == pytest.approx(wanted, rel=1e-5)


def trained(recipe):
    """Returns a weight after three steps of the recipe's optimizer."""
    weight, optimizer = tf.Variable([[1.0], [2.0]]), optimizers.build(recipe, [10])
    for gradient in (0.5, -1.0, 3.0):
        optimizer.apply_gradients([(tf.constant([[gradient], [1.0]]), weight)])
    return weight.numpy().tolist()


def test_a_setting_is_refused_just_where_another_value_changes_no_update():
    for name in ("sgd", "lars", "rmsprop", "adam", "adamw", "adamax", "adadelta"):
        plain = recipes.get("digits/resnet8", optimizer=name)
        # The forms of momentum differ where the rate changes.
        plain = plain.with_values(schedule_epochs=(0, 1), schedule_factors=(1, 0))
        others = {"momentum": 0.5, "trust": 0.1, "beta_2": 0.5, "epsilon": 0.3}
        for flag in ("nesterov", "rate_in_velocity"):
            others[flag] = not getattr(plain.optimizer, flag)
        assert others.keys() == USED_BY.keys()
        for setting, value in others.items():
            if trained(plain.with_values(**{setting: value})) != trained(plain):
                recipes.changed(plain, **{setting: value})
            else:
                with pytest.raises(Refusal, match=f"^--{setting}=.*: is for --optimizer="):
                    recipes.changed(plain, **{setting: value})
