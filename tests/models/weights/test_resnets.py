"""Published weights load into our ResNets; other files are refused in one line, without effect.

Those of keras.applications: test_imagenet_resnets.py.
"""

import json
import struct

import h5py
import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models


def resnet8():
    """Returns weights of a CIFAR ResNet in torchvision's names and layouts, all different."""
    rng, weights = np.random.default_rng(0), {}

    def add(conv, bn, filters, inputs, size):
        values = rng.normal(size=(filters, inputs, size, size)) / (inputs * size**2) ** 0.5
        weights[f"{conv}.weight"] = values.astype("f")
        for leaf in ("weight", "bias", "running_mean", "running_var"):
            weights[f"{bn}.{leaf}"] = rng.uniform(0.5, 1.5, filters).astype("f")

    add("conv1", "bn1", 16, 3, 3)
    for stage, inputs, filters in ((1, 16, 16), (2, 16, 32), (3, 32, 64)):
        unit = f"layer{stage}.0"
        add(f"{unit}.conv1", f"{unit}.bn1", filters, inputs, 3)
        add(f"{unit}.conv2", f"{unit}.bn2", filters, filters, 3)
        if inputs != filters:
            add(f"{unit}.downsample.0", f"{unit}.downsample.1", filters, inputs, 1)
    weights["fc.weight"] = rng.normal(size=(10, 64)).astype("f")
    weights["fc.bias"] = rng.normal(size=10).astype("f")
    return weights


