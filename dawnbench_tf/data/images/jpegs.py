"""From JPEGs to the pixels that training or the test sees of them.

Only the part of a JPEG that is seen is decoded. Sizes are in pixels; a seed is an int32 pair.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine

READ = 32  # JPEGs that are read in one call
_CROPPED, _SHORT_SIDE = 7, 8  # sides of a test's crop and of its image: 224 of 256
_RATIOS = (3 / 4, 4 / 3)  # of a training crop, width to height
_COLORS = 1 << 20  # makes a seed of a crop's, unlike those of RandAugment's operations
_ATTEMPTS = 10  # to draw one that fits; then it is the whole image


def random_crop(
    jpeg: tf.Tensor, seed: tf.Tensor, flip: tf.Tensor, size: tf.Tensor, smallest: float
) -> tf.Tensor:
    """A training image: some part of the JPEG, resized, perhaps mirrored left to right.

    Szegedy et al. 2014 (arXiv 1409.4842, section 6): the part has `smallest` to all of the image's
    area, and a ratio of its sides of 3/4 to 4/3.

    Args:
      jpeg: its bytes, a string.
      seed: decides the part.
      flip: bool, whether it is mirrored.
      size: int32, sides of the result.
      smallest: share of the image's area.

    Returns:
      uint8 (size, size, 3).
    """
    image = _resized(jpeg, random_window(jpeg, seed, smallest), tf.stack([size, size]))
    # Of 1.15 ms for an image, this is 0.05; image[:, ::-1] in tf.where took 1.3.
    return tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)


def random_window(jpeg: tf.Tensor, seed: tf.Tensor, smallest: float) -> tf.Tensor:
    """The part that `random_crop` sees: row, column, height and width, int32 (4,)."""
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
    """A training image whose brightness, and whose Cb and Cr, are moved by a random amount each.

    As tensorflow/tpu's Inception preprocessing does, but to whole numbers.

    Args:
      image: uint8 (height, width, 3).
      seed: decides the amounts.
      brightness, chroma: the most that these are moved by, in shares of 255.

    Returns:
      uint8 (height, width, 3).
    """
    own = tf.random.experimental.stateless_fold_in(seed, _COLORS)
    drawn = 255 * tf.random.stateless_uniform([3], own, -1, 1) * [brightness, chroma, chroma]
    light, blue, red = tf.unstack(drawn)
    to_rgb = tf.stack([1.402 * red, -0.344136 * blue - 0.714136 * red, 1.772 * blue])  # JFIF's
    moved = tf.round(tf.cast(image, tf.float32) + light + to_rgb)
    return tf.cast(tf.clip_by_value(moved, 0, 255), tf.uint8)


def center_crop(jpeg: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """A test image: the middle of the JPEG, whose short side is resized to 256 for a crop of 224.

    A window at least 2 or 4 times as high and wide as the result is decoded at 1/2 or 1/4 of its
    size before it is resized; the references decode it whole.

    Args:
      jpeg: its bytes, a string.
      height, width: int32, sides of the result; for other sizes than 224, in proportion.

    Returns:
      uint8 (height, width, 3).
    """
    window = center_window(tf.image.extract_jpeg_shape(jpeg)[:2], height, width)
    return _resized(jpeg, window, tf.stack([height, width]))


def center_window(sides: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """The part that `center_crop` sees: row, column, height and width, int32 (4,).

    Of square results it is that of tf-models-official's `center_crop_image_v2`: 7/8 of the short
    side, cut off to whole pixels as its row and column are.

    Args:
      sides: the JPEG's height and width, int32 (2,).
      height, width: int32, sides of the result.
    """
    sides = tf.cast(sides, tf.int64)
    wanted = tf.cast(tf.stack([height, width]), tf.int64)
    # The side that limits the window; in whole numbers, as rounding may not move it.
    limits = tf.cast(sides[0] * wanted[1] > sides[1] * wanted[0], tf.int32)
    divisor = _SHORT_SIDE * wanted[limits]
    extent = _CROPPED * sides[limits] * wanted  # in pixels, times the divisor
    first = (sides * divisor - extent) // (2 * divisor)
    return tf.cast(tf.concat([first, tf.maximum(extent // divisor, 1)], 0), tf.int32)


def _resized(jpeg, window, size):
    """A window of a JPEG in another size, bilinear; what is left out is hardly decoded.

    A JPEG's blocks decode to half or a quarter of their size for less than their whole cost.
    """

    def decode(ratio):
        return tf.io.decode_and_crop_jpeg(
            jpeg, window // ratio, channels=3, ratio=ratio, dct_method="INTEGER_FAST"
        )

    spare = tf.reduce_min(window[2:] // size)
    level = tf.cast(spare >= 2, tf.int32) + tf.cast(spare >= 4, tf.int32)
    pixels = tf.switch_case(level, [partial(decode, ratio) for ratio in (1, 2, 4)])
    return tf.cast(tf.image.resize(pixels, size) + 0.5, tf.uint8)


def ratios(jpegs: Callable[[tf.Tensor], tf.Tensor], count: int) -> np.ndarray:
    """Width to height of the first `count` JPEGs, of which only the heads are decoded: (count,)."""

    def ratio(jpeg):
        height, width, _ = tf.unstack(tf.cast(tf.image.extract_jpeg_shape(jpeg), tf.float64))
        return width / height

    examples = decoded(tf.data.Dataset.range(count), jpegs, ratio)
    return np.concatenate(list(examples.batch(1000).as_numpy_iterator()))


def decoded(
    examples: tf.data.Dataset,
    jpegs: Callable[[tf.Tensor], tf.Tensor],
    decode: Callable[..., Any],
) -> tf.data.Dataset:
    """Examples with pixels in place of indices, in their order, on as many cores as there are.

    Args:
      examples: of an index, and what else `decode` takes.
      jpegs: from indices (b,) to the bytes of their JPEGs, strings (b,).
      decode: from a JPEG, and what else there is of an example, to what is returned.
    """

    def read(indices, *others):
        return jpegs(indices), *others

    return (
        examples.batch(READ)
        .map(read, num_parallel_calls=2, deterministic=True)
        .unbatch()
        .map(decode, num_parallel_calls=machine.cpus(), deterministic=True)
    )
