"""Selection of examples by a proxy: which ones, an interrupted run.

test_source_steps.py compares training steps with the author's code.
"""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.train import train
from dawnbench_tf.training import fitting, utilization
from tests.training import interruption

SETTINGS = {"proxy": "resnet8_v1_pad", "batch_size": 64, "train_examples": 256}


def test_the_examples_of_largest_loss_are_trained_on_and_every_third_step_trains_the_proxy():
    recipe = recipes.get("digits/resnet8", **SETTINGS, proxy_share=0.25, proxy_every=3)
    model = fitting.build(dataset.open(recipe))
    proxy = model.proxy
    rng = np.random.default_rng(0)
    images = rng.standard_normal((64, 32, 32, 3)).astype(np.float32)
    labels = rng.integers(0, 10, 64)
    for step in range(5):
        before = [weight.numpy() for weight in proxy.network.trainable_variables]
        logits = proxy.network(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits).numpy()
        batch = tf.constant(images), tf.constant(labels)
        chosen, classes = proxy.select(*batch, tf.constant(step, tf.int64))
        hardest = np.argsort(losses)[-16:]
        order = np.argsort(chosen.numpy()[:, 0, 0, 0])
        expected = hardest[np.argsort(images[hardest, 0, 0, 0])]
        np.testing.assert_array_equal(chosen.numpy()[order], images[expected])
        np.testing.assert_array_equal(classes.numpy()[order], labels[expected])
        pairs = zip(before, proxy.network.trainable_variables, strict=True)
        moved = any((one != other.numpy()).any() for one, other in pairs)
        assert moved == (step in (0, 3))


@pytest.mark.long
def test_a_step_counts_the_chosen_examples_and_the_proxy_s_work():
    recipe = recipes.get("cifar10/airbench96_faster", synthetic="decoded")
    model = fitting.build(dataset.open(recipe))
    networks = (models.build(name) for name in ("airbench96", "airbench96_proxy"))
    own, small = map(utilization.forward_flops, networks)
    # Half of the examples forward and backward; all through the proxy, in 1 of 4 steps also back.
    assert utilization.step_flops(model, 1024) == 3 * own / 2 + small + 2 * small / 4
    steps = 45 * (50_000 // 1024)
    assert utilization.step_flops(model, 1024) * 1024 * steps / 1e15 == pytest.approx(3.1, abs=0.02)


@pytest.mark.parametrize(
    "settings",
    [
        {"weight_decay": 0},
        pytest.param({"precision": "mixed_float16"}, marks=pytest.mark.long),
        pytest.param({"mixup": 0.2, "weight_decay": 0}, marks=pytest.mark.long),
    ],
)
def test_a_step_trains_model_and_proxy(settings):
    data = dataset.open(recipes.get("digits/resnet8", **{**SETTINGS, **settings}))
    model = fitting.build(data)
    before = [network.trainable_variables[0].numpy() for network in (model, model.proxy.network)]
    model.fit(data.training_batches(), steps_per_epoch=1, verbose=0)
    for weight, network in zip(before, (model, model.proxy.network), strict=True):
        after = network.trainable_variables[0].numpy()
        assert np.isfinite(after).all() and (after != weight).any()


@pytest.mark.long
def test_a_run_goes_on_where_it_ended(tmp_path):
    short = {"threshold": 100, "epochs": 3, "precision": "float64", "momentum": 0.5}
    recipe = recipes.get("digits/resnet8", **SETTINGS, **short)
    interruption.check_continued(train(recipe, output=tmp_path / "whole"), tmp_path)
