"""Crops, flips and standardization, compared with plain NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.data.images import augment

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 6, 6, 3), np.uint8)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 3), st.sampled_from(["zeros", "reflection"]), st.randoms(use_true_random=False)
)
def test_crop_and_flip_equals_slicing_one_image_at_a_time(pad, mode, random):
    offsets = np.array([[random.randint(0, 2 * pad) for _ in "yx"] for _ in IMAGES], np.int32)
    flips = np.array([random.random() < 0.5 for _ in IMAGES])
    outputs = augment.crop_and_flip(IMAGES, offsets, flips, pad, mode).numpy()
    for image, (y, x), flip, result in zip(IMAGES, offsets, flips, outputs, strict=True):
        numpy_mode = "reflect" if mode == "reflection" else "constant"
        padded = np.pad(image, [(pad, pad), (pad, pad), (0, 0)], numpy_mode)
        wanted = padded[y : y + 6, x : x + 6]
        np.testing.assert_array_equal(result, wanted[:, ::-1] if flip else wanted)


def test_what_is_cut_out_is_a_square_of_zeros():
    images = IMAGES + 1.0
    corners = np.array([[0, 0], [3, 3], [0, 3], [1, 2], [2, 0]], "f")
    outputs = augment.cut_out(images, (corners + 0.5) / 4, 3).numpy()
    for image, (y, x), result in zip(images, corners.astype(int), outputs, strict=True):
        wanted = image.copy()
        wanted[y : y + 3, x : x + 3] = 0
        np.testing.assert_array_equal(result, wanted)


def test_by_image_is_the_seeds_rule():
    images = np.concatenate([IMAGES, np.full((1, 6, 6, 3), 7, np.uint8)])
    x = images.astype(np.float64)
    mean = x.mean((1, 2, 3), keepdims=True)
    deviation = np.maximum(x.std((1, 2, 3), keepdims=True), 1 / np.sqrt(6 * 6 * 3))
    outputs = augment.standardize_by_image(images).numpy()
    np.testing.assert_allclose(outputs, (x - mean) / deviation, atol=1e-5)


def test_by_channel_is_torchvision_s_rule():
    mean, deviation = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    outputs = augment.standardize_by_channel(IMAGES, mean, deviation).numpy()
    np.testing.assert_allclose(outputs, (IMAGES / 255 - np.array(mean)) / deviation, atol=1e-5)
