"""Crops, flips and standardization, compared with plain NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from dawnbench_tf import recipes
from dawnbench_tf.data.images import augment
from dawnbench_tf.recipe import Images, Recipe

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 6, 6, 3), np.uint8)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([0, 1, 3, 13]),  # 13: reflected more than once
    st.sampled_from(["zeros", "reflection"]),
    st.sampled_from([0, 4, 5]),
    st.randoms(use_true_random=False),
)
def test_crop_and_flip_equals_slicing_one_image_at_a_time(pad, mode, crop_size, random):
    side = crop_size or 6
    margin = 2 * pad + 6 - side
    offsets = np.array([[random.randint(0, margin) for _ in "yx"] for _ in IMAGES], np.int32)
    flips = np.array([random.random() < 0.5 for _ in IMAGES])
    outputs = augment.crop_and_flip(IMAGES, offsets, flips, pad, mode, crop_size).numpy()
    for image, (y, x), flip, result in zip(IMAGES, offsets, flips, outputs, strict=True):
        numpy_mode = "reflect" if mode == "reflection" else "constant"
        padded = np.pad(image, [(pad, pad), (pad, pad), (0, 0)], numpy_mode)
        wanted = padded[y : y + side, x : x + side]
        np.testing.assert_array_equal(result, wanted[:, ::-1] if flip else wanted)


WAVES = np.sin(np.add.outer(np.arange(16) / 3, np.arange(16) / 5))
SMOOTH = (128 + 90 * WAVES[..., None] * [1, 0.6, -1]).astype(np.uint8)


def test_rotation_is_pillow_s():
    degrees = np.array([0, 2, -2, 30, 90], "f")
    outputs = augment.rotate(np.stack([SMOOTH] * 5), degrees).numpy()
    for angle, result in zip(degrees, outputs, strict=True):
        wanted = np.asarray(Image.fromarray(SMOOTH).rotate(float(angle)))
        # On a border between two pixels the nearest one depends on rounding.
        assert (result == wanted).all(-1).mean() > 0.98, angle


def test_color_jitter_is_pillow_s():
    factors = np.array([[1, 1, 1], [1.2, 1, 1], [1, 0.8, 1], [1, 1, 1.25], [0.8, 1.2, 0.9]], "f")
    outputs = augment.jitter_colors(np.stack([SMOOTH] * 5), factors).numpy()
    np.testing.assert_array_equal(outputs[0], SMOOTH)
    for (brightness, contrast, saturation), result in zip(factors, outputs, strict=True):
        image = ImageEnhance.Brightness(Image.fromarray(SMOOTH)).enhance(float(brightness))
        image = ImageEnhance.Contrast(image).enhance(float(contrast))
        wanted = np.asarray(ImageEnhance.Color(image).enhance(float(saturation)))
        assert np.abs(result.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_images_are_scaled_down_as_pillow_does(data_format):
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype("f")
    channels = [Image.fromarray(c) for image in images for c in image.transpose(2, 0, 1)]
    scaled = [np.asarray(c.resize((20, 20), Image.Resampling.BILINEAR)) for c in channels]
    expected = np.reshape(scaled, (2, 3, 20, 20))
    if data_format == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    else:
        images = images.transpose(0, 3, 1, 2)
    outputs = augment.scale_down(tf.constant(images), 20, data_format)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_array_equal(augment.scale_down(images, 32, data_format), images)


def test_light_is_shifted_then_scaled():
    images = np.arange(2 * 2 * 2 * 3, dtype="f").reshape(2, 2, 2, 3)
    outputs = augment.jitter_light(images, np.array([[0.5, -0.1], [0, 0]], "f"))
    np.testing.assert_allclose(outputs[0], (images[0] + 0.5) * 0.9, rtol=1e-6)
    np.testing.assert_array_equal(outputs[1], images[1])


def test_a_center_crop_leaves_as_much_on_both_sides():
    np.testing.assert_array_equal(augment.crop_center(IMAGES, 4), IMAGES[:, 1:5, 1:5])
    np.testing.assert_array_equal(augment.crop_center(IMAGES, 0), IMAGES)


@pytest.mark.parametrize(
    ("clipped", "size", "centers"),
    [
        (False, 3, [[1, 1], [4, 4], [1, 4], [2, 3], [3, 1]]),
        (True, 4, [[0, 0], [5, 5], [0, 5], [2, 3], [4, 1]]),
    ],
)
def test_a_square_of_zeros_is_cut_out_inside_or_clipped_at_the_edge(clipped, size, centers):
    """Kakao Brain's and Baidu's rule: from center - side // 2 to center + side // 2, clipped."""
    images = IMAGES + 1.0
    positions = (np.array(centers, "f") - (0 if clipped else 1) + 0.5) / (6 if clipped else 4)
    outputs = augment.cut_out(images, positions, size, clipped=clipped).numpy()
    for image, (y, x), result in zip(images, centers, outputs, strict=True):
        wanted = image.copy()
        first, past = size // 2, size - size // 2
        wanted[max(0, y - first) : y + past, max(0, x - first) : x + past] = 0
        np.testing.assert_array_equal(result, wanted)


def test_a_black_square_is_standardized_with_the_image():
    recipe = recipes.get("cifar10/baidunet8")
    positions = np.full((5, 2), 0.5, "f")
    outputs = augment.standardizer(recipe, "NHWC")(tf.constant(IMAGES), positions).numpy()
    black = -np.array(recipe.data.channel_mean) / recipe.data.channel_deviation
    np.testing.assert_allclose(outputs[:, 3, 3], np.tile(black, (5, 1)), rtol=1e-5)


def test_by_image_is_the_seeds_rule():
    images = np.concatenate([IMAGES, np.full((1, 6, 6, 3), 7, np.uint8)])
    x = images.astype(np.float64)
    mean = x.mean((1, 2, 3), keepdims=True)
    deviation = np.maximum(x.std((1, 2, 3), keepdims=True), 1 / np.sqrt(6 * 6 * 3))
    outputs = augment.standardizer(Recipe(), "NHWC")(images).numpy()
    np.testing.assert_allclose(outputs, (x - mean) / deviation, atol=1e-5)


def test_by_channel_is_torchvision_s_rule():
    mean, deviation = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    data = Images(standardize="channel", channel_mean=mean, channel_deviation=deviation)
    outputs = augment.standardizer(Recipe(data=data), "NHWC")(IMAGES).numpy()
    np.testing.assert_allclose(outputs, (IMAGES / 255 - np.array(mean)) / deviation, atol=1e-5)
