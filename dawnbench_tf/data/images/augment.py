"""What is done to images on their way into a model, a batch at a time.

Axes: b batch, h height, w width, c channels.
"""

import tensorflow as tf


def crop_and_flip(images: tf.Tensor, offsets: tf.Tensor, flips: tf.Tensor, pad: int) -> tf.Tensor:
    """Zero-pads, crops back to size at an offset of its own for each image, mirrors some.

    Args:
      images: (b, h, w, c).
      offsets: int32 (b, 2), row and column in 0..2 * pad; (pad, pad) is the image as it was.
      flips: bool (b,), whether the crop is mirrored left to right.
      pad: pixels of zeros on each side.
    """
    height, width = images.shape[1:3]
    padded = tf.pad(images, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
    rows = offsets[:, :1] + tf.range(height)  # (b, h)
    columns = (
        tf.where(flips[:, None], tf.range(width)[::-1], tf.range(width)) + offsets[:, 1:]
    )  # (b, w)
    cropped = tf.gather(padded, rows, axis=1, batch_dims=1)
    return tf.gather(cropped, columns, axis=2, batch_dims=1)


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
    return (tf.cast(images, tf.float32) / 255 - tf.constant(mean)) / tf.constant(deviation)
