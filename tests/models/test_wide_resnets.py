"""Wide ResNets equal a plain NumPy network and the paper's table."""

import numpy as np
import pytest

from dawnbench_tf import models


def wrn(net, x):
    """Computes a WRN with one unit per stage, from figure 1 and table 1."""
    x = net.conv(x)
    for stride in (1, 2, 2):
        active = net.relu(net.norm(x))
        shortcut, y = net.conv(active, stride), net.conv(active, stride)
        x = shortcut + net.conv(net.relu(net.norm(y)))
    return net.dense(net.relu(net.norm(x)).mean((1, 2)))


def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("wrn_16_8", depth=10, widen=2, input_shape=(8, 8, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), wrn(net, images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "millions"), [("16_8", 11.0), ("28_10", 36.5)])
def test_parameters_equal_the_paper_s_table_5(name, millions):
    assert models.get(f"wrn_{name}").parameters / 1e6 == pytest.approx(millions, abs=0.05)
