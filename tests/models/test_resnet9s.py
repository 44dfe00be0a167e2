"""ResNet-9s equal plain NumPy networks."""

import numpy as np
import pytest

from dawnbench_tf import models


def unit(net, x, *args, **kwargs):
    return net.relu(net.norm(net.conv(x, *args, **kwargs)))


def pooled(net, x):
    return net.max_pool(unit(net, x), 2, 2)


def residual(net, x):
    return x + unit(net, unit(net, x))


def resnet9(net, x):
    """Computes the network of the 24-epoch entry, from Page's description."""
    x = residual(net, pooled(net, unit(net, x)))
    x = residual(net, pooled(net, pooled(net, x)))
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


def baidunet9(net, x):
    """Computes the network of training.py of CIFAR10-Training-BaiduNet9."""
    x = residual(net, pooled(net, unit(net, x)))
    x = pooled(net, residual(net, pooled(net, x)))
    return net.dense(x.max((1, 2))) * 0.2


def baidunet8(net, x):
    """Computes the network of BaiduNet8.py."""
    x = residual(net, pooled(net, unit(net, x)))
    return net.dense(residual(net, pooled(net, x)).mean((1, 2)))


def kakao(net, x):
    """Computes `build_network` of torchskeleton's bin/dawnbench/cifar10.py."""
    x = residual(net, unit(net, unit(net, x), 2))
    x = unit(net, residual(net, pooled(net, x)), padding="valid")
    return net.dense(x.max((1, 2))) * 0.2


@pytest.mark.parametrize(
    ("name", "network", "side"),
    [
        ("resnet9", resnet9, 8),
        ("baidunet9", baidunet9, 8),
        ("baidunet8", baidunet8, 8),
        ("resnet9_kakao", kakao, 12),
    ],
)
def test_logits_equal_a_plain_numpy_network(plain, name, network, side):
    model = models.build(name, input_shape=(side, side, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), network(net, images), rtol=1e-3, atol=1e-3)


def test_other_authors_parameters_equal_a_count_by_hand():
    def count(convs, dense):
        return sum(side**2 * i * o + 2 * o for side, i, o in convs) + dense

    residual = [(3, 128, 128)] * 2 + [(3, 128, 256)] + [(3, 256, 256)] * 2
    first = [(3, 3, 64), (3, 64, 128)]
    assert models.get("baidunet8").parameters == count(first + residual, 257 * 10)
    last = (3, 256, 256)
    assert models.get("baidunet9").parameters == count([*first, *residual, last], 256 * 10)
    kakao = [(3, 3, 64), (5, 64, 128), *residual, (3, 256, 128)]
    assert models.get("resnet9_kakao").parameters == count(kakao, 128 * 10)


@pytest.mark.both_kerases
def test_whitened_logits_equal_a_plain_numpy_network(plain):
    model = models.build("resnet9_whitened", input_shape=(8, 8, 3))
    net, images = plain(model)
    model.get_layer("whitening").adapt(images)
    kernel = model.get_layer("whitening").get_weights()[0]
    expected = whitened(net, images, kernel)
    np.testing.assert_allclose(model(images), expected, rtol=1e-3, atol=1e-3)


def test_parameters_equal_a_count_by_hand():
    convs = [(64, 128), (128, 128), (128, 128), (128, 256), (256, 512), (512, 512), (512, 512)]
    kernels = sum(9 * before * after for before, after in convs)
    channels = 64 + sum(after for _, after in convs)
    plain = 9 * 3 * 64 + kernels + 2 * channels + 512 * 10
    assert models.get("resnet9").parameters == plain  # 6.57 million, as published
    assert models.get("resnet9_whitened").parameters == 27 * 64 + kernels + channels + 512 * 10
