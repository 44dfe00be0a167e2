"""Crops of JPEGs, compared with Pillow, and on images whose pixels encode their position."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from dawnbench_tf.data.image_files import jpeg_index
from dawnbench_tf.data.images import jpegs


def encoded(pixels):
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=98, subsampling=0)
    return content.getvalue()


def slopes(height, width):
    """Returns an image: red rises downwards, green to the right, both from 20 to 220."""
    rows, columns = np.mgrid[20 : 220 : height * 1j, 20 : 220 : width * 1j]
    return np.stack([rows, columns, 0 * rows], -1).round().astype(np.uint8)


@pytest.mark.parametrize("height, width", [(500, 375), (240, 320), (224, 224), (90, 400)])
def test_a_test_image_is_torchvisions_resize_256_and_center_crop_224(height, width):
    pixels = slopes(height, width)
    image = jpegs.center_crop(encoded(pixels), 224, 224).numpy().astype(int)
    sides = (round(side * 256 / min(height, width)) for side in (width, height))
    resized = Image.fromarray(pixels).resize(tuple(sides), Image.BILINEAR)
    left, top = (resized.width - 224) // 2, (resized.height - 224) // 2
    wanted = np.asarray(resized.crop((left, top, left + 224, top + 224))).astype(int)
    pixel = 200 / min(height, width)  # the window is cut off to whole pixels of the JPEG
    assert np.abs(image - wanted).max() <= 3 + 2 * pixel
    assert np.abs(image - wanted).mean() < 1 + pixel


def test_the_window_of_a_test_image_is_the_model_garden_s():
    from official.vision.ops import preprocess_ops

    rng = np.random.default_rng(0)
    for height, width in rng.integers(30, 700, (40, 2)):
        content = encoded(rng.integers(0, 256, (height, width, 3), np.uint8))
        window = jpegs.center_window([height, width], 224, 224)
        np.testing.assert_array_equal(
            tf.image.decode_and_crop_jpeg(content, window, channels=3),
            preprocess_ops.center_crop_image_v2(content, [height, width, 3]),
        )


def test_a_rectangle_s_window_has_its_ratio_and_lies_in_the_middle():
    for sides in ((300, 500), (500, 300), (20_000, 15_000)):
        top, left, high, wide = jpegs.center_window(sides, 224, 320).numpy()
        assert wide / high == pytest.approx(320 / 224, rel=0.01)
        assert abs(2 * top + high - sides[0]) <= 2 and abs(2 * left + wide - sides[1]) <= 2
        assert max(high / sides[0], wide / sides[1]) == pytest.approx(7 / 8, abs=0.01)


def test_a_training_crop_has_the_area_and_the_ratio_that_inception_s_have():
    content, areas, ratios = tf.constant(encoded(slopes(300, 400))), [], []
    crop = tf.function(lambda seed, flip: jpegs.random_crop(content, seed, flip, 64, 0.25))
    for number in range(300):
        flip = number % 2 == 1
        image = crop(tf.constant([number, 7]), tf.constant(flip)).numpy().astype(float)
        rows, columns = image[..., 0].mean(1), image[..., 1].mean(0)[:: -1 if flip else 1]
        assert (np.diff(rows) > -1).all() and (np.diff(columns) > -1).all()  # mirrored back
        high, wide = ((side[-1] - side[0]) / 200 * 64 / 63 for side in (rows, columns))
        areas.append(high * wide)
        ratios.append(wide * 400 / (high * 300))
    assert 0.24 < min(areas) < 0.3 and 0.9 < max(areas) < 1.05
    assert 0.72 < min(ratios) < 0.8 and 1.25 < max(ratios) < 1.4


def test_a_seed_is_a_crop():
    one, same, other = (
        jpegs.random_crop(encoded(slopes(50, 70)), [seed, 0], False, 32, 0.08).numpy()
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_grey_becomes_rgb():
    content = io.BytesIO()
    Image.fromarray(np.full((40, 40, 3), 120, np.uint8)).convert("L").save(content, "JPEG")
    image = jpegs.center_crop(content.getvalue(), 24, 24).numpy()
    assert image.shape == (24, 24, 3) and np.abs(image.astype(int) - 120).max() <= 4


def test_colors_shift_by_a_brightness_and_two_chromas_within_their_bounds():
    """JFIF's matrix from RGB to Y, Cb, Cr recovers the drawn shifts; nothing else changes."""
    to_ycc = [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
    middle = np.full((4, 5, 3), 128, np.uint8)
    seeds = tf.random.stateless_uniform([400, 2], [1, 2], None, None, tf.int32)
    images = [jpegs.shift_colors(middle, seed, 0.1, 0.05).numpy() for seed in seeds]
    shifts = np.array([image[0, 0] for image in images], float) - 128
    assert all((image == image[0, 0]).all() for image in images)
    drawn = shifts @ np.transpose(to_ycc) / 255
    bounds = np.array([0.1, 0.05, 0.05])
    assert (np.abs(drawn) < bounds + 1 / 255).all()
    assert (np.abs(np.quantile(drawn, [0.1, 0.9], 0)) > 0.7 * bounds).all()
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.15


def test_shifted_colors_stay_within_their_range():
    ends = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    for seed in range(20):
        black, white = jpegs.shift_colors(ends, tf.constant([seed, 0]), 0.1, 0.0).numpy()[0]
        assert black.max() <= 26 and white.min() >= 229
        assert black.max() == 0 or white.min() == 255


def test_other_formats_keep_the_resolution_of_colour():
    """Red and blue lines: with colour at half the resolution both would be purple."""
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[::2, :, 0] = pixels[1::2, :, 2] = 255
    for image in (pixels, np.tile(np.eye(8, dtype="u1")[..., None] * 255, (8, 8, 3))):
        png = jpeg_index.as_jpeg(tf.io.encode_png(image).numpy(), "a.png")
        window = tf.constant([0, 0, *image.shape[:2]])
        read = jpegs._resized(tf.constant(png), window, window[2:]).numpy().astype(int)
        assert np.abs(read - image).max() < 20 and np.abs(read - image).mean() < 2
    jpeg = jpeg_index.as_jpeg(tf.io.encode_png(pixels).numpy(), "a.png")
    assert np.abs(tf.io.decode_jpeg(jpeg).numpy().astype(int) - pixels).max() < 20
