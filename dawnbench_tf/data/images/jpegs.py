"""Decoding, cropping and resizing of JPEGs, for training and for the test.

Only the part of a JPEG inside the crop is decoded. Sizes are in pixels. A seed is an int32 pair.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine
from dawnbench_tf.data.images.splits import Split

READ = 32  # JPEGs that are read in one call
_CROPPED, _SHORT_SIDE = 7, 8  # a test crop's side is 7/8 of the image's short side: 224 of 256
_RATIOS = (3 / 4, 4 / 3)  # range of a training crop's width / height
_COLORS = 1 << 20  # folded into a crop's seed
_ATTEMPTS = 10  # draws of a training crop; if none fits, the crop is the whole image


def random_crop(
    jpeg: tf.Tensor, seed: tf.Tensor, flip: tf.Tensor, size: tf.Tensor, smallest: float
) -> tf.Tensor:
    """Random resized crop of a JPEG, optionally flipped left to right; uint8 (size, size, 3)."""
    # Szegedy et al. 2014 (arXiv 1409.4842, section 6): the crop has `smallest` to 1 of the image's
    # area, and an aspect ratio of 3/4 to 4/3.
    image = _resized(jpeg, random_window(jpeg, seed, smallest), tf.stack([size, size]))
    # tf.cond takes 0.05 ms of an image's 1.15 ms; image[:, ::-1] in tf.where took 1.3 ms.
    return tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)


def random_window(jpeg: tf.Tensor, seed: tf.Tensor, smallest: float) -> tf.Tensor:
    """Draws the window of `random_crop`: row, column, height and width, int32 (4,)."""
    first, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(jpeg),
        bounding_boxes=tf.zeros([1, 0, 4]),
        seed=seed,
        min_object_covered=0.0,
        aspect_ratio_range=_RATIOS,
        area_range=(smallest, 1.0),
        max_attempts=_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([first[:2], extent[:2]], 0)


def shift_colors(image: tf.Tensor, seed: tf.Tensor, brightness: float, chroma: float) -> tf.Tensor:
    """Color augmentation: adds random shifts to an image's brightness (Y), Cb and Cr."""
    # The same as tensorflow/tpu's Inception preprocessing, but rounded to whole numbers.
    # `brightness` and `chroma` are the largest shifts, of Y, and of Cb and Cr, as fractions of 255.
    color_seed = tf.random.experimental.stateless_fold_in(seed, _COLORS)
    drawn = 255 * tf.random.stateless_uniform([3], color_seed, -1, 1) * [brightness, chroma, chroma]
    light, blue, red = tf.unstack(drawn)
    # YCbCr to RGB is linear (JFIF), so shifts of Cb and Cr are shifts of R, G and B.
    to_rgb = tf.stack([1.402 * red, -0.344136 * blue - 0.714136 * red, 1.772 * blue])
    moved = tf.round(tf.cast(image, tf.float32) + light + to_rgb)
    return tf.cast(tf.clip_by_value(moved, 0, 255), tf.uint8)


def center_crop(jpeg: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Center crop of a JPEG for the test: 7/8 of its short side (224 of 256), resized."""
    # A window at least 2 or 4 times as high and wide as the result is decoded at 1/2 or 1/4 of its
    # size before it is resized. The reference implementations decode at full size.
    window = center_window(tf.image.extract_jpeg_shape(jpeg)[:2], height, width)
    return _resized(jpeg, window, tf.stack([height, width]))


def center_window(sides: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Returns the window of `center_crop`: row, column, height and width, int32 (4,)."""
    # For square results it is the window of tf-models-official's `center_crop_image_v2`: 7/8 of the
    # short side; size, row and column are rounded down. `sides` are the JPEG's height and width.
    sides = tf.cast(sides, tf.int64)
    wanted = tf.cast(tf.stack([height, width]), tf.int64)
    # Index of the side that limits the window. Integers only, so that rounding can't move it.
    limits = tf.cast(sides[0] * wanted[1] > sides[1] * wanted[0], tf.int32)
    divisor = _SHORT_SIDE * wanted[limits]
    extent = _CROPPED * sides[limits] * wanted  # sides of the window in pixels, times the divisor
    first = (sides * divisor - extent) // (2 * divisor)
    return tf.cast(tf.concat([first, tf.maximum(extent // divisor, 1)], 0), tf.int32)


def _resized(jpeg: tf.Tensor, window: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Decodes a window of a JPEG and resizes it bilinearly to `size` (height, width)."""
    # A JPEG's blocks decode to 1/2 or 1/4 of their size at less than full cost. INTEGER_FAST is no
    # faster, and off by a third of the range at quality 100, which images of other formats have.

    def decode(ratio: int) -> tf.Tensor:
        return tf.io.decode_and_crop_jpeg(
            jpeg, window // ratio, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE"
        )

    # The decoded window must not be smaller than the result, in height or width.
    shrinkage = tf.reduce_min(window[2:] // size)
    level = tf.cast(shrinkage >= 2, tf.int32) + tf.cast(shrinkage >= 4, tf.int32)
    pixels = tf.switch_case(level, [partial(decode, ratio) for ratio in (1, 2, 4)])
    return tf.cast(tf.image.resize(pixels, size) + 0.5, tf.uint8)


def aspect_ratios(jpegs: Callable[[tf.Tensor], tf.Tensor], count: int) -> np.ndarray:
    """Returns width / height of the first `count` JPEGs, (count,), from their headers."""

    def ratio(jpeg: tf.Tensor) -> tf.Tensor:
        height, width, _ = tf.unstack(tf.cast(tf.image.extract_jpeg_shape(jpeg), tf.float64))
        return width / height

    examples = decode_examples(tf.data.Dataset.range(count), jpegs, ratio)
    return np.concatenate(list(examples.batch(1000).as_numpy_iterator()))


def describe_damage(split: Split) -> str:
    """Returns a line that names the first image of a split that can't be decoded; "" if all can."""
    if split.jpegs is None or not split.names:
        return ""
    for number, name in enumerate(split.names):
        (content,) = split.jpegs(tf.constant([number])).numpy()  # names what can't be read
        try:
            tf.io.decode_jpeg(content, channels=3)
        except tf.errors.InvalidArgumentError:
            return f"{name}: is damaged, or no RGB image; replace it"
    return ""


def decode_examples(
    examples: tf.data.Dataset, jpegs: Callable[[tf.Tensor], tf.Tensor], decode: Callable[..., Any]
) -> tf.data.Dataset:
    """Reads and decodes the JPEGs of examples, (index, *others), in order, on all cores."""
    # `jpegs` is a function from indices (b,) to JPEGs, `decode` one from a JPEG and `others` to an
    # element of the result.

    def read(indices: tf.Tensor, *others: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return jpegs(indices), *others

    return (
        examples.batch(READ)
        .map(read, num_parallel_calls=2, deterministic=True)
        .unbatch()
        .map(decode, num_parallel_calls=machine.cpus(), deterministic=True)
    )
