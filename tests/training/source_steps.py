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
    return mock.patch.object(
        networks, "build", lambda variant, args, *classes: build(variant, args | own, *classes)
    )


def batches(count, size, side):
    """The batches that the script trains on; images NHWC."""
    rng = np.random.default_rng(32)
    for _ in range(count):
        images = rng.standard_normal((size, 3, side, side))
        yield images.transpose(0, 2, 3, 1), rng.integers(0, 10, size)


def arrays(recorded, moment):
    """Returns a network's recorded arrays by kind, in the order of their layers."""
    own = {
        name.partition(" ")[2]: recorded[name] for name in recorded.files if name.startswith(moment)
    }
    convolutions = [name for name, value in own.items() if value.ndim == 4]
    for name in filter(re.compile("convShortcut").search, convolutions[:]):
        # Our wide ResNets make a unit's shortcut before its branch.
        convolutions.remove(name)
        convolutions.insert(convolutions.index(name.replace("convShortcut", "conv1")), name)
    kernels = [own[name].transpose(2, 3, 1, 0) for name in convolutions]
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
    return kernels, norms, denses


def by_kind(model):
    """Returns a model's convolutions, normalizations and dense layers in order of creation."""
    layers = [layer for layer in model.layers if layer.get_weights()]
    layers.sort(key=lambda layer: int((re.findall(r"_(\d+)$", layer.name) or [0])[0]))
    norms = [layer for layer in layers if "orm" in type(layer).__name__]
    denses = [layer for layer in layers if isinstance(layer, tf.keras.layers.Dense)]
    convs = [layer for layer in layers if layer not in norms and layer not in denses]
    convs.sort(key=lambda layer: layer.name != "whitening")
    return convs, norms, denses


def set_weights(model, recorded):
    kernels, statistics, dense = arrays(recorded, "before")
    convs, norms, denses = by_kind(model)
    for layer, kernel in zip(convs, kernels, strict=True):
        layer.set_weights([kernel])
    for layer, values in zip(norms, statistics, strict=True):
        layer.set_weights(values if layer.scale else values[1:])
    denses[0].set_weights(dense)


def largest_difference(model, recorded):
    """Returns the largest difference of an array after training, relative to its largest number."""
    kernels, statistics, dense = arrays(recorded, "after")
    convs, norms, denses = by_kind(model)
    pairs = [(layer.get_weights()[0], kernel) for layer, kernel in zip(convs, kernels, strict=True)]
    for layer, values in zip(norms, statistics, strict=True):
        pairs += zip(layer.get_weights(), values if layer.scale else values[1:], strict=True)
    pairs += zip(denses[0].get_weights(), dense, strict=True)
    return max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
