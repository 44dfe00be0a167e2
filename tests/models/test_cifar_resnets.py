"""The CIFAR ResNets against a plain NumPy network, the original's logs, and themselves."""

import re

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import losses, models


class Plain:
    """A CIFAR ResNet in NumPy, inference only, written from the papers; weights in order of use."""

    def __init__(self, model, slope, epsilon):
        def of(kind):
            layers = [layer for layer in model.layers if isinstance(layer, kind)]
            made = {
                layer.name: int((re.findall(r"\d+$", layer.name) or [0])[0]) for layer in layers
            }
            return iter(sorted(layers, key=lambda layer: made[layer.name]))

        keras = tf.keras.layers
        self.convs, self.norms = of(keras.Conv2D), of(keras.BatchNormalization)
        self.dense = next(of(keras.Dense))
        self.slope, self.epsilon = slope, epsilon

    def conv(self, x, stride=1):
        kernel = next(self.convs).get_weights()[0]  # (k, k, in, out)
        k, size = kernel.shape[0], -(-x.shape[1] // stride)
        total = max((size - 1) * stride + k - x.shape[1], 0)
        pad = (total // 2, total - total // 2)
        padded = np.pad(x, [(0, 0), pad, pad, (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (1, 2))
        return np.einsum("bhwcij,ijco->bhwo", windows[:, ::stride, ::stride], kernel)

    def norm(self, x):
        *gamma, beta, mean, variance = next(self.norms).get_weights()
        return (x - mean) / np.sqrt(variance + self.epsilon) * (gamma[0] if gamma else 1) + beta

    def act(self, x):
        return np.where(x > 0, x, self.slope * x)

    def pad(self, x, filters, kind, stride):
        if stride > 1:
            b, h, w, c = x.shape
            blocks = x.reshape(b, h // 2, 2, w // 2, 2, c)
            x = blocks.mean((2, 4)) if kind == "pool_pad" else x[:, ::2, ::2]
        missing = (filters - x.shape[3]) // 2
        return np.pad(x, [(0, 0), (0, 0), (0, 0), (missing, missing)])

    def shortcut(self, x, filters, kind, stride):
        if x.shape[3] == filters:
            return x
        if kind.startswith("projection"):
            x = self.conv(x, stride)
            return self.norm(x) if kind == "projection_bn" else x
        return self.pad(x, filters, kind, stride)

    def unit(self, x, filters, stride, block, preactivation, first, kind):
        if preactivation and first:
            x = self.act(self.norm(x))
        skip = self.shortcut(x, filters, kind, stride)
        y = self.act(self.norm(x)) if preactivation and not first else x
        y = self.conv(y, stride)
        for _ in range(2 if block == "bottleneck" else 1):
            y = self.conv(self.act(self.norm(y)))
        return skip + y if preactivation else self.act(skip + self.norm(y))

    def logits(self, x, block, preactivation, kind):
        x = self.conv(x)
        x = x if preactivation else self.act(self.norm(x))
        for stage, filters in enumerate((16, 32, 64)):
            filters *= 4 if block == "bottleneck" else 1
            x = self.unit(x, filters, 2 if stage else 1, block, preactivation, not stage, kind)
        x = self.act(self.norm(x)) if preactivation else x
        kernel, bias = self.dense.get_weights()
        return x.mean((1, 2)) @ kernel + bias


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("resnet20_tf", 8),
        ("resnet164_b_tf", 11),
        ("resnet20_v1_pad", 8),
        ("resnet20_v1_proj", 8),
        ("resnet56_stochastic", 8),
    ],
)
def test_logits_equal_a_plain_numpy_network(name, depth):
    args = {
        "block": "basic",
        "preactivation": False,
        "shortcut": "projection_bn",
        **models.get(name).args,
    }
    model = models.build(name, depth=depth, final_survival=1.0, input_shape=(8, 8, 3))
    rng = np.random.default_rng(0)
    model.set_weights([w + rng.uniform(0, 0.3, w.shape).astype("f") for w in model.get_weights()])
    images = rng.normal(size=(4, 8, 8, 3)).astype("f")
    plain = Plain(model, args.get("leaky_slope", 0), args.get("norm_epsilon", 1e-5))
    wanted = plain.logits(images, args["block"], args["preactivation"], args["shortcut"])
    np.testing.assert_allclose(model(images).numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "logged"),  # the first loss in the original's logs, L2 term included
    [
        ("resnet20_tf", 2.68),
        ("resnet56_tf", 3.34),
        ("resnet164_nb_tf", 5.4),
        ("resnet164_b_tf", 8.4),
    ],
)
def test_first_loss_of_the_seeds_is_the_one_they_logged(name, logged):
    tf.keras.utils.set_random_seed(0)
    model = models.build(name)
    losses.add_weight_decay(model, 5e-4)
    images = np.random.default_rng(0).normal(size=(64, 32, 32, 3)).astype("f")
    labels = np.arange(64) % 10
    loss = losses.softmax_cross_entropy()(labels, model(images, training=True)) + model.losses[0]
    assert float(loss) == pytest.approx(logged, rel=0.02)


def gradients(model, images, labels):
    with tf.GradientTape() as tape:
        outputs = model(images, training=True)
        loss = losses.softmax_cross_entropy()(labels, outputs)
    return outputs, tape.gradient(loss, model.trainable_variables)


@pytest.mark.parametrize(
    "name", ["resnet20_tf", "resnet164_b_tf", "resnet20_v1_pad", "resnet20_v1_proj"]
)
def test_nhwc_and_nchw_give_equal_outputs_and_gradients(name):
    depth = 11 if models.get(name).args.get("block") else 8
    last, first = (
        models.build(name, depth=depth, data_format=layout) for layout in ("NHWC", "NCHW")
    )
    first.set_weights(last.get_weights())
    images = np.random.default_rng(0).normal(size=(8, 32, 32, 3)).astype("f")
    labels = np.arange(8)
    both = [
        tf.function(gradients)(model, tf.constant(x), labels)
        for model, x in ((last, images), (first, images.transpose(0, 3, 1, 2)))
    ]
    np.testing.assert_allclose(both[0][0], both[1][0], atol=1e-4)
    for one, other in zip(*(gradient for _, gradient in both), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"depth": 57}, "`depth` should be 6n+2 with basic blocks. Received: depth=57"),
        ({"depth": 21, "block": "bottleneck"}, "`depth` should be 9n+2 with bottleneck blocks"),
        ({"depth": 2}, "Received: depth=2"),
        ({"depth": 20, "block": "dense"}, "`block` should be one of"),
        ({"depth": 20, "shortcut": "none"}, "`shortcut` should be one of"),
        ({"depth": 20, "final_survival": 0}, "`final_survival` should be in (0, 1]. Received"),
        ({"depth": 20, "final_survival": 1.1}, "Received: final_survival=1.1"),
        ({"depth": 20, "data_format": "channels_last"}, "`data_format` should be one of"),
        ({"depth": 20, "input_shape": (3, 32, 32)}, "`input_shape` should be (height, width, chan"),
        ({"depth": 20, "input_shape": (32, 32)}, "`input_shape` should be"),
    ],
)
def test_impossible_arguments_are_refused_in_one_line(args, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        models.cifar_resnets.build(**args)
    assert "\n" not in str(error.value)
