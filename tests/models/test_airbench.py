"""airbench networks equal a plain NumPy network written from Jordan's description."""

import numpy as np
import pytest
from scipy.special import erf, expit

from dawnbench_tf import models


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def silu(x):
    return x * expit(x)


def whitened(model, x):
    """Computes whitening of 2x2 patches."""
    bias, kernel = sorted((w.numpy() for w in model.get_layer("whitening").weights), key=np.ndim)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2))
    return np.einsum("bhwcij,ijco->bhwo", windows, kernel) + bias


def network(net, x, convolutions, act=gelu, divisor=9):
    """Computes what follows the first convolution: three groups and a global max pool."""
    x = gelu(x)
    for _ in range(3):
        x = act(net.norm(net.max_pool(net.conv(x), 2, 2)))
        branch = net.norm(net.conv(x))
        if convolutions == 3:
            branch = net.norm(net.conv(act(branch))) + x
        x = act(branch)
    return net.dense(x.max((1, 2))) / divisor


@pytest.mark.both_kerases
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("airbench94", (2,)),
        ("airbench96", (3,)),
        ("airbench94_muon", (2, gelu, 12)),
        ("hiverge94", (2, silu, 12)),
    ],
)
def test_logits_equal_a_plain_numpy_network(name, arguments, plain):
    model = models.build(name, input_shape=(17, 17, 3), widths=(8, 16, 12))
    net, images = plain(model)
    model.get_layer("whitening").adapt(images)
    expected = network(net, whitened(model, images), *arguments)
    np.testing.assert_allclose(model(images), expected, rtol=1e-3, atol=1e-3)


def test_without_whitening_a_trained_convolution_is_first(plain):
    model = models.build("airbench94_muon_unwhitened", input_shape=(17, 17, 3), widths=(8, 16, 12))
    net, images = plain(model)
    assert model.trainable_variables[0].shape == (2, 2, 3, 24)
    expected = network(net, net.conv(images, padding="valid"), 2, gelu, 12)
    np.testing.assert_allclose(model(images), expected, rtol=1e-3, atol=1e-3)


def test_convolutions_are_initialized_as_the_identity():
    model = models.build("airbench94")
    kernel = model.layers[3].get_weights()[0]  # (3, 3, 24, 64)
    assert kernel.shape == (3, 3, 24, 64)
    identity = np.zeros((3, 3, 24, 24))
    identity[1, 1] = np.eye(24)
    np.testing.assert_array_equal(kernel[..., :24], identity)
    others, most = kernel[..., 24:], (24 * 9) ** -0.5
    assert most * 0.99 < np.abs(others).max() <= most
    np.testing.assert_allclose(others.std(), most / 3**0.5, rtol=0.05)


@pytest.mark.parametrize("name", ["airbench94_muon", "hiverge94"])
def test_head_and_whitening_of_the_version_for_muon_start_at_random(name):
    model = models.build(name)
    head = model.layers[-2].get_weights()[0]
    assert head.shape == (256, 10) and head.std() == pytest.approx(1, abs=0.03)
    assert np.abs(head).max() <= 3**0.5  # uniform
    (bias,) = (w.numpy() for w in model.get_layer("whitening").trainable_weights)
    assert 0.15 < np.abs(bias).max() <= 12**-0.5


def test_parameters_equal_the_published_count():
    model = models.build("airbench94")
    statistics = sum(2 * layer.beta.shape[0] for layer in model.layers if hasattr(layer, "beta"))
    assert model.count_params() - statistics == 1_971_640  # includes frozen filters
