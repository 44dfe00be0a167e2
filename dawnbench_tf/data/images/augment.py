"""Augmentation and standardization of image batches.

Axes: b batch, h height, w width, c channels.
"""

from collections.abc import Callable

import tensorflow as tf

from dawnbench_tf.recipe import Recipe


def crop_and_flip(
    images: tf.Tensor, offsets: tf.Tensor, flips: tf.Tensor, pad: int, mode: str = "zeros"
) -> tf.Tensor:
    """Pads images, crops each back to its size at its own offset, and flips some of them.

    Args:
      images: (b, h, w, c).
      offsets: int32 (b, 2), row and column of the crop, 0..2 * pad; (pad, pad) does not move it.
      flips: bool (b,), whether the crop is flipped left to right.
      pad: width of the padding on each side, in pixels.
      mode: "zeros", or "reflection" (as np.pad's "reflect": the border pixel is not repeated).

    Returns:
      (b, h, w, c), of the dtype of `images`.
    """
    height, width = images.shape[1:3]
    # Flips are reversed column indices, so two gathers crop, flip and (in reflection mode) pad.
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


def _reflected(indices: tf.Tensor, size: int) -> tf.Tensor:
    """Maps indices beyond 0..size - 1 to the mirrored ones inside; tf.pad takes 4 times as long."""
    return size - 1 - tf.abs(size - 1 - tf.abs(indices))


def standardize_by_image(images: tf.Tensor) -> tf.Tensor:
    """Scales each image (b, h, w, c) to mean 0, deviation 1 over its pixels (TensorFlow seeds)."""
    return tf.image.per_image_standardization(images)


def standardize_by_channel(
    images: tf.Tensor, mean: tuple[float, ...], deviation: tuple[float, ...]
) -> tf.Tensor:
    """Scales each channel to mean 0 and standard deviation 1 over a data set.

    Args:
      images: uint8 (b, h, w, c).
      mean, deviation: mean and standard deviation of each channel, for pixels in 0..1.

    Returns:
      float32 (b, h, w, c).
    """
    return (tf.cast(images, tf.float32) / 255 - tf.constant(mean, tf.float32)) / tf.constant(
        deviation, tf.float32
    )


def cut_out(images: tf.Tensor, positions: tf.Tensor, side: int) -> tf.Tensor:
    """Cutout: sets a square of each standardized image to zero, the mean.

    Source: DeVries & Taylor 2017, arXiv 1708.04552; but here the whole square lies in the image.

    Args:
      images: (b, h, w, c).
      positions: float (b, 2) in 0..1, vertical and horizontal: 0 is top or left, 1 bottom or right.
      side: side of the square, in pixels.
    """
    kept = []
    for size, position in zip(images.shape[1:3], tf.unstack(positions, axis=1), strict=True):
        first = tf.cast(position * (size - side + 1), tf.int32)  # (b,)
        distance = tf.range(size) - first[:, None]  # (b, size)
        kept.append((distance < 0) | (distance >= side))
    # A pixel is kept if its row or its column is outside the square.
    outside = kept[0][:, :, None] | kept[1][:, None, :]  # (b, h, w)
    return tf.where(outside[..., None], images, tf.zeros_like(images))


def standardizer(recipe: Recipe, data_format: str) -> Callable[..., tf.Tensor]:
    """Returns a function from uint8 images (b, h, w, c) to the network's input.

    The function takes, in training, the positions of Cutout (b, 2) as its second argument. It
    returns float32 (b, h, w, c), or (b, c, h, w) in NCHW.
    """

    def standardize(images: tf.Tensor, positions: tf.Tensor | None = None) -> tf.Tensor:
        if recipe.data.standardize == "image":
            images = standardize_by_image(images)
        else:
            images = standardize_by_channel(
                images, recipe.data.channel_mean, recipe.data.channel_deviation
            )
        if positions is not None:
            images = cut_out(images, positions, recipe.data.cutout)
        return images if data_format == "NHWC" else tf.transpose(images, [0, 3, 1, 2])

    return standardize
