"""Wide ResNets equal a plain NumPy network and the paper's table."""

import numpy as np
import pytest

from dawnbench_tf import models
from tests.models.test_cifar_resnets import resnet


def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build("wrn_16_8", depth=10, widen=2, input_shape=(8, 8, 3))
    net, images = plain(model)
    expected = resnet(net, images, {**models.get("wrn_16_8").args, "widen": 2})
    np.testing.assert_allclose(model(images), expected, rtol=1e-4, atol=1e-4)


def test_parameters_equal_the_paper_s_table_5():
    for name, millions in (("16_8", 11.0), ("28_10", 36.5)):
        assert models.get(f"wrn_{name}").parameters / 1e6 == pytest.approx(millions, abs=0.05)
