"""Augmentation and standardization of image batches.

Axes: b batch, h height, w width, c channels. Indices are int64: TensorFlow computes with int32 in
host memory, and a GPU would wait for the copies.
"""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from dawnbench_tf.recipe import Recipe


def crop_and_flip(
    images: tf.Tensor,
    offsets: tf.Tensor,
    flips: tf.Tensor,
    pad: int,
    mode: str = "zeros",
    crop_size: int = 0,
) -> tf.Tensor:
    """Pads images (b, h, w, c), crops each at its own offset, and flips some left to right."""
    # `offsets`: int32 (b, 2), row and column of the crop in the padded image; `flips`: bool (b,).
    # `mode`: "zeros", or "reflection" (np.pad's "reflect"). `crop_size` 0: that of the images.
    height, width = images.shape[1:3]
    tall, wide = crop_size or height, crop_size or width
    # Flips are reversed column indices, so two gathers crop, flip and (in reflection mode) pad.
    offsets, across = tf.cast(offsets, tf.int64), tf.range(wide, dtype=tf.int64)
    rows = offsets[:, :1] + tf.range(tall, dtype=tf.int64)  # (b, tall)
    columns = tf.where(flips[:, None], across[::-1], across) + offsets[:, 1:]  # (b, wide)
    if mode == "reflection":
        rows, columns = _reflected(rows - pad, height), _reflected(columns - pad, width)
    else:
        images = tf.pad(images, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
    cropped = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(cropped, columns, axis=2, batch_dims=1)


def crop_center(images: tf.Tensor, side: int) -> tf.Tensor:
    """Crops images (b, h, w, c) to their middle `side` x `side` pixels; 0: no crop."""
    if not side:
        return images
    top, left = ((size - side) // 2 for size in images.shape[1:3])
    return images[:, top : top + side, left : left + side]


def _reflected(indices: tf.Tensor, size: int) -> tf.Tensor:
    """Maps indices beyond 0..size - 1 to the mirrored ones inside; tf.pad takes 4 times as long."""
    return size - 1 - tf.abs(size - 1 - indices % max(2 * size - 2, 1))


def jitter_colors(images: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Changes brightness, contrast and saturation of images, as torchvision's ColorJitter."""
    # Its order is random; here it is brightness, contrast, saturation. The order matters only where
    # a value is clipped. `images`: (b, h, w, 3), 0 to 255; `factors`: (b, 3), 1 changes nothing.
    # Returns float32, whole numbers from 0 to 255.
    brightness, contrast, saturation = tf.unstack(factors[:, :, None, None, None], axis=1)
    values = _clipped(tf.cast(images, tf.float32) * brightness)
    middle = tf.round(tf.reduce_mean(_grey(values), [1, 2, 3], keepdims=True))
    values = _clipped(middle + contrast * (values - middle))
    grey = _grey(values)
    return _clipped(grey + saturation * (values - grey))


def jitter_light(images: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """Returns (images + d) x (1 + e), for standardized images and d, e of `changes` (b, 2)."""
    shifts, contrasts = tf.unstack(changes[:, :, None, None, None], axis=1)
    return (images + shifts) * (1 + contrasts)


def scale_down(images: tf.Tensor, side: int, data_format: str) -> tf.Tensor:
    """Scales square images down to `side`: bilinear, with antialiasing, as Pillow does."""
    # By two matrix products, which every device has: TensorFlow's own operation is for CPUs alone.
    size = images.shape[2]
    if size == side:
        return images
    # Pixel i of the result is a weighted mean of the pixels around its center: a triangle.
    centers = (np.arange(side)[:, None] + 0.5) * size / side
    distances = np.abs(np.arange(size) + 0.5 - centers) * side / size
    weights = np.maximum(1 - distances, 0)
    weights = tf.constant(weights / weights.sum(1, keepdims=True), images.dtype)
    product = "ah,bhwc,dw->badc" if data_format == "NHWC" else "ah,bchw,dw->bcad"
    return tf.einsum(product, weights, images, weights)


def _clipped(values: tf.Tensor) -> tf.Tensor:
    return tf.floor(tf.clip_by_value(values, 0.0, 255.0))


def _grey(values: tf.Tensor) -> tf.Tensor:
    """Returns the luma (b, h, w, 1) of Pillow's mode L: ITU-R 601, rounded."""
    return tf.floor(tf.reduce_sum(values * [0.299, 0.587, 0.114], -1, keepdims=True) + 0.5)


def rotate(images: tf.Tensor, degrees: tf.Tensor) -> tf.Tensor:
    """Rotates images (b, h, w, c) around their center by `degrees` (b,), counterclockwise."""
    height, width = images.shape[1:3]
    angles = degrees[:, None, None] * (math.pi / 180)
    y = tf.range(height, dtype=tf.float32)[:, None] - (height - 1) / 2
    x = tf.range(width, dtype=tf.float32)[None] - (width - 1) / 2
    # Where each pixel comes from; y points downwards.
    rows = tf.sin(angles) * x + tf.cos(angles) * y + (height - 1) / 2
    columns = tf.cos(angles) * x - tf.sin(angles) * y + (width - 1) / 2
    rows, columns = (tf.cast(tf.floor(part + 0.5), tf.int64) for part in (rows, columns))
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    sources = tf.clip_by_value(rows, 0, height - 1) * width
    sources += tf.clip_by_value(columns, 0, width - 1)
    pixels = tf.reshape(images, [-1, height * width, images.shape[3]])
    moved = tf.gather(pixels, tf.reshape(sources, [-1, height * width]), axis=1, batch_dims=1)
    moved = tf.reshape(moved, [-1, *images.shape[1:]])
    return tf.where(inside[..., None], moved, tf.zeros_like(moved))  # 0 outside the source


def cut_out(images: tf.Tensor, positions: tf.Tensor, side: int, clipped: bool = False) -> tf.Tensor:
    """Cutout: sets a square of each image to zero: black, or the mean of standardized images."""
    # Source: DeVries & Taylor 2017, arXiv 1708.04552, whose squares are `clipped`: the center is
    # any pixel, and the square ends at the image's edge; if not, the whole square lies in the
    # image. `positions`: (b, 2) in 0..1, vertical and horizontal, 0 is top or left. `side`: pixels.
    kept = []
    for size, position in zip(images.shape[1:3], tf.unstack(positions, axis=1), strict=True):
        choices = size if clipped else size - side + 1
        first = tf.cast(position * choices, tf.int64) - (side // 2 if clipped else 0)  # (b,)
        distance = tf.range(size, dtype=tf.int64) - first[:, None]  # (b, size)
        kept.append((distance < 0) | (distance >= side))
    # A pixel is kept if its row or its column is outside the square.
    outside = kept[0][:, :, None] | kept[1][:, None, :]  # (b, h, w)
    return tf.where(outside[..., None], images, tf.zeros_like(images))


def standardizer(recipe: Recipe, data_format: str) -> Callable[..., tf.Tensor]:
    """Returns a function from images (b, h, w, c) of values 0 to 255 to the network's input."""
    # The function takes, in training, the positions of Cutout (b, 2) as its second argument. It
    # returns float32 (b, h, w, c), or (b, c, h, w) in NCHW.

    def cut(images: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        return cut_out(images, positions, recipe.data.cutout, recipe.data.cutout_clipped)

    def standardize(images: tf.Tensor, positions: tf.Tensor | None = None) -> tf.Tensor:
        black = positions is not None and recipe.data.cutout_color == "black"
        if black:
            images = cut(images, positions)
        if recipe.data.standardize == "image":  # by mean and deviation of its own pixels
            images = tf.image.per_image_standardization(images)
        else:  # by those of a data set
            scaled = tf.cast(images, tf.float32) / 255
            mean = tf.constant(recipe.data.channel_mean, tf.float32)
            images = (scaled - mean) / tf.constant(recipe.data.channel_deviation, tf.float32)
        if positions is not None and not black:
            images = cut(images, positions)
        return images if data_format == "NHWC" else tf.transpose(images, [0, 3, 1, 2])

    return standardize
