"""60 training steps equal those of the code of published entries' authors.

scripts/source_steps.py recorded them, in float64, with fewer channels and smaller images.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.models import networks
from dawnbench_tf.models.layers import views
from dawnbench_tf.training import fitting, losses, optimizers

STEPS, STEPS_PER_EPOCH = 60, 5
FIXTURES = Path(__file__).parents[1] / "fixtures/source_steps"
SPLITS = dataset.load(recipes.get("digits/resnet8", synthetic="decoded"))


def ahead(knots, values):
    """Returns settings of a schedule that is read one step ahead."""
    step = 1 / STEPS_PER_EPOCH
    epochs = (0, *(knot - step for knot in knots[1:]))
    peak = max(values)
    factors = (step / knots[1], *(value / peak for value in values[1:]))
    return {"schedule_epochs": epochs, "schedule_factors": factors}


# At the full rates small networks on random labels multiply differences of rounding.
LOWER = 0.1
APPLE_RATES = {"learning_rate": 1.5 * LOWER**2, "weight_decay": 7.5e-4 * LOWER**2}
SMALL = {"widths": (4, 8, 8, 8)}
# recipe: (examples in a batch, side of images, arguments of the network, changed settings)
SYSTEMS = {
    "baidunet9": (16, 16, SMALL, ahead((0, 5, 24), (0, 0.4, 0.001))),
    "baidunet8": (8, 32, {"widths": (4, 8, 8)}, {"learning_rate": 0.1 * LOWER}),
    "resnet9_mazare": (8, 32, SMALL, {}),
    "resnet9_kakao": (16, 14, SMALL, {}),
    "resnet9_apple": (
        16,
        32,
        {**SMALL, "ghost_group": 8},
        {**ahead((0, 3.6, 16), (0, 1.5, 0.15)), **APPLE_RATES},
    ),
    "resnet9_mish": (
        16,
        32,
        {**SMALL, "ghost_group": 4},
        {**ahead((0, 2.8, 12), (0, 1.5, 0.15)), **APPLE_RATES},
    ),
    "baidunet9p": (
        16,
        32,
        SMALL,
        {"schedule_epochs": (0, 9.8, 24), "learning_rate": 0.0052 * LOWER},
    ),
    "wrn_22_6": (16, 16, {"depth": 10, "widen": 1}, {"learning_rate": 1.5 * LOWER**2}),
    "basenet": (
        8,
        32,
        {"widths": (4, 4, 8, 8, 8)},
        {
            "schedule_epochs": (0, 3 - 1 / 5, 3, 6, 7, 7 + 1 / 5),
            "schedule_factors": (0, 1 - 1 / 15, 1.05, 0.05, 0, 0.005),
            "learning_rate": 0.1 * LOWER,
        },
    ),
    "kervresnet34": (8, 32, {"depth": 18, "width": 3}, {"learning_rate": 0.1 * LOWER**2}),
}


def batches(count, size, side):
    """The batches that the script trains on; images NHWC."""
    rng = np.random.default_rng(32)
    for _ in range(count):
        images = rng.standard_normal((size, 3, side, side))
        yield images.transpose(0, 2, 3, 1), rng.integers(0, 10, size)


# Shortcuts that our networks make before their units' branches: unit, layer.
SHORTCUT = re.compile(r"(block\d\.layer\.\d\.|layer\d\.\d\.)(convShortcut|shortcut)\.")


def in_our_order(names):
    """Moves these shortcuts to the front of their units."""
    names = list(names)
    shortcuts = {name: match[1] for name in names if (match := SHORTCUT.match(name))}
    for name, unit in shortcuts.items():
        names.remove(name)
        branch = (other.startswith(unit) and other not in shortcuts for other in names)
        names.insert([*branch].index(True), name)
    return names


def arrays(recorded, moment):
    """Returns a network's recorded arrays by kind, in the order of their layers."""
    own = {
        name.partition(" ")[2]: recorded[name] for name in recorded.files if name.startswith(moment)
    }
    own = {name: own[name] for name in in_our_order(own)}
    convs = []
    for name, value in own.items():
        if value.ndim == 4:
            bias = own.get(re.sub("weight$", "bias", name))
            convs.append([value.transpose(2, 3, 1, 0), *([] if bias is None else [bias])])
    balances = [[value[0]] for name, value in own.items() if name.endswith("balance")]
    denses = [value.T for value in own.values() if value.ndim == 2]
    denses += [own[name] for name in own if re.search(r"(linear|fc|classifier)\.bias$", name)]
    norms = []
    for name, mean in own.items():
        if name.endswith("running_mean"):
            layer = name.removesuffix("running_mean")
            channels = own[f"{layer}bias"].size
            statistics = [own[f"{layer}running_{kind}"] for kind in ("mean", "var")]
            statistics = [value.reshape(-1, channels).mean(0) for value in statistics]
            assert mean.size % channels == 0
            norms.append([own[f"{layer}weight"], own[f"{layer}bias"], *statistics])
    return convs, norms, [denses], balances


