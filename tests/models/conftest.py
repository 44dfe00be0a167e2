"""Layers in NumPy, for inference, that tests compare models with."""

import re

import numpy as np
import pytest
import tensorflow as tf

KERAS = tf.keras.layers


def layers_of(kind, model):
    """Returns a model's layers of a kind in order of creation: the number that ends their names."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, kind)]
    return sorted(layers, key=lambda layer: int((re.findall(r"_(\d+)$", layer.name) or [0])[0]))


class Plain:
    """NumPy layers, NHWC, that use a Keras model's weights in order of creation."""

    def __init__(self, model, padding="symmetric"):
        kinds = KERAS.Conv2D, KERAS.BatchNormalization, KERAS.Dense
        self.convs, self.norms, self.denses = (iter(layers_of(kind, model)) for kind in kinds)
        self.padding = padding

    def conv(self, x, stride=1, groups=1, padding=None):
        kernel, *bias = next(self.convs).get_weights()  # (rows, columns, in / groups, out)
        pads = [
            self._pad(side, size, stride, padding or self.padding)
            for side, size in zip(x.shape[1:3], kernel.shape[:2], strict=True)
        ]
        windows = _windows(np.pad(x, [(0, 0), *pads, (0, 0)]), kernel.shape[:2], stride)
        parts = zip(np.split(windows, groups, 3), np.split(kernel, groups, 3), strict=True)
        outputs = [np.einsum("bhwcij,ijco->bhwo", one, part, optimize=True) for one, part in parts]
        return np.concatenate(outputs, 3) + sum(bias)

    @staticmethod
    def _pad(side, size, stride, padding):
        if padding == "valid":
            return (0, 0)
        total = max((-(-side // stride) - 1) * stride + size - side, 0)
        return (total // 2, total - total // 2) if padding == "same" else (size // 2, size // 2)

    def norm(self, x):
        layer = next(self.norms)
        *gamma, beta, mean, variance = layer.get_weights()
        return (x - mean) / np.sqrt(variance + layer.epsilon) * (gamma[0] if gamma else 1) + beta

    def dense(self, x):
        kernel, *bias = next(self.denses).get_weights()
        return x @ kernel + sum(bias)

    @staticmethod
    def max_pool(x, size, stride, pad=0):
        x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
        return _windows(x, (size, size), stride).max((4, 5))

    @staticmethod
    def average_pool(x, stride):
        return _windows(x, (stride, stride), stride).mean((4, 5))

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)


def _windows(x, sizes, stride):
    windows = np.lib.stride_tricks.sliding_window_view(x, sizes, (1, 2))
    return windows[:, ::stride, ::stride]  # (batch, height, width, channels, *sizes)


@pytest.fixture
def plain():
    """Returns a function that randomizes a model; it returns its NumPy layers and images."""

    def make(model, padding="symmetric"):
        rng = np.random.default_rng(0)
        model.set_weights([_randomized(w, rng) for w in model.get_weights()])
        return Plain(model, padding), rng.normal(size=(4, *model.input_shape[1:])).astype("f")

    return make


def _randomized(weight, rng):
    if weight.dtype.kind != "f":
        return weight
    scaled = weight * rng.uniform(0.5, 1.5, weight.shape)
    return (scaled + rng.uniform(0, 0.1, weight.shape) * (weight.ndim == 1)).astype("f")
