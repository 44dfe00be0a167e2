"""60 training steps equal those of the code of published entries' authors, on one and more devices.

scripts/source_steps.py recorded them, in float64, with fewer channels and smaller images.
"""

import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.models import networks
from dawnbench_tf.models.layers import views
from dawnbench_tf.recipes import imagenet_progressive
from dawnbench_tf.training import averages, fitting, losses, optimizers
from tests import warm
from tests.training import source_steps
from tests.training.source_steps import BAIDUNET9P, LOWER, SMALL, STEPS, STEPS_PER_EPOCH, ahead

SPLITS = dataset.open(recipes.get("digits/resnet8", synthetic="decoded")).splits
APPLE_RATES = {"learning_rate": 1.5 * LOWER**2, "weight_decay": 7.5e-4 * LOWER**2}
APPLE = {**ahead((0, 3.6, 16), (0, 1.5, 0.15)), **APPLE_RATES}
MISH = {**ahead((0, 2.8, 12), (0, 1.5, 0.15)), **APPLE_RATES}
BASENET = {
    "schedule_epochs": (0, 3 - 1 / 5, 3, 6, 7, 7 + 1 / 5),
    "schedule_factors": (0, 1 - 1 / 15, 1.05, 0.05, 0, 0.005),
    "learning_rate": 0.1 * LOWER,
}
# Rates fall to 0 in the 60 steps.
MUON = {"epochs": 12, "schedule_epochs": (0, 12), "learning_rate": 0.24 * LOWER}
HIVERGE = {**MUON, "learning_rate": 0.205 * LOWER, "whitening_bias_epochs": 1.4}
THREE = {"widths": (8, 16, 16)}
# recipe: (examples in a batch, side of images, arguments of the network, changed settings)
SYSTEMS = {
    "baidunet9": (16, 16, SMALL, ahead((0, 5, 24), (0, 0.4, 0.001))),
    "baidunet8": (8, 32, {"widths": (4, 8, 8)}, {"learning_rate": 0.1 * LOWER}),
    "resnet9_mazare": (8, 32, SMALL, {}),
    "resnet9_kakao": (16, 14, SMALL, {}),
    "resnet9_apple": (16, 32, {**SMALL, "ghost_group": 8}, APPLE),
    "resnet9_mish": (16, 32, {**SMALL, "ghost_group": 4}, MISH),
    "baidunet9p": (16, 32, SMALL, BAIDUNET9P),
    "wrn_22_6": (16, 16, {"depth": 8, "widen": 1}, {"learning_rate": 1.5 * LOWER**2}),
    "basenet": (8, 32, {"widths": (4, 4, 8, 8, 8)}, BASENET),
    "airbench94_muon": (16, 32, THREE, {**MUON, "sgd_rate": 0.67 * 16 / 0.24}),
    "hiverge94": (16, 32, THREE, {**HIVERGE, "sgd_rate": 0.5415 * 16 / 0.205}),
    "kervresnet34": (8, 32, {"depth": 18, "width": 3}, {"learning_rate": 0.1 * LOWER**2}),
}


# imagenet18's phases: batch sizes of epochs of 80 examples; first epoch, end, rates
SIZES = (16, 16, 16, 16, 8, 4, 8)
LR = 0.02 * LOWER**2
RATES = (
    *((0, 2, LR, 2 * LR), (2, 3, 2 * LR, 2 * LR), (3, 4, 2 * LR, LR), (4, 5, LR, LR)),
    *((5, 6, LR, LR / 10), (6, 7, LR / 100, LR / 1000)),
)