def by_kind(model):
    """Returns a model's layers of the kinds of `arrays`, each in order of creation."""
    layers = [layer for layer in model.layers if layer.get_weights()]
    layers.sort(key=lambda layer: int((re.findall(r"_(\d+)$", layer.name) or [0])[0]))
    norms = [layer for layer in layers if "orm" in type(layer).__name__]
    denses = [layer for layer in layers if isinstance(layer, tf.keras.layers.Dense)]
    balances = [layer for layer in layers if hasattr(layer, "balance")]
    convs = [layer for layer in layers if layer not in [*norms, *denses, *balances]]
    convs.sort(key=lambda layer: layer.name != "whitening")
    return convs, norms, denses, balances


def recorded_weights(model, recorded, moment):
    """Yields each layer and its recorded weights."""
    for layers, values in zip(by_kind(model), arrays(recorded, moment), strict=True):
        for layer, weights in zip(layers, values, strict=True):
            has_no_scale = "orm" in type(layer).__name__ and not layer.scale
            yield layer, weights[1:] if has_no_scale else weights


def set_weights(model, recorded):
    for layer, weights in recorded_weights(model, recorded, "before"):
        layer.set_weights(weights)


def largest_difference(model, recorded):
    """Returns the largest difference of an array after training, relative to its largest number."""
    return max(
        np.abs(ours - theirs).max() / np.abs(theirs).max()
        for layer, weights in recorded_weights(model, recorded, "after")
        for ours, theirs in zip(layer.get_weights(), weights, strict=True)
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_sixty_steps_and_an_evaluation_equal_the_author_s(name, monkeypatch):
    size, side, small, changes = SYSTEMS[name]
    recipe = recipes.get(f"cifar10/{name}", precision="float64", batch_size=size, **changes)
    build, own = networks.build, {**small, "input_shape": (side, side, 3)}
    monkeypatch.setattr(
        networks, "build", lambda variant, args, *classes: build(variant, args | own, *classes)
    )
    model = fitting.build(dataset.from_splits(recipe, SPLITS))
    recorded = np.load(FIXTURES / f"{name}.npz")
    set_weights(model, recorded)
    optimizer = optimizers.build(recipe, [STEPS_PER_EPOCH], model)
    loss = losses.LOSSES[recipe.task_row.loss](recipe)

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            total = tf.cast(loss(labels, model(images, training=True)), tf.float64)
            total += sum(model.losses, 0.0)
        gradients = tape.gradient(total, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    optimizer.build(model.trainable_variables)
    for images, labels in batches(STEPS, size, side):
        step(tf.constant(images), tf.constant(labels))
    assert largest_difference(model, recorded) < 1e-5
    ((images, _),) = batches(1, size, side)
    logits = views.with_views(model, recipe.data.test_views, "NHWC")(images).numpy()
    scale = np.abs(recorded["logits"]).max()
    np.testing.assert_allclose(logits, recorded["logits"], atol=1e-5 * scale)
