"""ResNeXts equal a plain NumPy network and the paper's table."""

import numpy as np
import pytest

from dawnbench_tf import models
from tests.models.test_cifar_resnets import resnet


@pytest.mark.both_kerases
def test_logits_equal_a_plain_numpy_network(plain):
    args = {**models.get("resnext29_8x64d").args, "depth": 11, "cardinality": 4, "base_width": 8}
    model = models.build("resnext29_8x64d", **args, input_shape=(8, 8, 3))
    net, images = plain(model)
    np.testing.assert_allclose(model(images), resnet(net, images, args), rtol=1e-4, atol=1e-4)


def test_parameters_equal_a_count_by_hand():
    def unit(before, inner, after, groups):
        convs = before * inner + 9 * inner * inner // groups + inner * after
        shortcut = before * after + 2 * after if before != after else 0
        return convs + 2 * (2 * inner + after) + shortcut

    total, before = 3 * 9 * 64 + 2 * 64, 64
    for after, inner in ((256, 512), (512, 1024), (1024, 2048)):
        total += unit(before, inner, after, 8) + 2 * unit(after, inner, after, 8)
        before = after
    total += 1024 * 10 + 10
    assert models.get("resnext29_8x64d").parameters == total
    assert total / 1e6 == pytest.approx(34.4, abs=0.06)  # the paper's table 7
