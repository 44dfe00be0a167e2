"""Properties of every image model in the catalogue; readers: tests/models/test_readers.py.

Counts hold for every row. The others hold for every *kind* of row, rows that differ in size alone
being one kind, in the smallest size that the kind has: in the default suite for DEFAULT, in the
long mode for all.
"""

import math
import subprocess
import sys
from functools import cache, cached_property

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import factories, networks
from tests import warm
from tests.smallest import smallest

KERAS = tf.keras.layers


def family(name):
    return networks.family_of(models.get(name))


def side(name):
    """Of the smallest images, in pixels; of 4, the last stage's map would be one pixel."""
    return max(8, family(name).smallest_side(models.get(name).args))


IMAGES = [name for name in models.names() if models.get(name).inputs == "images"]
KINDS = {}  # the arguments that make the kind -> its first row's name
for _name in reversed(IMAGES):
    _args = smallest(_name)
    KINDS[(models.get(_name).family, *sorted(map(repr, _args.items())))] = _name
KINDS = sorted(KINDS.values(), key=IMAGES.index)
# Together they have every layer class and block but AmoebaNet's, whose smallest has 331 layers:
# test_amoebanets.py compares it with plain NumPy.
DEFAULT = {
    "resnet20_tf",  # pre-activation, leaky ReLU, padded channels
    "preact164",  # bottlenecks
    "resnet56_stochastic",
    "resnext29_8x64d",
    "densenet_bc_100_12",
    "resnet9_whitened",  # CELU, ghost BN
    "resnet9_mish",
    "hiverge94",  # GELU, SiLU
    "kervresnet34",
}
LEGACY = KERAS.Layer.__module__.startswith("tf_keras")  # the Keras that the commands train with
CLASSES = factories.TRAINING if LEGACY else factories.KERAS  # in `small`


def params(names, default):
    """Parametrizes over `names`; those not in `default` run in the long mode only."""
    return [pytest.param(n, marks=() if n in default else pytest.mark.long) for n in names]


class Kind:
    """The smallest model of a kind, built once for all tests, and its initial weights."""

    def __init__(self, name):
        self.name, self.images = name, batch(name)
        self.model = small(name)
        self.weights = self.model.get_weights()

    @cached_property
    def gradients(self):
        """Logits and gradients in inference mode, at the initial weights."""
        return tf.function(gradients)(self.model, self.images, training=False)


@pytest.fixture(scope="module", params=params(KINDS, DEFAULT))
def built(request):
    yield Kind(request.param)
    tf.keras.backend.clear_session()


@pytest.fixture
def kind(built):
    """A kind whose model has its initial weights again."""
    built.model.set_weights(built.weights)
    return built


def small(name, data_format="NHWC", classes=CLASSES, **overrides):
    """A kind's smallest model, from the same seed in each layout."""
    tf.keras.utils.set_random_seed(0)
    sides = (side(name), side(name))
    shape = (*sides, 3) if data_format == "NHWC" else (3, *sides)
    changes = {"input_shape": shape, "num_classes": 10, "data_format": data_format, **overrides}
    model = networks.build(models.get(name), {**smallest(name), **changes}, classes)
    for layer in model.layers:
        if layer.name == "whitening":  # refuses to train before
            images = batch(name)
            layer.adapt(images if data_format == "NHWC" else images.transpose(0, 3, 1, 2))
    return model


def batch(name, examples=8):
    return np.random.default_rng(0).normal(size=(examples, *[side(name)] * 2, 3)).astype("f")


def all_layers(model):
    for layer in model.layers:
        yield layer
        if hasattr(layer, "branch"):
            yield from all_layers(layer.branch)


def multiply_adds(layer):
    kernel = getattr(layer, "kernel", None)
    if kernel is None:
        return 0
    positions = math.prod(layer.output.shape[1:3]) if len(kernel.shape) == 4 else 1
    return math.prod(kernel.shape) * positions


def counts(model):
    """Trainable parameters, and multiply-adds of an image."""
    parameters = sum(math.prod(w.shape) for w in model.trainable_weights)
    return np.array([parameters, sum(map(multiply_adds, all_layers(model)))])


CIFAR = [name for name in IMAGES if models.get(name).family == "cifar_resnets"]


@pytest.mark.parametrize("name", params(IMAGES, DEFAULT))
def test_a_model_is_what_its_row_says(name):
    model, variant = models.build(name), models.get(name)
    assert tuple(counts(model)) == (variant.parameters, variant.multiply_adds)
    assert model.input_shape == (None, variant.image_size, variant.image_size, 3)
    assert model.name == name and model.output_shape == (None, variant.num_classes)
    assert model.outputs[0].dtype == tf.float32
    assert len(model.get_layer("features").output.shape) == 2
    assert not any(isinstance(layer, KERAS.Lambda) for layer in all_layers(model))
    tf.keras.backend.clear_session()


