"""basenet equals a plain NumPy network."""

import numpy as np

from dawnbench_tf import models


def basenet(net, x):
    """Computes ResNet18 of bkj/basenet, examples/cifar10.py; its layers in their order there."""
    x = net.relu(net.norm(net.conv(x)))
    for strides in (1, 1, 2, 1, 2, 1, 2, 1):
        active = net.relu(net.norm(x))
        # Our network makes the shortcut last.
        branch = net.conv(net.relu(net.norm(net.conv(active, strides))))
        x = branch + (net.conv(active, strides) if strides > 1 else x)
    return net.dense(np.concatenate([x.mean((1, 2)), x.max((1, 2))], 1))


def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("basenet", input_shape=(16, 16, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), basenet(net, images), rtol=1e-3, atol=1e-3)


def test_parameters_equal_a_count_by_hand():
    blocks = [(64, 64), (64, 64), (64, 128), (128, 128), (128, 256), *[(256, 256)] * 3]
    convs = sum(9 * before * after + 9 * after * after for before, after in blocks)
    norms = sum(2 * before + 2 * after for before, after in blocks)
    shortcuts = 64 * 128 + 128 * 256 + 256 * 256
    stem = 27 * 64 + 2 * 64
    assert models.get("basenet").parameters == stem + convs + norms + shortcuts + 513 * 10
