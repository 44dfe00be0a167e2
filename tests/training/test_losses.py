"""Losses, compared with scikit-learn; weight decay, computed by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Optimizer, Recipe
from dawnbench_tf.tasks import Task
from dawnbench_tf.training import losses


def model():
    layers = [tf.keras.layers.Dense(3, input_shape=(4,)), tf.keras.layers.BatchNormalization()]
    network = tf.keras.Sequential(layers)
    network.compile(tf.keras.optimizers.SGD(0.5), "mse")
    return network


def test_weight_decay_is_over_kernels_alone_and_halved():
    network = model()
    losses.add_weight_decay(network, Recipe(optimizer=Optimizer(weight_decay=0.1)))
    kernel = network.layers[0].get_weights()[0]
    assert float(network.losses[0]) == pytest.approx(0.1 * (kernel**2).sum() / 2, rel=1e-5)


def test_a_bias_of_two_axes_is_no_kernel():
    bias, kernel = (
        tf.Variable(tf.zeros([2, 6]), name=f"gru/{name}") for name in ("bias", "kernel")
    )
    assert [losses.decays(weight, Recipe()) for weight in (bias, kernel)] == [False, True]


def test_weight_decay_pulls_by_rate_times_decay():
    network = model()
    losses.add_weight_decay(network, Recipe(optimizer=Optimizer(weight_decay=0.1)))
    kernel = network.layers[0].get_weights()[0]
    x = np.zeros((2, 4), "f")
    network.fit(x, network(x, training=True), verbose=0)  # the data pull nowhere
    np.testing.assert_allclose(
        network.layers[0].get_weights()[0], kernel * (1 - 0.5 * 0.1), rtol=1e-4
    )


def test_without_weight_decay_the_loss_is_the_data_s():
    network = model()
    losses.add_weight_decay(network, Recipe())
    assert not network.losses


def test_cross_entropy_equals_scikit_learn_s():
    from sklearn.metrics import log_loss

    logits = np.random.default_rng(0).normal(size=(20, 10))
    classes = np.arange(20) % 10
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = log_loss(classes, chances, labels=range(10))
    assert float(losses.SoftmaxCrossEntropy()(classes, logits)) == pytest.approx(wanted)


def test_balanced_class_weights_are_scikit_learn_s():
    from sklearn.metrics import log_loss
    from sklearn.utils.class_weight import compute_sample_weight

    classes = np.repeat(np.arange(4), (2, 3, 5, 10))
    recipe = recipes.get("own/images", class_weights="balanced", task=Task("a", classes=4))
    splits = SimpleNamespace(train=SimpleNamespace(labels=classes))
    logits = np.random.default_rng(0).normal(size=(20, 4))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    weights = compute_sample_weight("balanced", classes)
    loss = losses.make_loss(SimpleNamespace(recipe=recipe, splits=splits))
    for labels in (classes[:, None], np.eye(4)[classes]):  # integers, and mixup's
        wanted = log_loss(classes, chances, labels=range(4), sample_weight=weights)
        assert float(loss(labels, logits)) == pytest.approx(wanted)


def test_an_auxiliary_head_s_loss_is_added_by_its_weight():
    logits = np.random.default_rng(0).normal(size=(20, 2, 10)).astype("f")
    classes = np.arange(20) % 10
    alone = [float(losses.SoftmaxCrossEntropy(0.1)(classes, logits[:, head])) for head in (0, 1)]
    both = losses.SoftmaxCrossEntropy(0.1, auxiliary_weight=0.4)
    assert float(both(classes, logits)) == pytest.approx(alone[0] + 0.4 * alone[1], rel=1e-5)
    assert float(both(classes, logits[:, 0])) == pytest.approx(alone[0], rel=1e-5)


def test_all_weights_decay_where_the_recipe_says_so():
    """PyTorch's `weight_decay` includes BN's parameters and biases."""
    network = model()
    losses.add_weight_decay(network, Recipe(optimizer=Optimizer(weight_decay=0.1, decays="all")))
    weights = [weight.numpy() for weight in network.trainable_variables]
    assert len(weights) == 4
    wanted = sum((weight**2).sum() for weight in weights)
    assert float(network.losses[0]) == pytest.approx(0.1 * wanted / 2, rel=1e-5)


def test_label_smoothing_is_pytorch_s():
    """(1 - s) x cross-entropy + s x the mean over classes of -log p, by its documentation."""
    logits = np.random.default_rng(0).normal(size=(20, 10))
    classes = np.arange(20) % 10
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    wanted = -0.8 * logs[range(20), classes].mean() - 0.2 * logs.mean()
    for labels in (classes, classes[:, None]):
        loss = losses.SoftmaxCrossEntropy(0.2)(labels, logits)
        assert float(loss) == pytest.approx(wanted)


def test_shifts_decay_by_as_much_less_as_they_learn_faster():
    network = model()
    network.layers[1].beta.assign([1.0, 2.0, 3.0])
    recipe = Recipe(optimizer=Optimizer(weight_decay=0.1, decays="all", shift_rate=64))
    losses.add_weight_decay(network, recipe)
    others = sum((w.numpy() ** 2).sum() for w in network.trainable_variables) - 14
    assert float(network.losses[0]) == pytest.approx(0.1 * (others + 14 / 64) / 2, rel=1e-5)
