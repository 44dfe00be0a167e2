"""What is done to images on their way into a model, a batch at a time.

Axes: b batch, h height, w width, c channels.
"""

from collections.abc import Callable

import tensorflow as tf

from dawnbench_tf.recipe import Recipe


def crop_and_flip(
    images: tf.Tensor, offsets: tf.Tensor, flips: tf.Tensor, pad: int, mode: str = "zeros"
) -> tf.Tensor:
    """Pads, crops back to size at an offset of its own for each image, mirrors some.

    Args:
      images: (b, h, w, c).
      offsets: int32 (b, 2), row and column in 0..2 * pad; (pad, pad) is the image as it was.
      flips: bool (b,), whether the crop is mirrored left to right.
      pad: pixels on each side.
      mode: what these are: "zeros", or the image's "reflection" in its outermost pixels.
    """
    height, width = images.shape[1:3]
    rows = offsets[:, :1] + tf.range(height)  # (b, h)
    columns = (
        tf.where(flips[:, None], tf.range(width)[::-1], tf.range(width)) + offsets[:, 1:]
    )  # (b, w)
    if mode == "reflection":
        rows, columns = _reflected(rows - pad, height), _reflected(columns - pad, width)
    else:
        images = tf.pad(images, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
    cropped = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(cropped, columns, axis=2, batch_dims=1)


def _reflected(places, size):
    """Places beyond 0..size - 1 as those inside that mirror them; tf.pad takes 4 times as long."""
    return size - 1 - tf.abs(size - 1 - tf.abs(places))


def standardize_by_image(images: tf.Tensor) -> tf.Tensor:
    """Each image (b, h, w, c) to mean 0, deviation 1 over its own pixels (TensorFlow seeds)."""
    return tf.image.per_image_standardization(images)


def standardize_by_channel(
    images: tf.Tensor, mean: tuple[float, ...], deviation: tuple[float, ...]
) -> tf.Tensor:
    """Channels to mean 0, deviation 1 over a data set.

    Args:
      images: uint8 (b, h, w, c).
      mean, deviation: of each channel, of pixels in 0..1.
    """
    return (tf.cast(images, tf.float32) / 255 - tf.constant(mean, tf.float32)) / tf.constant(
        deviation, tf.float32
    )


def cut_out(images: tf.Tensor, places: tf.Tensor, side: int) -> tf.Tensor:
    """A square of zeros, which is the mean of standardized images, in each.

    (DeVries & Taylor 2017, arXiv 1708.04552; here all of the square lies in the image.)

    Args:
      images: (b, h, w, c).
      places: float (b, 2) in 0..1, where the square is from top to bottom, from left to right.
      side: of the square, in pixels.
    """
    kept = []
    for size, place in zip(images.shape[1:3], tf.unstack(places, axis=1), strict=True):
        first = tf.cast(place * (size - side + 1), tf.int32)  # (b,)
        distance = tf.range(size) - first[:, None]  # (b, size)
        kept.append((distance < 0) | (distance >= side))
    inside = kept[0][:, :, None] | kept[1][:, None, :]  # (b, h, w)
    return tf.where(inside[..., None], images, tf.zeros_like(images))


def standardizer(recipe: Recipe, data_format: str) -> Callable[..., tf.Tensor]:
    """From uint8 images (b, h, w, c), and in training where to cut out, to the network's input.

    That is float32 (b, h, w, c), or (b, c, h, w) in NCHW.
    """

    def standardize(images, places=None):
        if recipe.data.standardize == "image":
            images = standardize_by_image(images)
        else:
            images = standardize_by_channel(
                images, recipe.data.channel_mean, recipe.data.channel_deviation
            )
        if places is not None:
            images = cut_out(images, places, recipe.data.cutout)
        return images if data_format == "NHWC" else tf.transpose(images, [0, 3, 1, 2])

    return standardize
