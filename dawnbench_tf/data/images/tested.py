"""Test images: in batches, the same for however many replicas, and one by one.

Axes: b batch, h height, w width, c channels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Data, Example, refusing_damage, without_autotune
from dawnbench_tf.data.images import augment, jpegs
from dawnbench_tf.data.images.pipeline import count_batches, share
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.recipe import Recipe

BLOCK = 500  # images that `SingleImages` prepares at a time
STRIDE, WIDEST = 32, 2.0  # sides of rectangular images: multiples of it, and their highest ratio


def batches(data: Data, batch_size: int, ratios: np.ndarray | None = None) -> tf.data.Dataset:
    """Test images, uint8 (b, h, w, c), shared out over replicas.

    The last batch is filled up with the first images again; `collect` cuts these off.

    Args:
      data: whose test it is.
      batch_size: of all replicas together.
      ratios: width to height of each image, for batches of rectangular images, sorted by it; None:
        square ones, in their order.
    """
    strategy, split = data.placement.strategy, data.splits.test
    per_replica = batch_size // strategy.num_replicas_in_sync
    count = len(split.labels)
    steps = count_batches(count, batch_size)
    indices = np.resize(np.arange(count) if ratios is None else order(ratios), steps * batch_size)
    seen = _test_plan(split, data.recipe, indices.reshape(steps, batch_size), ratios)

    def of_worker(context):
        own = share(strategy, context)
        dataset = _test_images(split, [own(tf.constant(x), steps) for x in seen], per_replica)
        return dataset.prefetch(2).with_options(without_autotune())

    return data.placement.distribute(of_worker)


def order(ratios: np.ndarray) -> np.ndarray:
    """Indices of the test images by ratio, so that a batch can have one shape: (examples,)."""
    return np.argsort(ratios, kind="stable")


def _test_plan(split, recipe, indices, ratios=None):
    """What `_test_images` takes for images (steps, b): their indices, of JPEGs their sides too."""
    if split.jpegs is None:
        return [indices.ravel()]
    heights = widths = np.full(len(indices), recipe.test_side)
    if ratios is not None:
        ratios = np.clip(ratios[indices].mean(1), 1 / WIDEST, WIDEST)
        heights, widths = (
            np.where(longer > 1, np.round(recipe.test_side * longer / STRIDE) * STRIDE, heights)
            for longer in (1 / ratios, ratios)
        )
    sides = [np.repeat(side.astype(np.int32), indices.shape[1]) for side in (heights, widths)]
    return [indices.ravel(), *sides]


def _test_images(split, seen, batch_size):
    """Batches of images as the test sees them, uint8 (b, h, w, c): full ones only.

    `seen` are their indices (images,), of JPEGs their heights and widths too, int32.
    """
    examples = tf.data.Dataset.from_tensor_slices(tuple(seen))
    if split.jpegs is None:
        return examples.batch(batch_size, drop_remainder=True).map(split.fetch, 2)
    dataset = jpegs.decoded(examples, split.jpegs, jpegs.center_crop)
    dataset = dataset.batch(batch_size, drop_remainder=True)
    heights, widths = (np.unique(side) for side in seen[1:])
    if len(heights) > 1 or len(widths) > 1:
        return dataset
    shape = [batch_size, int(heights[0]), int(widths[0]), 3]
    return dataset.map(lambda images: tf.ensure_shape(images, shape))


class SingleImages(Sequence[Example]):
    """The network's input for each test image alone: float32 (1, h, w, c), in their order.

    Images are prepared `BLOCK` at a time, when they are asked for, so that a set larger than
    memory can be gone through.

    Args:
      splits: whose test it is.
      recipe: which says how images are standardized.
      indices: of the images; all if none are given.
    """

    def __init__(self, splits: Splits, recipe: Recipe, indices: range | None = None):
        self._splits, self._recipe = splits, recipe
        self._indices = range(len(splits.test.labels)) if indices is None else indices
        self._block, self._images = -1, np.empty(0)

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:  # an Example, or some of them in the same form
        if isinstance(index, slice):
            return SingleImages(self._splits, self._recipe, self._indices[index])
        index = range(len(self))[index]
        if index // BLOCK != self._block:
            self._block = index // BLOCK
            block = self._indices[self._block * BLOCK :][:BLOCK]
            self._images = _one_batch(self._splits.test, self._recipe, "NHWC", np.array(block))
        return (self._images[index % BLOCK][None],)


def without_augmentation(data: Data, count: int) -> np.ndarray:
    """The first training images as a network gets them in the test: float32."""
    split = data.splits.train
    indices = np.arange(min(count, len(split.labels)))
    return _one_batch(split, data.recipe, data.placement.data_format, indices)


def _one_batch(split, recipe, data_format, indices):
    seen = _test_plan(split, recipe, np.reshape(indices, (1, -1)))
    with tf.device("CPU:0"), refusing_damage():
        images = next(iter(_test_images(split, seen, len(indices))))
        return augment.standardizer(recipe, data_format)(images).numpy()