def train(model, recipe, epoch_steps, batches):
    """Trains a network on batches of images and labels, with the recipe's optimizer and loss."""
    optimizer = optimizers.build(recipe, epoch_steps, model)
    loss = losses.make_loss(SimpleNamespace(recipe=recipe))

    @tf.function(reduce_retracing=True)
    def step(images, labels):
        with tf.GradientTape() as tape:
            total = tf.cast(loss(labels, model(images, training=True)), tf.float64)
            total += sum(model.losses, 0.0)
        gradients = tape.gradient(total, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    optimizer.build(model.trainable_variables)
    for images, labels in batches:
        step(tf.constant(images), tf.constant(labels))


def check(model, recipe, recorded, size, side):
    """Compares weights after training, and the logits of an evaluation, with the recorded ones."""
    assert source_steps.largest_difference(model, recorded) < 1e-5
    ((images, _),) = source_steps.batches(1, size, side)
    logits = views.with_views(model, recipe.data.test_views, "NHWC")(images).numpy()
    scale = np.abs(recorded["logits"]).max()
    np.testing.assert_allclose(logits, recorded["logits"], atol=1e-5 * scale)


# By default one of each author's rules: the others share optimizer and schedule with one of these.
DEFAULT = {"baidunet9", "resnet9_apple", "wrn_22_6", "airbench94_muon"}
CASES = [pytest.param(name, marks=() if name in DEFAULT else pytest.mark.long) for name in SYSTEMS]


@pytest.mark.parametrize("name", CASES)
def test_sixty_steps_and_an_evaluation_equal_the_author_s(name):
    size, side, small, changes = SYSTEMS[name]
    recipe = recipes.get(f"cifar10/{name}", precision="float64", batch_size=size, **changes)
    with source_steps.building(side, small):
        model = fitting.build(dataset.from_splits(recipe, SPLITS))
    recorded = source_steps.read(name)
    source_steps.set_weights(model, recorded)
    train(model, recipe, [STEPS_PER_EPOCH], source_steps.batches(STEPS, size, side))
    check(model, recipe, recorded, size, side)


def test_sixty_steps_with_a_proxy_equal_jordan_s(monkeypatch):
    size, rate = 16, 9 * 64 * LOWER / 1024 / (1 + 1 / 0.15)
    recipe = recipes.get(
        "cifar10/airbench96_faster",
        precision="float64",
        batch_size=size,
        epochs=12,
        schedule_epochs=(0, 1.2, 12),
        learning_rate=rate * size / 2,  # the source's is of the sum over half the examples
        weight_decay=0.012 * size / 1024 / (1 + 1 / 0.15) / (rate * size / 2),
    )
    monkeypatch.setattr(ImageData, "steps_per_epoch", STEPS_PER_EPOCH)
    monkeypatch.setattr(ImageData, "on_devices", lambda data: lambda *batch: batch)
    build = networks.build

    def small(variant, args, *classes):
        widths = (4, 8, 8) if variant.name == "airbench96_proxy" else (8, 16, 16)
        return build(variant, args | {"widths": widths}, *classes)

    monkeypatch.setattr(networks, "build", small)
    model = fitting.build(dataset.from_splits(recipe, SPLITS))
    recorded = source_steps.read("airbench96_faster")
    main, proxy = (source_steps.network_of(recorded, number) for number in (0, 1))
    for network, arrays in ((model, main), (model.proxy.network, proxy)):
        source_steps.set_weights(network, arrays)
    for weight, average in averages.inner_optimizer(model).pairs():
        average.assign(weight)
    images, labels = zip(*source_steps.batches(STEPS, size, 32), strict=True)
    examples = tf.data.Dataset.from_tensor_slices((np.stack(images), np.stack(labels)))
    model.fit(examples, steps_per_epoch=STEPS, verbose=0)
    assert source_steps.largest_difference(model.proxy.network, proxy) < 1e-5
    check(model, recipe, {**main, "logits": recorded["logits"]}, size, 32)


@pytest.mark.long
def test_sixty_steps_of_changing_batch_sizes_equal_fast_ai_s():
    corners = imagenet_progressive.corners_ahead(RATES, lambda epoch: 80 // SIZES[epoch])
    recipe = recipes.get(
        "imagenet/resnet50_fastai_8m",
        precision="float64",
        batch_size=16,
        later_batch_sizes=(8, 4, 8),
        batch_size_epochs=(4, 5, 6),
        epochs=7,
        learning_rate=1,
        schedule_epochs=tuple(epoch for epoch, _ in corners),
        schedule_factors=tuple(rate for _, rate in corners),
    )
    with source_steps.building(64, {"depth": 26, "width": 2, "num_classes": 10}):
        model = fitting.build(dataset.from_splits(recipe, SPLITS))
    recorded = source_steps.read("resnet50_fastai_8m")
    source_steps.set_weights(model, recorded)
    sizes = [recipe.in_epoch(epoch).batch_size for epoch in range(7)]
    by_step = [size for size in sizes for _ in range(80 // size)]
    batches = zip(by_step, source_steps.batches(STEPS, 16, 64), strict=True)
    examples = [(x[:size].astype(np.float32), y[:size]) for size, (x, y) in batches]
    train(model, recipe, [80 // size for size in sizes], examples)
    check(model, recipe, recorded, 16, 64)


# `mirrored_steps.py` has the settings. Statistics are compared as the mean of the devices', and by
# the logits of the first device. With synchronized BN, or with a quarter of the rate, they differ.
@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["resnet9_kakao_4gpu", "resnet9_apple", "baidunet9p", "wrn_22_6_8gpu"]
)
def test_sixty_steps_on_several_devices_equal_the_author_s(name):
    command = [*warm.python(), "-m", "tests.training.mirrored_steps", name]
    done = subprocess.run(command, cwd=warm.ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    differences = json.loads(done.stdout.splitlines()[-1])
    assert max(differences.values()) < 1e-5, differences
