"""Four-stage ResNets equal keras.applications, the model garden, slim, NumPy, published counts."""

import importlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from tests.models.conftest import layers_of

KERAS = tf.keras.layers
LEGACY = KERAS.Layer.__module__.startswith("tf_keras")


def randomize(model):
    """Gives every layer different random weights, including statistics and biases."""
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) > 1:
            weight.assign(rng.normal(0, np.prod(weight.shape[:-1]) ** -0.5, weight.shape))
        else:
            weight.assign(tf.identity(weight) + rng.uniform(-0.2, 0.2, weight.shape))


def same(model, other, side):
    images = np.random.default_rng(1).normal(size=(2, side, side, 3)).astype("f")
    expected, theirs = model(images, training=False), other(images, training=False)
    if isinstance(expected, dict):  # the model garden's stages
        expected = expected["5"]
    assert expected.shape == theirs.shape and np.abs(expected).max() > 0.1
    close(theirs, expected)


DEPTHS = [50, *(pytest.param(depth, marks=pytest.mark.long) for depth in (101, 152))]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("version", "row"), [("", "v1"), ("V2", "v2_keras")])
def test_outputs_equal_keras_applications(tmp_path, version, row, depth):
    arguments = {"input_shape": (64, 64, 3), "weights": None, "classes": 7}
    build = getattr(tf.keras.applications, f"ResNet{depth}{version}")
    theirs = build(**arguments, classifier_activation=None)
    # Keras's v1 has another BN epsilon, and biases in front of BN, without effect.
    sizes = {"input_shape": (64, 64, 3), "num_classes": 7}
    ours = models.build(f"resnet{depth}_{row}", **sizes, norm_epsilon=1.001e-5)
    randomize(theirs)
    file = tmp_path / ("weights.h5" if LEGACY else "model.weights.h5")
    theirs.save_weights(file)
    models.load_published(ours, file)
    same(theirs, ours, 64)


@pytest.mark.skipif(not LEGACY, reason="the model garden is of tf-keras")
@pytest.mark.parametrize("depth", DEPTHS)  # its 18 and 34 have one more projection
def test_features_equal_the_model_garden_s(depth):
    from official.vision.modeling import backbones

    # Its padding, "same", equals ours at odd sizes only; strides are in the 3x3.
    images = KERAS.InputSpec(shape=[None, 65, 65, 3])
    theirs = backbones.ResNet(depth, images, norm_epsilon=1e-3)
    ours = models.build(f"resnet{depth}_v1_5", input_shape=(65, 65, 3), norm_epsilon=1e-3)
    randomize(theirs)
    backbone = tf.keras.Model(ours.input, ours.get_layer("stage4").output)
    for kind in (KERAS.Conv2D, KERAS.BatchNormalization):
        sources = [layer for layer in theirs._flatten_layers() if isinstance(layer, kind)]
        for source, target in zip(sources, layers_of(kind, backbone), strict=True):
            target.set_weights(source.get_weights()[: len(target.weights)])
    same(theirs, backbone, 65)


@pytest.fixture
def slim(monkeypatch):
    """slim's resnet_v1; TensorFlow 2.20 looks for the layers that it uses in another module."""
    for name in ("base", "convolutional", "core", "normalization", "pooling"):
        module = importlib.import_module(f"tf_keras.src.legacy_tf_layers.{name}")
        monkeypatch.setitem(sys.modules, f"tf_keras.legacy_tf_layers.{name}", module)
    from tf_slim.nets import resnet_v1

    return resnet_v1


def randomized_slim(slim, depth, images):
    """Returns random weights of slim's network by layer, in order of creation, and its logits."""
    from tf_slim.ops.arg_scope import arg_scope

    v1, rng = tf.compat.v1, np.random.default_rng(0)
    with tf.Graph().as_default(), v1.Session() as session:
        with arg_scope(slim.resnet_arg_scope()):
            network = getattr(slim, f"resnet_v1_{depth}")
            logits, _ = network(tf.constant(images), 1000, is_training=False)
        layers, values = {}, {}
        for variable in v1.global_variables():
            value = rng.uniform(0.5, 1.5, variable.shape)
            if len(variable.shape) > 1:  # a kernel
                value = rng.normal(0, np.prod(variable.shape[:-1]) ** -0.5, variable.shape)
            values[variable.initializer.inputs[1]] = value
            layer, _, weight = variable.op.name.rpartition("/")
            layers.setdefault(layer, {})[weight] = value
        session.run([variable.initializer for variable in v1.global_variables()], values)
        return layers, session.run(logits)[:, 0, 0]