def logits(weights, images):
    """Computes the network from weights by torchvision's names."""

    def unit(x, conv, bn, stride=1):
        kernel = weights[f"{conv}.weight"].transpose(2, 3, 1, 0)
        pad = [[0, 0], *[[kernel.shape[0] // 2] * 2] * 2, [0, 0]]
        x = tf.nn.conv2d(tf.pad(x, pad), kernel, stride, "VALID")
        x = (x - weights[f"{bn}.running_mean"]) / np.sqrt(weights[f"{bn}.running_var"] + 1e-5)
        return x * weights[f"{bn}.weight"] + weights[f"{bn}.bias"]

    x = tf.nn.relu(unit(images, "conv1", "bn1"))
    for stage, stride in ((1, 1), (2, 2), (3, 2)):
        name = f"layer{stage}.0"
        branch = tf.nn.relu(unit(x, f"{name}.conv1", f"{name}.bn1", stride))
        branch = unit(branch, f"{name}.conv2", f"{name}.bn2")
        if stride > 1:
            x = unit(x, f"{name}.downsample.0", f"{name}.downsample.1", stride)
        x = tf.nn.relu(x + branch)
    return tf.reduce_mean(x, [1, 2]) @ weights["fc.weight"].T + weights["fc.bias"]


def write(path, weights):
    """Writes a .safetensors file with its tensors sorted by name, as the library does."""
    header, start = {}, 0
    for name, value in sorted(weights.items()):
        end = start + value.nbytes
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    values = b"".join(value.tobytes() for _, value in sorted(weights.items()))
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return path


@pytest.fixture
def images():
    return np.random.default_rng(1).normal(size=(2, 32, 32, 3)).astype("f")


@pytest.fixture(scope="module")
def model():
    return models.build("resnet8_v1_proj")


@pytest.mark.both_kerases
def test_logits_equal_those_of_the_published_network(tmp_path, model, images):
    weights = resnet8()
    models.load_published(model, write(tmp_path / "x.safetensors", weights))
    expected = logits(weights, images)
    np.testing.assert_allclose(model(images), expected, atol=1e-5 * np.abs(expected).max())


def test_a_bias_before_bn_is_subtracted_from_its_mean(tmp_path, model, images):
    weights = resnet8()
    bias = np.linspace(-1, 1, 32, dtype="f")
    file = write(tmp_path / "x.safetensors", {**weights, "layer2.0.conv1.bias": bias})
    models.load_published(model, file)
    weights["layer2.0.bn1.running_mean"] = weights["layer2.0.bn1.running_mean"] - bias
    np.testing.assert_allclose(model(images), logits(weights, images), atol=1e-4)


def test_a_backbone_and_another_head_take_all_but_the_file_s_head(tmp_path, model):
    weights, features = resnet8(), model.get_layer("features").output
    path = write(tmp_path / "x.safetensors", weights)
    bare = {name: value for name, value in weights.items() if not name.startswith("fc.")}
    body = write(tmp_path / "body.safetensors", bare)
    hidden = tf.keras.layers.Dense(5, "relu")(features)
    for own in (features, tf.keras.layers.Dense(3)(hidden)):
        network = tf.keras.Model(model.input, own)
        with pytest.raises(ValueError, match="1 layers of kind dense layer, .*; new_head=True"):
            models.load_published(network, path)
        for file in (path, body):
            model.layers[1].kernel.assign(tf.zeros_like(model.layers[1].kernel))
            assert not models.load_published(network, file, new_head=True)
            wanted = weights["conv1.weight"].transpose(2, 3, 1, 0)
            np.testing.assert_array_equal(model.layers[1].kernel, wanted)
    with pytest.raises(ValueError, match="network 0; load it before the network is wrapped"):
        models.load_published(tf.keras.Sequential([model]), path)


WRONG = {
    "no weights at all": (
        lambda weights: {},
        "it has no layer with a known name; the first releases of Keras 3",
    ),
    "another depth": (
        lambda weights: {k: v for k, v in weights.items() if "layer3" not in k},
        "it has 6 layers of kind convolution, the network 9",
    ),
    "a tensor missing": (
        lambda weights: {k: v for k, v in weights.items() if k != "layer1.0.bn2.bias"},
        r"its layer1\.0\.bn2 lacks the beta",
    ),
    "other classes": (
        lambda weights: {**weights, "fc.weight": np.zeros((100, 64), "f")},
        r"fc has shape \(64, 100\), ours \(64, 10\); new_head=True loads all but the head, or",
    ),
    "attention in its blocks": (  # timm's ecaresnets
        lambda weights: {**weights, "layer1.0.se.conv.weight": np.zeros((1, 1, 5), "f")},
        r"its layer1\.0\.se\.conv is no layer of the network",
    ),
    "a layer of something else": (
        lambda weights: {**weights, "attention.weight": np.zeros((8, 8), "f")},
        "its attention is not a known layer name",
    ),
}


@pytest.mark.parametrize(("change", "reason"), WRONG.values(), ids=WRONG)
def test_another_network_is_refused_in_one_line(tmp_path, model, change, reason):
    before = model.get_weights()
    file = write(tmp_path / "x.safetensors", change(resnet8()))
    with pytest.raises(ValueError, match=reason) as refusal:
        models.load_published(model, file)
    assert "\n" not in str(refusal.value) and str(file) in str(refusal.value)
    np.testing.assert_equal(model.get_weights(), before)


@pytest.mark.parametrize(
    "content", [b"", b"text", b"PK\3\4", b"\x80\x02", b"\x89HDF\r\n\x1a\n", b"\xff" * 99]
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, model, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="`file` should contain published weights of resnet8"):
        models.load_published(model, tmp_path / "x")


def test_a_missing_file_is_named(tmp_path, model):
    with pytest.raises(FileNotFoundError):
        models.load_published(model, tmp_path / "missing.pth")


def test_keras_applications_old_names_are_in_network_order_with_their_epsilon(tmp_path):
    """ResNet-26 in the names of keras.applications' ResNet-50 until 2018: BN's epsilon is 1e-3."""
    model, file = models.build("resnet50_v1", depth=26, num_classes=2), tmp_path / "old.h5"
    branches = ["a_branch1", *(f"{unit}_branch2{part}" for unit in "ab" for part in "abc")]
    names = ["conv1", *(f"res{stage}{branch}" for stage in "2345" for branch in branches)]
    with h5py.File(file, "w") as h5:
        for number, (name, shape) in enumerate(zip(names, _old_shapes(), strict=True)):
            h5[f"{name}/kernel:0"] = np.full(shape, number, "f")
            bn = "bn_conv1" if name == "conv1" else name.replace("res", "bn")
            for leaf in ("gamma", "beta", "moving_mean", "moving_variance"):
                h5[f"{bn}/{leaf}:0"] = np.full(shape[-1], number, "f")
        h5["fc1000/kernel:0"], h5["fc1000/bias:0"] = np.ones((2048, 2), "f"), np.ones(2, "f")
    models.load_published(model, file)
    norms = [layer for layer in model.layers if hasattr(layer, "moving_variance")]
    means = sorted(float(layer.moving_mean[0]) for layer in norms)
    assert means == list(range(len(names)))
    for layer in norms:
        number = float(layer.moving_mean[0])
        assert float(layer.moving_variance[0]) == pytest.approx(number + 1e-3 - 1e-5)
    with pytest.raises(ValueError, match="its res3a_branch2a has a stride, ours none: it is of"):
        models.load_published(models.build("resnet50_v1_5", depth=26, num_classes=2), file)


def test_a_bottleneck_network_with_its_stride_elsewhere_is_refused(tmp_path):
    weights = {"fc.weight": np.zeros((2, 2048), "f"), "fc.bias": np.zeros(2, "f")}
    units = ["0.downsample.0", *(f"{unit}.conv{part}" for unit in "01" for part in "123")]
    names = ["conv1", *(f"layer{stage}.{unit}" for stage in "1234" for unit in units)]
    for name, shape in zip(names, _old_shapes(), strict=True):
        weights[f"{name}.weight"] = np.zeros(np.array(shape)[[3, 2, 0, 1]], "f")
        bn = name.replace("conv", "bn").replace("downsample.0", "downsample.1")
        for leaf in ("weight", "bias", "running_mean", "running_var"):
            weights[f"{bn}.{leaf}"] = np.zeros(shape[-1], "f")
    with pytest.raises(ValueError, match=r"its layer2.0.conv2 has a stride, ours none"):
        file = write(tmp_path / "x.safetensors", weights)
        models.load_published(models.build("resnet50_v1", depth=26, num_classes=2), file)


def _old_shapes():
    """Shapes of the convolutions in the order of the names above."""
    shapes, inputs = [(7, 7, 3, 64)], 64
    for width in (64, 128, 256, 512):
        shapes.append((1, 1, inputs, 4 * width))
        for _ in "ab":
            shapes += [(1, 1, inputs, width), (3, 3, width, width), (1, 1, width, 4 * width)]
            inputs = 4 * width
    return shapes


def test_what_all_names_begin_with_falls_away(tmp_path, model, images):
    model.set_weights([0 * weight for weight in model.get_weights()])
    weights = {f"module._orig_mod.{name}": value for name, value in resnet8().items()}
    weights |= {"n_averaged": np.ones(1, "f"), "criterion.weight": np.ones(10, "f")}
    models.load_published(model, write(tmp_path / "wrapped.safetensors", weights))
    np.testing.assert_allclose(model(images), logits(resnet8(), images), atol=1e-4)


def test_a_file_of_two_networks_names_both(tmp_path, model):
    weights = resnet8()
    both = {f"{name}.{key}": value for name in ("query", "key") for key, value in weights.items()}
    with pytest.raises(ValueError, match="it has several networks: key, query; save one of them"):
        models.load_published(model, write(tmp_path / "x.safetensors", both))
