"""CIFAR ResNets equal a plain NumPy network, the papers' tables and the seeds' logged losses."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models


def pad(x, filters, kind, stride):
    if stride > 1:
        b, h, w, c = x.shape
        pairs = x.reshape(b, h // 2, 2, w // 2, 2, c)
        x = pairs.mean((2, 4)) if kind == "pool_pad" else x[:, ::2, ::2]
    missing = (filters - x.shape[3]) // 2
    return np.pad(x, [(0, 0), (0, 0), (0, 0), (missing, missing)])


def resnet(net, x, args):
    """Computes a CIFAR ResNet with one unit per stage, from the papers and the seeds."""

    def act(x):
        return np.where(x > 0, x, args.get("leaky_slope", 0) * x)

    preactivation, kind = args.get("preactivation"), args.get("shortcut", "projection_bn")
    bottleneck = args.get("block") == "bottleneck"
    x = net.conv(x)
    x = x if preactivation == "widening" else act(net.norm(x))
    for stage, filters in enumerate((16, 32, 64)):
        filters *= args.get("widen", 1) * (4 if bottleneck else 1)
        stride = 2 if stage else 1
        widens = x.shape[3] != filters
        skip = y = x
        if preactivation == "widening" or (preactivation == "first" and stage):
            y = act(net.norm(x))
            skip = y if preactivation == "widening" and widens else x
        if widens and kind.startswith("projection"):
            skip = net.conv(skip, stride)
            skip = net.norm(skip) if kind == "projection_bn" else skip
        elif widens:
            skip = pad(skip, filters, kind, stride)
        strides = [stride, 1]
        if bottleneck:
            strides = [stride, 1, 1] if args.get("strided") == "1x1" else [1, stride, 1]
        for number, step in enumerate(strides):
            groups = args.get("cardinality", 1) if number == 1 else 1
            y = net.conv(act(net.norm(y)) if number else y, step, groups)
        x = skip + y if preactivation else act(skip + net.norm(y))
    x = act(net.norm(x)) if preactivation else x
    return net.dense(x.mean((1, 2)))


@pytest.mark.both_kerases
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("resnet20_tf", 8),
        ("resnet164_b_tf", 11),
        ("resnet20_v1_pad", 8),
        ("resnet20_v1_proj", 8),
        ("resnet56_stochastic", 8),
        ("preact110", 8),
        ("preact164", 11),
    ],
)
def test_logits_equal_a_plain_numpy_network(name, depth, plain):
    model, args = models.build(name, depth=depth, input_shape=(8, 8, 3)), models.get(name).args
    net, images = plain(model, args.get("padding", "symmetric"))
    np.testing.assert_allclose(model(images), resnet(net, images, args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "logged"),  # first loss in the seeds' logs, including the L2 term
    [
        ("resnet20_tf", 2.68),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("resnet56_tf", 3.34), ("resnet164_nb_tf", 5.4), ("resnet164_b_tf", 8.4))
        ),
    ],
)
def test_the_first_loss_equals_the_seeds_logs(name, logged):
    tf.keras.utils.set_random_seed(0)
    model = models.build(name)
    images = np.random.default_rng(0).normal(size=(64, 32, 32, 3)).astype("f")
    logits = model(images, training=True)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(np.arange(64) % 10, logits)
    kernels = [weight for weight in model.trainable_weights if len(weight.shape) > 1]
    decay = 5e-4 * sum(map(tf.nn.l2_loss, kernels))
    assert float(tf.reduce_mean(losses) + decay) == pytest.approx(logged, rel=0.02)


def test_parameters_equal_he_et_al_s_table_6():
    for depth, millions in {20: "0.27", 32: "0.46", 44: "0.66", 56: "0.85", 110: "1.7"}.items():
        ours = models.get(f"resnet{depth}_v1_pad").parameters / 1e6
        assert f"{ours:.2g}" == millions, depth


@pytest.mark.parametrize(
    ("name", "scale"),
    [("resnet20_tf", 3), ("preact110", 1), ("resnet20_v1_proj", 1), ("resnet8_v1_pad", 3)],
)
def test_the_dense_layer_is_initialized_as_in_its_source(name, scale):
    """Uniform to sqrt(3 / fan-in) in the TensorFlow seeds; to 1 / sqrt(fan-in) in PyTorch."""
    kernel, biases = models.build(name, depth=8).trainable_variables[-2:]
    limit = (scale / kernel.shape[0]) ** 0.5
    assert 0.97 < np.abs(kernel.numpy()).max() / limit <= 1
    assert (np.abs(biases.numpy()).max() > 0.3 * limit) == (scale == 1)
