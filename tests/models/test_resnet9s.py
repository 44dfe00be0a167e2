"""Both ResNet-9s equal a plain NumPy network."""

import re

import numpy as np
import pytest

from dawnbench_tf import models


def resnet9(net, x):
    """Computes the network of the 24-epoch entry, from Page's description."""

    def unit(x):
        return net.relu(net.norm(net.conv(x)))

    x = net.max_pool(unit(unit(x)), 2, 2)
    x = x + unit(unit(x))
    x = net.max_pool(unit(x), 2, 2)
    x = net.max_pool(unit(x), 2, 2)
    x = x + unit(unit(x))
    return net.dense(x.max((1, 2))) * 0.125


def whitened(net, x, kernel):
    """Computes the network of the 10-epoch recipe: whitening, pools before BN, CELU 0.3."""

    def act(x):
        return np.where(x > 0, x, 0.3 * np.expm1(np.minimum(x, 0) / 0.3))

    def unit(x):
        return act(net.norm(net.conv(x)))

    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    x = unit(np.einsum("bhwcij,ijco->bhwo", windows, kernel))
    for residual in (True, False, True):
        x = act(net.norm(net.max_pool(net.conv(x), 2, 2)))
        x = x + unit(unit(x)) if residual else x
    return net.dense(x.max((1, 2))) / 16


def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("resnet9", input_shape=(8, 8, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), resnet9(net, images), rtol=1e-3, atol=1e-3)


def test_whitened_logits_equal_a_plain_numpy_network(plain):
    model = models.build("resnet9_whitened", input_shape=(8, 8, 3))
    net, images = plain(model)
    model.get_layer("whitening").adapt(images)
    kernel = model.get_layer("whitening").get_weights()[0]
    expected = whitened(net, images, kernel)
    np.testing.assert_allclose(model(images), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.one_keras
def test_parameters_equal_a_count_by_hand():
    convs = [(64, 128), (128, 128), (128, 128), (128, 256), (256, 512), (512, 512), (512, 512)]
    kernels = sum(9 * before * after for before, after in convs)
    channels = 64 + sum(after for _, after in convs)
    plain = 9 * 3 * 64 + kernels + 2 * channels + 512 * 10
    assert models.get("resnet9").parameters == plain  # 6.57 million, as published
    assert models.get("resnet9_whitened").parameters == 27 * 64 + kernels + channels + 512 * 10


@pytest.mark.one_keras
def test_an_input_too_small_for_the_strides_is_refused():
    words = (
        "`input_shape` should be (height, width, channels) in NHWC, with sides of at least 8 pix"
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        models.build("resnet9", input_shape=(4, 4, 3))
