"""ResNeXts equal a plain NumPy network and the paper's table."""

import re

import numpy as np
import pytest

from dawnbench_tf import models


def resnext(net, x, groups):
    """Computes a ResNeXt with one unit per stage, from section 5.3 and figure 3c."""
    x = net.relu(net.norm(net.conv(x)))
    for stride in (1, 2, 2):
        shortcut = net.norm(net.conv(x, stride))
        y = net.relu(net.norm(net.conv(x)))
        y = net.relu(net.norm(net.conv(y, stride, groups)))
        x = net.relu(shortcut + net.norm(net.conv(y)))
    return net.dense(x.mean((1, 2)))


@pytest.mark.both_kerases
def test_logits_equal_a_plain_numpy_network(plain):
    model = models.build(
        "resnext29_8x64d", depth=11, cardinality=4, base_width=8, input_shape=(8, 8, 3)
    )
    net, images = plain(model)
    np.testing.assert_allclose(model(images), resnext(net, images, 4), rtol=1e-4, atol=1e-4)


def test_parameters_equal_the_paper_s_table_7():
    assert models.get("resnext29_8x64d").parameters / 1e6 == pytest.approx(34.4, abs=0.06)


def test_parameters_equal_a_count_by_hand():
    def unit(before, inner, after, groups):
        convs = before * inner + 9 * inner * inner // groups + inner * after
        shortcut = before * after + 2 * after if before != after else 0
        return convs + 2 * (2 * inner + after) + shortcut

    total, before = 3 * 9 * 64 + 2 * 64, 64
    for after, inner in ((256, 512), (512, 1024), (1024, 2048)):
        total += unit(before, inner, after, 8) + 2 * unit(after, inner, after, 8)
        before = after
    assert models.get("resnext29_8x64d").parameters == total + 1024 * 10 + 10


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            {"depth": 28},
            "`depth` should be 9n+2 with bottleneck blocks, n >= 1. Received: depth=28",
        ),
        ({"cardinality": 0}, "`cardinality` should be at least 1. Received: cardinality=0"),
    ],
)
def test_impossible_arguments_are_refused(args, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        models.build("resnext29_8x64d", **args)
