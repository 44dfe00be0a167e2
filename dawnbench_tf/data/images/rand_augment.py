"""RandAugment: random operations on an image, all of one magnitude.

Cubuk et al. 2019 (arXiv 1909.13719). The operations are those of tensorflow/models, but drawn from
a seed instead of a generator's state, so that a run can be repeated. Cutout is left out, because
its operation draws random numbers itself.
"""

from collections.abc import Callable

import tensorflow as tf
from official.vision.ops import augment

HIGHEST = 10  # the largest magnitude
_GREY = [128, 128, 128]  # a required argument that tensorflow/models ignores: it reflects the image


def rand_augment(image: tf.Tensor, seed: tf.Tensor, operations: int, magnitude: float) -> tf.Tensor:
    """Applies random operations to an image, one after the other.

    Args:
      image: uint8 (height, width, 3).
      seed: int32 (2,), decides the operations and their signs.
      operations: number of operations.
      magnitude: magnitude of all operations, 0 to HIGHEST.

    Returns:
      uint8 (height, width, 3).
    """
    share = magnitude / HIGHEST
    shape = image.shape
    for number in range(operations):
        operation_seed = tf.random.experimental.stateless_fold_in(seed, number + 1)
        sign = tf.cast(tf.random.stateless_uniform([], operation_seed) < 0.5, tf.float32) * 2 - 1
        branches = _branches(image, share, sign)
        branch_seed = tf.random.experimental.stateless_fold_in(operation_seed, 0)
        drawn = tf.random.stateless_uniform([], branch_seed, 0, len(branches), tf.int32)
        image = tf.ensure_shape(tf.switch_case(drawn, branches), shape)
    return image


def _branches(image: tf.Tensor, share: float, sign: tf.Tensor) -> list[Callable[[], tf.Tensor]]:
    """Returns the operations at a fraction `share` of the largest magnitude; `sign` is -1 or 1."""
    factor = share * 1.8 + 0.1
    pixels = sign * share * 100 / 224 * tf.cast(tf.shape(image)[0], tf.float32)
    return [
        lambda: image,
        lambda: augment.autocontrast(image),
        lambda: augment.equalize(image),
        lambda: augment.invert(image),
        lambda: augment.wrapped_rotate(image, sign * share * 30, _GREY),
        lambda: augment.posterize(image, int(share * 4)),
        lambda: augment.solarize(image, int(share * 256)),
        lambda: augment.solarize_add(image, int(share * 110)),
        lambda: augment.color(image, factor),
        lambda: augment.contrast(image, factor),
        lambda: augment.brightness(image, factor),
        lambda: augment.sharpness(image, factor),
        lambda: augment.shear_x(image, sign * share * 0.3, _GREY),
        lambda: augment.shear_y(image, sign * share * 0.3, _GREY),
        lambda: augment.translate_x(image, pixels, _GREY),
        lambda: augment.translate_y(image, pixels, _GREY),
    ]
