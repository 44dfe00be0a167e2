"""RandAugment's operations, compared with Pillow's, and their random choice."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps

from dawnbench_tf.data.images import rand_augment

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(10, 250, (24, 24, 3), np.uint8)
IN_PILLOW = {  # number of the branch, at magnitude 9 (0.9 of the highest)
    0: lambda image: image,
    1: ImageOps.autocontrast,
    2: ImageOps.equalize,
    3: ImageOps.invert,
    5: lambda image: ImageOps.posterize(image, 3),
    6: lambda image: ImageOps.solarize(image, 230),
    8: lambda image: ImageEnhance.Color(image).enhance(1.72),
    10: lambda image: ImageEnhance.Brightness(image).enhance(1.72),
    11: lambda image: ImageEnhance.Sharpness(image).enhance(1.72),
}


def branches(share=0.9, sign=1.0):
    return rand_augment._branches(tf.constant(IMAGE), share, tf.constant(sign))


@pytest.mark.parametrize("number", IN_PILLOW)
def test_an_operation_is_pillow_s(number):
    wanted = np.asarray(IN_PILLOW[number](Image.fromarray(IMAGE))).astype(int)
    assert np.abs(branches()[number]().numpy() - wanted).max() <= 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("number", "axis"), [(14, 1), (15, 0)])
def test_a_shift_goes_either_way_and_reflects_the_image(number, axis, sign):
    pixels = 5
    share = pixels / (100 / 224 * 24)
    margins = [(pixels, pixels) if dimension == axis else (0, 0) for dimension in range(3)]
    padded = np.pad(IMAGE, margins, "symmetric")
    wanted = np.roll(padded, -pixels * int(sign), axis).take(range(pixels, pixels + 24), axis)
    np.testing.assert_array_equal(branches(share, sign)[number](), wanted)


def test_without_magnitude_what_moves_and_shears_stays():
    for number in (4, 12, 13, 14, 15):
        np.testing.assert_array_equal(branches(0.0)[number](), IMAGE)


def test_every_operation_is_drawn_as_often():
    branch_of = {}
    for sign in (1.0, -1.0):
        for number, branch in enumerate(branches(sign=sign)):
            branch_of.setdefault(branch().numpy().tobytes(), number)
    draw = tf.function(lambda seed: rand_augment.rand_augment(tf.constant(IMAGE), seed, 1, 9))
    counts = Counter(branch_of[draw(tf.constant([n, 5])).numpy().tobytes()] for n in range(800))
    assert len(counts) == 16 and all(abs(count - 50) < 5 * 50**0.5 for count in counts.values())


def test_a_seed_is_an_image_and_two_operations_are_two():
    draw = tf.function(lambda seed: rand_augment.rand_augment(tf.constant(IMAGE), seed, 2, 9))
    images = [draw(tf.constant([n, 1])).numpy().tobytes() for n in (*range(60), *range(60))]
    assert images[:60] == images[60:] and len(set(images)) > 40
