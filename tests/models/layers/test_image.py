"""Layers for feature maps equal their papers' formulas or a plain NumPy version."""

import itertools
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models.layers import image
from tests import warm

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(4, 8, 8, 3)).astype("f")
SHORTCUT = RNG.normal(size=(4, 4, 4, 5)).astype("f")


def test_pooled_pairs_and_their_gradient_equal_tensorflow_s(monkeypatch):
    """In every precision and layout, with equal values in a window and with odd sides."""
    for dtype, layout, (rows, columns) in itertools.product(
        ("float64", "float32", "float16", "bfloat16"), ("NHWC", "NCHW"), ((7, 5), (6, 9))
    ):
        x = tf.cast(RNG.integers(-2, 3, (3, rows, columns, 2)), dtype)
        upstream = tf.cast(RNG.normal(size=(3, rows // 2, columns // 2, 2)), dtype)
        expected = tf.nn.max_pool2d(x, 2, 2, "VALID")
        settings = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
        tensors = {"orig_input": x, "orig_output": expected, "grad": upstream}
        gradient = tf.raw_ops.MaxPoolGrad(**tensors, **settings)
        if layout == "NCHW":
            x, upstream, expected, gradient = (
                tf.transpose(values, (0, 3, 1, 2)) for values in (x, upstream, expected, gradient)
            )
        with tf.GradientTape() as tape:
            tape.watch(x)
            pooled = image.pool_pairs(x, layout.index("H"))
        np.testing.assert_array_equal(pooled, expected)
        np.testing.assert_array_equal(tape.gradient(pooled, x, upstream), gradient)
    # On a GPU, in training, if the windows lie side by side.
    x, calls = tf.constant(IMAGES), []
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
    monkeypatch.setattr(image, "pool_pairs", lambda x, height: calls.append(height))
    for arguments, training in (
        ((2, 2), False),
        ((3, 2), True),
        ((2, 1), True),
        ((2, 2, "same"), True),  # of IMAGES' even sides: no padding
        ((2, 2), True),
    ):
        image.MaxPooling2D(*arguments)(x, training=training)
    image.MaxPooling2D(2, 2, "same")(x[:, :7], training=True)  # padded
    assert calls == [1, 1]


def branch():
    inputs = tf.keras.Input((8, 8, 3))
    outputs = tf.keras.layers.BatchNormalization()(tf.keras.layers.Conv2D(5, 3, 2, "same")(inputs))
    return tf.keras.Model(inputs, outputs)


def test_a_dropped_branch_does_no_work():
    inner = branch()
    layer = image.StochasticDepth(inner, 1e-9)
    before = inner.get_weights()
    with tf.GradientTape() as tape:
        outputs = tf.function(layer)([tf.constant(IMAGES), tf.constant(SHORTCUT)], training=True)
    np.testing.assert_array_equal(outputs, SHORTCUT)
    np.testing.assert_equal(inner.get_weights(), before)  # a skipped branch updates no BN
    assert not any(np.any(g) for g in tape.gradient(outputs, inner.trainable_variables))


def test_a_branch_is_kept_as_often_as_it_survives_and_divided_by_that():
    inner = branch()
    layer = tf.function(image.StochasticDepth(inner, 0.7))
    expected = SHORTCUT + inner(IMAGES, training=True) / 0.7
    inputs = [tf.constant(IMAGES), tf.constant(SHORTCUT)]
    outputs = [layer(inputs, training=True).numpy() for _ in range(2000)]
    kept = [output for output in outputs if (output != SHORTCUT).any()]
    assert abs(len(kept) / 2000 - 0.7) < 4 * (0.7 * 0.3 / 2000) ** 0.5  # standard errors
    for output in kept:
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("survival", [0, 1.1])
def test_a_survival_outside_0_to_1_is_refused(survival):
    with pytest.raises(ValueError, match=rf"`survival` should be in \(0, 1\].*survival={survival}"):
        image.StochasticDepth(branch(), survival)


def test_survival_falls_linearly_to_the_last_unit():
    model = models.build("resnet56_stochastic", depth=14)
    survivals = [layer.survival for layer in model.layers if hasattr(layer, "survival")]
    np.testing.assert_allclose(survivals, [1 - unit / 6 * 0.5 for unit in range(1, 7)])


def test_survival_of_one_equals_the_plain_network_exactly():
    sizes = {"depth": 8, "input_shape": (8, 8, 3)}
    certain = models.build("resnet56_stochastic", **sizes, final_survival=1.0)
    plain = models.build("resnet20_v1_pad", **sizes, shortcut="pool_pad")
    for ours, theirs in zip(plain.trainable_weights, certain.trainable_weights, strict=True):
        ours.assign(theirs)
    np.testing.assert_array_equal(certain(IMAGES, training=True), plain(IMAGES, training=True))


def test_the_same_seed_drops_the_same_blocks():
    def losses(by_xla=False):
        tf.keras.utils.set_random_seed(1)
        model = models.build("resnet56_stochastic", depth=14, input_shape=(8, 8, 3))
        step = tf.function(model, jit_compile=by_xla)
        return [float(tf.reduce_sum(step(IMAGES, training=True))) for _ in range(5)]

    assert losses() == losses() == pytest.approx(losses(by_xla=True), rel=1e-5)


@pytest.mark.parametrize("axis", [-1, 1])
def test_channels_are_padded_on_both_sides(axis):
    outputs = image.PadChannels(6, axis)(np.moveaxis(IMAGES, -1, axis)).numpy()
    expected = np.pad(IMAGES, [(0, 0), (0, 0), (0, 0), (1, 2)])
    np.testing.assert_array_equal(np.moveaxis(outputs, axis, -1), expected)


def ghost(axis, **kwargs):
    layer = image.GhostBatchNormalization(group=2, axis=axis, momentum=0.9, epsilon=1e-3, **kwargs)
    layer.build((None, 8, 8, 3) if axis == -1 else (None, 3, 8, 8))
    return layer


@pytest.mark.both_kerases
# traced: the batch size is unknown
@pytest.mark.parametrize(("axis", "traced"), [(-1, True), (1, False)])
def test_ghost_statistics_are_those_of_groups(axis, traced):
    layer = ghost(axis)
    groups = IMAGES.reshape(2, 2, 8, 8, 3)
    means, variances = (f((1, 2, 3), keepdims=True) for f in (groups.mean, groups.var))
    expected = ((groups - means) / np.sqrt(variances + 1e-3)).reshape(IMAGES.shape)

    def call(x):
        return layer(x, training=True)

    if traced:
        shape = [None, None, None, 3] if axis == -1 else [None, 3, None, None]
        call = tf.function(call, input_signature=[tf.TensorSpec(shape)])
    outputs = call(tf.constant(np.moveaxis(IMAGES, -1, axis)))
    np.testing.assert_allclose(np.moveaxis(outputs, axis, -1), expected, atol=1e-5)
    moved = 0.1 * means.mean((0, 1, 2, 3))
    np.testing.assert_allclose(tf.identity(layer.moving_mean), moved, atol=1e-6)
    moved = 0.9 + 0.1 * variances.mean((0, 1, 2, 3)) * 128 / 127  # unbiased, as in PyTorch
    np.testing.assert_allclose(tf.identity(layer.moving_variance), moved, atol=1e-6)


def test_one_group_equals_plain_batch_normalization():
    plain = image.BatchNormalization(synchronized=True)
    one = image.GhostBatchNormalization(group=32)
    expected, outputs = plain(IMAGES, training=True), one(IMAGES, training=True)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    plain.trainable = one.trainable = False  # Keras's contract: frozen statistics infer
    moved = tf.identity(plain.moving_variance)
    expected, outputs = plain(IMAGES, training=True), one(IMAGES, training=True)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_array_equal(one(IMAGES, training=False), outputs)
    np.testing.assert_array_equal(tf.identity(plain.moving_variance), moved)


@pytest.mark.both_kerases
@pytest.mark.parametrize("form", [{}, {"synchronized": True}, {"dtype": "float64"}, {"axis": 1}])
def test_the_moving_variance_is_unbiased_in_every_implementation(form):
    layer = image.BatchNormalization(momentum=0.9, **form)
    outputs = layer(IMAGES, training=True)
    axes = tuple({0, 1, 2, 3} - {form.get("axis", 3)})
    mean, unbiased = IMAGES.mean(axes), IMAGES.astype("d").var(axes, ddof=1)
    np.testing.assert_allclose(tf.identity(layer.moving_mean), 0.1 * mean, atol=1e-6)
    np.testing.assert_allclose(tf.identity(layer.moving_variance), 0.9 + 0.1 * unbiased, rtol=1e-6)
    expected = tf.keras.layers.BatchNormalization(momentum=0.9, **form)(IMAGES, training=True)
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("axis", [-1, 1])
def test_under_xla_a_mean_of_1000_deviations_costs_no_digits(axis):
    def step(layer, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, training=True)
        return outputs, tape.gradient(outputs, x, tf.cast(upstream, x.dtype))

    x, upstream = 1000 + np.moveaxis(IMAGES, -1, axis), RNG.normal(size=IMAGES.shape)
    upstream = np.moveaxis(upstream, -1, axis)
    layer = image.BatchNormalization(axis=axis, momentum=0.9)
    ours = tf.function(step, jit_compile=True)(layer, tf.constant(x))
    exact = tf.keras.layers.BatchNormalization(axis=axis, dtype="float64")
    for own, expected in zip(ours, step(exact, tf.constant(x, "float64")), strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-4)
    axes = (0, 1, 2) if axis == -1 else (0, 2, 3)
    np.testing.assert_allclose(layer.moving_mean, 0.1 * x.mean(axes, "d"), rtol=1e-6)
    unbiased = x.astype("d").var(axes, ddof=1)
    np.testing.assert_allclose(layer.moving_variance, 0.9 + 0.1 * unbiased, rtol=1e-5)
    deep = tf.function(image.BatchNormalization(axis=axis), jit_compile=True)
    assert deep(tf.zeros([2, 2, 2, 2, 2]), training=True).shape == (2, 2, 2, 2, 2)  # Keras's own


def test_synchronized_statistics_of_two_devices_equal_one_device_s():
    program = """
import numpy as np
import tensorflow as tf
from dawnbench_tf.models.layers import image
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
images = np.random.default_rng(0).normal(size=(4, 4, 4, 3)).astype("f")
one = image.BatchNormalization()
one(images, training=True)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    two = image.BatchNormalization(synchronized=True)
    two.build((None, 4, 4, 3))
halves = strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant(images[2 * context.replica_id_in_sync_group:][:2])
)
tf.function(lambda: strategy.run(lambda x: two(x, training=True), args=(halves,)))()
np.testing.assert_allclose(two.moving_mean, one.moving_mean, rtol=1e-5)
np.testing.assert_allclose(two.moving_variance, one.moving_variance, rtol=1e-6)
"""
    done = subprocess.run([*warm.python(), "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_batch_that_groups_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="multiple of `group`.*group=2, and a batch of 3"):
        ghost(-1)(IMAGES[:3], training=True)


@pytest.mark.both_kerases
@pytest.mark.parametrize("axis", [-1, 1])
def test_whitened_patches_have_no_covariance(axis):
    mixing = RNG.normal(size=(3, 3)).astype("f")
    smooth = IMAGES + np.roll(IMAGES, 1, 1) + np.roll(IMAGES, 1, 2)  # neighbors correlate
    images = np.moveaxis(smooth @ mixing, -1, axis)
    layer = image.Whitening(epsilon=0, axis=axis)
    layer.build(images.shape)
    layer.adapt(images)
    inside = np.moveaxis(layer(images).numpy(), axis, -1)[:, 1:-1, 1:-1]  # outputs of whole patches
    patches = inside.reshape(-1, 27)
    np.testing.assert_allclose(patches.T @ patches / (len(patches) - 1), np.eye(27), atol=1e-3)
    assert not layer.trainable_weights


def test_whitening_adapts_to_finite_images_of_its_layout_alone():
    layer = image.Whitening()
    layer.build(IMAGES.shape)
    before, broken = layer.kernel.numpy(), IMAGES.copy()
    broken[1, 2, 3, 0] = np.nan
    wrong = np.moveaxis(IMAGES, -1, 1), IMAGES[..., :1], IMAGES[:0], IMAGES[0]
    for images in wrong:
        with pytest.raises(ValueError, match="should be 4-D, with 3 channels on axis -1. Received"):
            layer.adapt(images)
    with pytest.raises(ValueError, match="`images` should be finite"):
        layer.adapt(broken)
    np.testing.assert_array_equal(layer.kernel, before)


def test_batch_normalization_takes_no_mask():
    with pytest.raises(ValueError, match="`mask` should be None; Keras's BatchNormalization"):
        image.BatchNormalization()(tf.ones([2, 3, 4]), training=True, mask=tf.ones([2, 3], bool))
    image.BatchNormalization()(tf.ones([2, 3, 4]), mask=tf.ones([2, 3], bool))


def test_before_adapt_whitening_copies_pixels():
    outputs = image.Whitening()(IMAGES).numpy()
    np.testing.assert_array_equal(outputs[:, 3, 4], IMAGES[:, 2:5, 3:6].reshape(4, 27))


def test_training_before_adapt_is_refused():
    layer = image.Whitening()
    model = tf.keras.Sequential([tf.keras.Input((8, 8, 3)), layer, tf.keras.layers.Conv2D(1, 1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="call adapt"):
        model.fit(IMAGES, np.zeros((4, 8, 8, 1)), verbose=0)
    layer.adapt(IMAGES)
    model.compile("sgd", "mse")  # the next fit traces the step again
    model.fit(IMAGES, np.zeros((4, 8, 8, 1)), verbose=0)