def copy_from_slim(layers, model):
    *convs, dense = (values for name, values in layers.items() if not name.endswith("BatchNorm"))
    norms = (values for name, values in layers.items() if name.endswith("BatchNorm"))
    for layer, values in zip(layers_of(KERAS.Conv2D, model), convs, strict=True):
        layer.set_weights([values["weights"]])
    for layer, values in zip(layers_of(KERAS.BatchNormalization, model), norms, strict=True):
        names = ("gamma", "beta", "moving_mean", "moving_variance")
        layer.set_weights([values[name] for name in names])
    (layer,) = layers_of(KERAS.Dense, model)
    layer.set_weights([dense["weights"][0, 0], dense["biases"]])


SLIM = [(50, 64), *(pytest.param(*size, marks=pytest.mark.long) for size in [(50, 97), (50, 224)])]
SLIM += [pytest.param(depth, 64, marks=pytest.mark.long) for depth in (101, 152)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.layer.apply. is deprecated")  # slim calls it
@pytest.mark.parametrize(("depth", "side"), SLIM)
def test_logits_equal_slim_s(slim, depth, side):
    images = np.random.default_rng(1).normal(size=(2, side, side, 3)).astype("f")
    layers, expected = randomized_slim(slim, depth, images.astype("d"))
    shape = (side, side, 3)
    model = models.build("resnet50_v1_slim", depth=depth, input_shape=shape, dtype="float64")
    copy_from_slim(layers, model)
    difference = np.abs(model(images, training=False) - expected).max()
    assert difference < 1e-10 * np.abs(expected).max()


def test_slim_s_strides_skip_the_pixels_that_v1_s_skip():
    """At odd sizes, where all paddings are equal, both give equal logits with equal weights."""
    sizes = {"depth": 26, "input_shape": (65, 65, 3)}
    v1, slim_s = (models.build(f"resnet50_{version}", **sizes) for version in ("v1", "v1_slim"))
    randomize(v1)
    slim_s.set_weights(v1.get_weights())
    same(v1, slim_s, 65)


def tweaked(net, x):
    """Computes ResNet-26d from figures 1 and 2 of the Bag of Tricks paper."""
    for stride in (2, 1, 1):  # ResNet-D's stem
        x = net.relu(net.norm(net.conv(x, stride)))
    x = net.max_pool(x, 3, 2, 1)
    for stage in range(4):
        for unit in range(2):
            stride = 2 if stage and not unit else 1
            skip = net.average_pool(x, stride) if stride == 2 else x
            skip = skip if unit else net.norm(net.conv(skip))
            y = net.relu(net.norm(net.conv(x)))
            y = net.relu(net.norm(net.conv(y, stride)))
            x = net.relu(skip + net.norm(net.conv(y)))
    return net.dense(x.mean((1, 2)))


def preactivated(net, x):
    """Computes ResNet-18 v2 (He et al. 2016); the first unit uses the stem's activation."""
    x = net.max_pool(net.relu(net.norm(net.conv(x, 2))), 3, 2, 1)
    for stage in range(4):
        for unit in range(2):
            stride = 2 if stage and not unit else 1
            y = x if stage == unit == 0 else net.relu(net.norm(x))
            skip = net.conv(y, stride) if stride == 2 else x
            y = net.conv(y, stride)
            x = skip + net.conv(net.relu(net.norm(y)))
    return net.dense(net.relu(net.norm(x)).mean((1, 2)))


def close(outputs, expected):
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


NETWORKS = {"resnet26d": tweaked, "resnet18_v2": preactivated}


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_equal_a_plain_numpy_network(name, plain):
    model = models.build(name, input_shape=(64, 64, 3), num_classes=7)
    net, images = plain(model)
    close(model(images), NETWORKS[name](net, images))


def kervolved(net, x, balance):
    """Computes KResNet18 of wang-chen/KervNets, models/kresnet.py; shortcuts come first here."""
    x = net.relu(net.norm((net.conv(x, padding="valid") + balance) ** 3))
    for stage in range(4):
        for unit in range(2):
            stride = 2 if stage and not unit else 1
            skip = net.norm(net.conv(x, stride)) if stride == 2 else x
            branch = net.norm(net.conv(net.relu(net.norm(net.conv(x, stride)))))
            x = net.relu(skip + branch)
    return net.dense(x.mean((1, 2)))


@pytest.mark.both_kerases
def test_kervresnet_s_logits_equal_a_plain_numpy_network(plain):
    model = models.build("kervresnet34", depth=18, width=8, input_shape=(18, 18, 3))
    net, images = plain(model)
    (polynomial,) = [layer for layer in model.layers if hasattr(layer, "balance")]
    close(model(images), kervolved(net, images, polynomial.get_weights()[0]))


def test_kervresnet_starts_as_in_pytorch_0_3():
    """Kernels and biases in +-1 / sqrt(fan-in), BN's scales in [0, 1), different in each layer."""
    model = models.build("kervresnet34", depth=18)
    assert [float(layer.balance) for layer in model.layers if hasattr(layer, "balance")] == [2]
    convs, norms = (layers_of(kind, model) for kind in (KERAS.Conv2D, KERAS.BatchNormalization))
    for layer in convs:
        for values in layer.get_weights():
            largest, limit = np.abs(values).max(), np.prod(layer.kernel.shape[:3]) ** -0.5
            assert 0.9 * limit < largest <= limit * (1 + 1e-6)
    assert [layer.use_bias for layer in convs] == [True] + [False] * 19
    scales = [layer.get_weights()[0] for layer in norms]
    assert all(0 <= scale.min() < 0.1 and 0.9 < scale.max() <= 1 for scale in scales)
    assert len({float(scale[0]) for scale in scales}) == len(scales) == 20


def test_kervresnet_s_parameters_equal_a_count_by_hand():
    widths, convs, norms = (64, 128, 256, 512), 27 * 64, 64
    for before, width, units in zip((64, *widths), widths, (3, 4, 6, 3), strict=False):
        projection = before * width if before != width else 0
        convs += 9 * before * width + (2 * units - 1) * 9 * width * width + projection
        norms += (2 * units + bool(projection)) * width
    stem = 64 + 1  # biases, balance
    assert models.get("kervresnet34").parameters == convs + 2 * norms + stem + 513 * 10


def test_parameters_and_multiply_adds_equal_published_counts():
    """torchvision and timm publish these numbers."""
    for name, millions, billions in (
        ("resnet18_v1", 11.69, 1.81),
        ("resnet34_v1", 21.80, 3.66),
        ("resnet50_v1", 25.56, 3.86),
        ("resnet50_v1_5", 25.56, 4.09),
        ("resnet101_v1_5", 44.55, 7.80),
        ("resnet152_v1_5", 60.19, 11.51),
        ("resnet26_v1_5", 16.00, 2.34),
        ("resnet26d", 16.01, 2.58),
    ):
        row = models.get(name)
        assert round(row.parameters / 1e6, 2) == millions, name
        assert round(row.multiply_adds / 1e9, 2) == billions, name


def test_with_zero_last_norm_units_start_as_their_shortcuts():
    """Then the features do not depend on the branches' kernels."""
    model = models.build("resnet26_v1_5", zero_last_norm=True, input_shape=(64, 64, 3))
    norms = layers_of(KERAS.BatchNormalization, model)
    assert sum(not layer.gamma.numpy().any() for layer in norms) == 8  # one per unit
    images = np.random.default_rng(0).normal(size=(2, 64, 64, 3)).astype("f")
    before = model(images).numpy()
    for layer in model.layers:
        if "conv2d" in layer.name and tuple(layer.kernel_size) == (3, 3):
            layer.kernel.assign(layer.kernel * 2)  # in branches only
    np.testing.assert_array_equal(model(images), before)