@cache
def first_counts(kind):
    """Depth rule of a kind of CIFAR ResNet, counts with a unit a stage, what a unit more adds."""
    args = dict(kind)
    basic = args.get("block") != "bottleneck"
    a_unit, extra = 6 if basic else 9, 4 if basic and "widen" in args else 2
    depths = (n * a_unit + extra for n in (1, 2))
    one, two = (counts(models.build("resnet8_v1_proj", **{**args, "depth": n})) for n in depths)
    return a_unit, extra, one, two - one


@pytest.mark.skipif(not LEGACY, reason="arithmetic; under tf-keras")
@pytest.mark.parametrize("name", params(CIFAR, ["resnet20_tf", "preact164"]))
def test_a_cifar_row_s_counts_follow_from_two_shallow_networks(name):
    """Each unit more adds what the unit before did: exact, and no ResNet-1202 to build."""
    variant = models.get(name)
    args = {key: value for key, value in variant.args.items() if key != "depth"}
    a_unit, extra, first, each = first_counts(tuple(sorted(args.items())))
    units = (variant.args["depth"] - extra) // a_unit
    assert variant.args["depth"] == units * a_unit + extra
    assert tuple(first + (units - 1) * each) == (variant.parameters, variant.multiply_adds)


def gradients(model, images, training):
    labels = np.arange(len(images)) % 10
    with tf.GradientTape() as tape:
        logits = model(images, training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses)
    return logits, tape.gradient(loss, model.trainable_weights)


@pytest.mark.both_kerases
def test_gradients_reach_every_weight(kind):
    _, by_weight = kind.gradients
    weights = kind.model.trainable_weights
    for weight, gradient in zip(weights, by_weight, strict=True):
        assert gradient.shape == weight.shape and np.any(gradient), weight.name


@pytest.mark.skipif(not LEGACY, reason="layouts are oneDNN's; under tf-keras")
def test_both_layouts_give_equal_outputs_and_gradients(kind):
    first = small(kind.name, "NCHW")
    first.set_weights(kind.weights)
    channels_first = kind.images.transpose(0, 3, 1, 2)
    other = tf.function(gradients)(first, channels_first, training=False)
    np.testing.assert_allclose(kind.gradients[0], other[0], atol=1e-4, rtol=1e-4)
    for a, b in zip(kind.gradients[1], other[1], strict=True):
        # Layouts round differently. On a CPU with AVX2 the input of one ReLU of resnet50_v1 has
        # another sign: gradients differ by 1.1 % in norm.
        assert np.linalg.norm(a - b) <= 0.03 * np.linalg.norm(b)
    if "stochastic" not in kind.name:  # whose draws no two models share
        outputs = tf.function(first)(channels_first, training=True)
        np.testing.assert_allclose(kind.model(kind.images, training=True), outputs, atol=1e-3)


def test_statistics_move_in_training_only(kind):
    model, images = kind.model, kind.images
    norms = [layer for layer in all_layers(model) if isinstance(layer, KERAS.BatchNormalization)]
    statistics = [value for layer in norms for value in (layer.moving_mean, layer.moving_variance)]
    assert statistics
    values = [tf.identity(value) for value in statistics]
    model(images, training=False)
    assert all(np.all(old == new) for old, new in zip(values, statistics, strict=True))
    for _ in range(20 if "stochastic" in kind.name else 1):  # a skipped block's stay
        model(images, training=True)
    assert all(np.any(old != new) for old, new in zip(values, statistics, strict=True))


@pytest.mark.skipif(not LEGACY, reason="operations are those of tf-keras")
def test_its_train_step_is_lowered_by_xla(kind):
    """XLA lowers the train step to HLO, as a TPU requires. No code is generated."""
    step = tf.function(lambda x: gradients(kind.model, x, training=True), jit_compile=True)
    images = tf.constant(kind.images)
    assert "HloModule" in step.experimental_get_compiler_ir(images)(stage="hlo")


@pytest.mark.parametrize("name", params(KINDS, ["hiverge94"]))
def test_compiled_by_xla_it_gives_the_same_logits(name):
    model, images = small(name), tf.constant(batch(name))
    compiled = tf.function(model, jit_compile=True)(images, training=False)
    np.testing.assert_allclose(compiled, model(images, training=False), atol=1e-4, rtol=1e-4)


