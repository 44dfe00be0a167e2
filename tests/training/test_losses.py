"""Losses, compared with scikit-learn; weight decay, computed by hand."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_sample_weight

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Optimizer, Recipe
from dawnbench_tf.tasks import Task
from dawnbench_tf.training import losses

LOGITS = np.random.default_rng(0).normal(size=(20, 10))
CLASSES = np.arange(20) % 10


def decaying(**settings):
    """Returns a network whose loss has a recipe's weight decay."""
    layers = [tf.keras.layers.Dense(3, input_shape=(4,)), tf.keras.layers.BatchNormalization()]
    network = tf.keras.Sequential(layers)
    network.layers[0].bias.assign([3.0, 1.0, 2.0])
    network.layers[1].beta.assign([1.0, 2.0, 3.0])
    losses.add_weight_decay(network, Recipe(optimizer=Optimizer(**settings)))
    return network


def test_weight_decay_is_halved_and_over_the_weights_that_the_recipe_names():
    """PyTorch's `weight_decay` includes BN's parameters and biases; shifts' is by their rate."""
    for settings, others, shifts in (
        ({}, 0, 0),
        ({"decays": "all"}, 1, 1),
        ({"decays": "all", "shift_rate": 64}, 1, 1 / 64),
    ):
        network = decaying(weight_decay=0.1, **settings)
        squares = [(weight**2).sum() for weight in map(np.array, network.trainable_variables)]
        wanted = np.dot(squares, [1, others, others, shifts])  # kernel, bias, gamma, beta
        assert float(network.losses[0]) == pytest.approx(0.1 * wanted / 2, rel=1e-5)
    assert not decaying().losses


def test_a_bias_of_two_axes_is_no_kernel():
    weights = [tf.Variable(tf.zeros([2, 6]), name=f"gru/{name}") for name in ("bias", "kernel")]
    assert [losses.decays(weight, Recipe()) for weight in weights] == [False, True]


def test_balanced_class_weights_are_scikit_learn_s():
    classes = np.repeat(np.arange(4), (2, 3, 5, 10))
    recipe = recipes.get("own/images", class_weights="balanced", task=Task("a", classes=4))
    splits = SimpleNamespace(train=SimpleNamespace(labels=classes))
    logits, weights = LOGITS[:, :4], compute_sample_weight("balanced", classes)
    loss = losses.make_loss(SimpleNamespace(recipe=recipe, splits=splits))
    for labels in (classes[:, None], np.eye(4)[classes]):  # integers, and mixup's
        wanted = log_loss(classes, softmax(logits, 1), sample_weight=weights)
        assert float(loss(labels, logits)) == pytest.approx(wanted)


def test_an_auxiliary_head_s_loss_is_added_by_its_weight():
    logits = np.random.default_rng(0).normal(size=(20, 2, 10)).astype("f")
    alone = [float(losses.SoftmaxCrossEntropy(0.1)(CLASSES, logits[:, head])) for head in (0, 1)]
    both = losses.SoftmaxCrossEntropy(0.1, auxiliary_weight=0.4)
    assert float(both(CLASSES, logits)) == pytest.approx(alone[0] + 0.4 * alone[1], rel=1e-5)
    assert float(both(CLASSES, logits[:, 0])) == pytest.approx(alone[0], rel=1e-5)


def test_cross_entropy_and_label_smoothing_are_pytorch_s():
    """(1 - s) x cross-entropy + s x the mean over classes of -log p, by its documentation."""
    logs = log_softmax(LOGITS, 1)
    for share, labels in itertools.product((0.0, 0.2), (CLASSES, CLASSES[:, None])):
        wanted = (share - 1) * logs[range(20), CLASSES].mean() - share * logs.mean()
        assert float(losses.SoftmaxCrossEntropy(share)(labels, LOGITS)) == pytest.approx(wanted)
