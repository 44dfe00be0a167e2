"""AmoebaNet-D equals a plain NumPy network built from Google's specification of its cells."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from tests.models.conftest import Plain, _windows

# tensorflow/tpu, amoeba_net/model_specs.py: operations of a cell, two for each new state; indices
# of the states that they read; whether a state is used within the cell, and so not in its output.
NORMAL = (
    "1x1 max_pool_3x3 none 1x7_7x1 1x1 1x7_7x1 max_pool_3x3 none avg_pool_3x3 1x1",
    (1, 1, 1, 0, 0, 0, 2, 2, 1, 5),
    (0, 1, 1, 0, 0, 1, 0),
)
REDUCTION = (
    "max_pool_2x2 max_pool_3x3 none 3x3 1x7_7x1 max_pool_3x3 none max_pool_2x2 avg_pool_3x3 1x1",
    (0, 0, 2, 1, 2, 2, 3, 1, 2, 3),
    (1, 1, 1, 1, 0, 0, 0),
)


def pool(x, size, stride, function, outside):
    """Pools with TensorFlow's "SAME" padding, of a value that `function` ignores."""
    pads = [Plain._pad(side, size, stride, "same") for side in x.shape[1:3]]
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=outside)
    return function(_windows(x, (size, size), stride), axis=(4, 5))


class Google:
    """Google's network_utils.py in NumPy."""

    def __init__(self, net):
        self.net = net

    def convolve(self, x, stride=1):
        return self.net.norm(self.net.conv(self.net.relu(x), stride))

    def halve(self, x):
        x = self.net.relu(x)
        shifted = np.pad(x, [(0, 0), (0, 1), (0, 1), (0, 0)])[:, 1:, 1:]
        halves = [self.net.conv(pixels[:, ::2, ::2]) for pixels in (x, shifted)]
        return self.net.norm(np.concatenate(halves, 3))

    def apply(self, operation, x, filters, stride):
        if operation == "none":
            return x
        if "pool" in operation:
            size = int(operation[-1])
            kinds = {"max": (np.max, -np.inf), "avg": (np.nanmean, np.nan)}
            x = pool(x, size, stride, *kinds[operation[:3]])
            return x if x.shape[3] == filters else self.net.norm(self.net.conv(x))
        if operation == "1x1":
            return self.convolve(x, stride)
        x = self.convolve(x)
        for _ in operation.split("_"):
            x = self.convolve(x, stride)
        return self.convolve(x)

    def cell(self, spec, x, previous, filters, stride):
        operations, indices, used = spec
        states = [self.convolve(x)]
        if previous is None:
            states.append(x)
        elif previous.shape[1] != x.shape[1]:
            states.append(self.halve(previous))
        else:
            states.append(self.convolve(previous) if previous.shape[3] != filters else previous)
        terms = [*zip(operations.split(), indices, strict=True)]
        for pair in zip(terms[::2], terms[1::2], strict=True):
            outputs = [
                self.apply(operation, states[index], filters, stride if index < 2 else 1)
                for operation, index in pair
            ]
            states.append(sum(outputs))
        return np.concatenate([s for s, u in zip(states, used, strict=True) if not u], 3)

    def features(self, images, cells, filters):
        """Returns the features, and the map that the auxiliary head reads."""
        outputs = [None, self.net.norm(self.net.conv(images, 2, padding="valid"))]
        for width in (filters // 4, filters // 2):
            outputs.append(self.cell(REDUCTION, outputs[-1], outputs[-2], width, 2))
        reductions = [int(part / 3 * cells) for part in (1.0, 2.0)]
        for number in range(cells):
            if number in reductions:
                filters *= 2
                outputs.append(self.cell(REDUCTION, outputs[-1], outputs[-2], filters, 2))
            outputs.append(self.cell(NORMAL, outputs[-1], outputs[-2], filters, 1))
            if number == reductions[1] - 1:
                middle = outputs[-1]
        return self.net.relu(outputs[-1]).mean((1, 2)), self.net.relu(middle)


def close(outputs, expected):
    """Compares with a tolerance relative to the largest logit: logits reach tens of thousands."""
    assert outputs.shape == expected.shape
    assert np.abs(outputs - expected).max() < 1e-5 * np.abs(expected).max()


def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("amoebanet_d", cells=6, filters=16, input_shape=(32, 32, 3))
    net, images = plain(model, "same")
    features, _ = Google(net).features(images, 6, 16)
    close(model(images, training=False), net.dense(features))


def test_heads_begin_as_google_s_and_equal_plain_numpy_ones_in_training(plain):
    sizes = {"cells": 3, "filters": 16, "input_shape": (96, 96, 3)}
    model = models.build("amoebanet_d", **sizes, dropout=0.0, auxiliary=True)
    for layer in [layer for layer in model.layers if isinstance(layer, tf.keras.layers.Dense)]:
        # network_arg_scope: variance_scaling_initializer(mode="FAN_OUT"), whose factor is 2.
        assert np.std(layer.kernel) == pytest.approx((2 / 1000) ** 0.5, rel=0.01)
        assert not np.any(layer.bias)
    net, images = plain(model, "same")
    features, middle = Google(net).features(images, 3, 16)
    x = middle[:, :5, :5].mean((1, 2), keepdims=True)  # of 6 x 6: one window
    for _ in range(2):
        x = net.relu(net.norm(net.conv(x, padding="valid")))
    expected = [net.dense(features), net.dense(x.mean((1, 2)))]
    close(model(images), expected[0])
    for layer in model.layers:  # training uses a batch's statistics: set BN to these
        layer.trainable = not isinstance(layer, tf.keras.layers.BatchNormalization)
    close(model(images, training=True), np.stack(expected, 1))


@pytest.mark.long
def test_size_is_that_of_gpipes_table_1():
    """arXiv 1811.06965: 82M for (18, 208), including the auxiliary head."""
    model = models.build("amoebanet_d", cells=18, filters=208, auxiliary=True)
    assert round(model.count_params() / 1e6) == 82