def test_keras_s_layers_and_those_of_training_answer_alike(kind):
    other = factories.KERAS if LEGACY else factories.TRAINING
    model = small(kind.name, classes=other)
    model.set_weights(kind.weights)
    wanted = kind.model(kind.images, training=False)
    np.testing.assert_allclose(model(kind.images, training=False), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(not LEGACY, reason="precision is a policy of both; under tf-keras")
def test_it_runs_in_mixed_bfloat16(kind):
    mixed = small(kind.name, dtype="mixed_bfloat16")
    mixed.set_weights(kind.weights)
    wanted, outputs = (model(kind.images, training=False) for model in (kind.model, mixed))
    assert outputs.dtype == tf.float32 and mixed.get_layer("features").output.dtype == "bfloat16"
    assert {tf.as_dtype(weight.dtype) for weight in mixed.trainable_weights} == {tf.float32}
    assert np.abs(outputs - wanted).max() < 0.05 * np.abs(wanted).max()


def randomized(kind):
    """Randomizes the model's weights and BN statistics; returns its logits."""
    rng = np.random.default_rng(1)
    weights = [w + rng.uniform(0, 0.01, w.shape).astype(w.dtype) for w in kind.weights]
    kind.model.set_weights(weights)
    return kind.model(kind.images, training=False)


@pytest.mark.both_kerases
def test_it_comes_back_from_a_file_and_predicts_identically(kind, tmp_path):
    wanted = randomized(kind)
    kind.model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(again(kind.images, training=False), wanted)


@pytest.mark.parametrize("name", params(KINDS, ["resnet9_whitened"]))
def test_it_is_exported_and_another_build_takes_its_weights(name, tmp_path):
    kind, rebuilt = Kind(name), small(name)
    wanted = randomized(kind)
    kind.model.save_weights(tmp_path / "model.weights.h5")
    rebuilt.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(rebuilt(kind.images, training=False), wanted)
    rebuilt.export(str(tmp_path / "saved"))
    saved = tf.saved_model.load(str(tmp_path / "saved"))
    serve = saved.serve
    if name == "resnet9_mish":  # fails without XLA on CPUs with oneDNN: docs/models.md
        serve = tf.function(saved.serve, jit_compile=True)
    np.testing.assert_allclose(serve(kind.images), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not LEGACY, reason="that it learns is seen under tf-keras")
@pytest.mark.parametrize("name", params(KINDS, ["hiverge94"]))
def test_it_overfits_one_batch(name):
    model, images, labels = small(name), batch(name), np.arange(8)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # These networks divide their logits, by 64 and by 9. The head of hiverge94 has large weights.
    divided = ("hiverge94", "airbench94_muon", "airbench94_muon_unwhitened")
    rate = 0.03 if name in divided else 3e-3
    model.compile(tf.keras.optimizers.Adam(rate), loss, jit_compile=False)
    losses = [float(model.train_on_batch(images, labels))]
    while losses[-1] > 0.3 and len(losses) < 200:
        losses.append(float(model.train_on_batch(images, labels)))
    assert losses[0] > 2 and losses[-1] <= 0.3


MIRRORED = """
import sys
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
from tests.conformance.test_catalog import batch, small
for name in sys.argv[1:]:
    with strategy.scope():
        model = small(name)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1), loss, jit_compile=False)
    before = model.get_weights()
    found = model.fit(batch(name), np.arange(8), batch_size=8, verbose=0).history["loss"][0]
    assert np.isfinite(found), name
    moved = [not np.array_equal(a, b) for a, b in zip(before, model.get_weights())]
    assert np.mean(moved) > 0.5, (name, moved)
"""


@pytest.mark.parametrize("name", params(KINDS, []))
def test_it_trains_a_step_under_two_mirrored_devices(name):
    python = warm.python() if LEGACY else [sys.executable]
    done = subprocess.run([*python, "-c", MIRRORED, name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_no_family_is_named_like_a_variant():
    assert not {models.get(name).family for name in models.names()} & {*models.names()}


@pytest.mark.long
@pytest.mark.skipif(not LEGACY, reason="Keras's activations are functions, not layer classes")
def test_the_default_kinds_have_every_layer_class_and_activation():
    def parts(name):
        activation = models.get(name).activation.partition(",")[0]
        return {type(layer).__name__ for layer in all_layers(small(name))} | {activation}

    covered = set().union(*map(parts, DEFAULT))
    assert {name: parts(name) - covered for name in KINDS if parts(name) - covered} == {
        "amoebanet_d": {"Cropping2D", "Dropout"}
    }
