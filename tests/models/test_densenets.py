"""DenseNets equal a plain NumPy network and the paper's table."""

import numpy as np
import pytest

from dawnbench_tf import models


def densenet(net, x):
    """Computes a DenseNet-BC with two layers per block, from section 3 and table 1."""
    x = net.conv(x)
    for block in range(3):
        if block:
            x = net.average_pool(net.conv(x), 2)
        for _ in range(2):
            y = net.conv(net.relu(net.norm(x)))
            x = np.concatenate([x, net.conv(net.relu(net.norm(y)))], 3)
        x = net.relu(net.norm(x))  # BN and ReLU of the transition or of the head
    return net.dense(x.mean((1, 2)))


@pytest.mark.both_kerases
def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("densenet_bc_100_12", depth=16, growth=4, input_shape=(8, 8, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), densenet(net, images), rtol=1e-4, atol=1e-4)


def test_parameters_equal_a_count_by_hand():
    growth, per_block = 12, 16
    channels, total = 2 * growth, 3 * 9 * 2 * growth
    for block in range(3):
        for _ in range(per_block):
            total += 2 * channels + channels * 4 * growth + 2 * 4 * growth + 9 * 4 * growth * growth
            channels += growth
        total += 2 * channels
        if block < 2:
            total += channels * (channels // 2)
            channels //= 2
    total += channels * 10 + 10
    assert models.get("densenet_bc_100_12").parameters == total
    assert total / 1e6 == pytest.approx(0.8, abs=0.05)  # the paper's table 2
