"""Recorded training steps of published entries' authors: batches, weights before and after.

scripts/source_steps.py recorded them, in float64, with fewer channels and smaller images.
"""

import re
from pathlib import Path
from unittest import mock

import numpy as np
import tensorflow as tf

from dawnbench_tf.models import networks

STEPS, STEPS_PER_EPOCH = 60, 5
FIXTURES = Path(__file__).parents[1] / "fixtures/source_steps"
LOWER = 0.1  # At the full rates small networks on random labels multiply differences of rounding.
SMALL = {"widths": (4, 8, 8, 8)}
BAIDUNET9P = {"schedule_epochs": (0, 9.8, 24), "learning_rate": 0.0052 * LOWER}


def ahead(knots, values):
    """Returns settings of a schedule that is read one step ahead."""
    step = 1 / STEPS_PER_EPOCH
    epochs = (0, *(knot - step for knot in knots[1:]))
    peak = max(values)
    factors = (step / knots[1], *(value / peak for value in values[1:]))
    return {"schedule_epochs": epochs, "schedule_factors": factors}


def building(side, small):
    """Returns a context in which networks are built for small images, with other arguments."""
    build, own = networks.build, {**small, "input_shape": (side, side, 3)}
    smaller = lambda variant, args, *classes: build(variant, args | own, *classes)  # noqa: E731
    return mock.patch.object(networks, "build", smaller)


def batches(count, size, side):
    """The batches that the script trains on; images NHWC."""
    rng = np.random.default_rng(32)
    for _ in range(count):
        images = rng.standard_normal((size, 3, side, side))
        yield images.transpose(0, 2, 3, 1), rng.integers(0, 10, size)


# Shortcuts that our networks make before their units' branches: unit, layer.
SHORTCUT = re.compile(r"(block\d\.layer\.\d\.|layer\d\.\d\.)(convShortcut|shortcut|downsample)\.")


def in_our_order(names):
    """Moves these shortcuts to the front of their units."""
    names = list(names)
    shortcuts = {name: match[1] for name in names if (match := SHORTCUT.match(name))}
    for name, unit in shortcuts.items():
        names.remove(name)
        branch = (other.startswith(unit) and other not in shortcuts for other in names)
        names.insert([*branch].index(True), name)
    return names


def read(name):
    """Returns what was recorded of a system."""
    with np.load(FIXTURES / f"{name}.npz") as recorded:
        return dict(recorded)


def arrays(recorded, moment):
    """Returns a network's recorded arrays by kind, in the order of their layers."""
    pairs = (name.partition(" ") for name in recorded)
    own = {name: recorded[f"{when} {name}"] for when, _, name in pairs if when == moment}
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
            weights = weights[1:] if has_no_scale else weights
            weights = weights[: len(layer.weights)]  # without a bias that is frozen at 0
            # Keras has a frozen kernel behind its bias.
            yield layer, weights[::-1] if layer.name == "whitening" else weights


def network_of(recorded, number):
    """Returns the arrays of one of several networks that were recorded together."""
    pairs = ((re.sub(rf" {number}\.", " ", name), name) for name in recorded)
    return {own: recorded[name] for own, name in pairs if own != name}


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
