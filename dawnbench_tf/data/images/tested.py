"""Test images: in batches, equal under every distribution strategy, and one by one.

Axes: b batch, h height, w width, c channels.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Data, Example, refusing_damage
from dawnbench_tf.data.images import augment, jpegs
from dawnbench_tf.data.images.pipeline import share
from dawnbench_tf.data.images.splits import Split
from dawnbench_tf.data.placement import without_autotune
from dawnbench_tf.recipe import Recipe

BLOCK = 200  # images that `SingleImages` prepares at a time
STRIDE = 32  # sides of rectangular test images are multiples of this, in pixels
RECTANGLES = 500  # test images of one shape, or a batch if it is smaller
FEW = 20  # images that are decoded while TensorFlow builds a pipeline
WIDEST = 2.0  # largest ratio of the sides of rectangular test images


def test_batches(data: Data, batch_size: int, ratios: np.ndarray | None = None) -> tf.data.Dataset:
    """Returns distributed batches of test images, uint8 (b, h, w, c)."""
    # The last batch is completed with the last image; `collect` removes what is too much. With
    # `ratios`, width / height of each image, images are sorted by ratio, and a batch has rectangles
    # of one shape: RECTANGLES whatever the number of devices, completed with its last image.
    strategy, split = data.placement.strategy, data.splits.test
    per_replica = batch_size // strategy.num_replicas_in_sync
    count, group = len(split.labels), group_size(batch_size, ratios)
    steps = -(-count // group)
    order = np.arange(count) if ratios is None else np.argsort(ratios, kind="stable")
    indices = np.pad(order, (0, steps * group - count), "edge").reshape(steps, group)
    indices = np.pad(indices, ((0, 0), (0, batch_size - group)), "edge")
    plan = _test_plan(split, data.recipe, indices, ratios)

    def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        select = share(strategy, context)
        shares = [select(tf.constant(x), steps) for x in plan]
        dataset = _test_images(split, shares, per_replica, data.recipe.data.crop_size)
        return dataset.prefetch(2).with_options(without_autotune())

    return data.placement.distribute(make_pipeline)


def group_size(batch_size: int, ratios: np.ndarray | None) -> int:
    """Returns the number of test images in a batch of `test_batches`, without what completes it."""
    return batch_size if ratios is None else min(batch_size, RECTANGLES)


def _test_plan(
    split: Split, recipe: Recipe, indices: np.ndarray, ratios: np.ndarray | None = None
) -> list[np.ndarray]:
    """Returns the plan of `_test_images`: indices and, for JPEGs, heights and widths."""
    # Each is int (steps * b,); `indices` are (steps, b), the batches. JPEGs are square, or have the
    # mean ratio of their batch.
    if split.jpegs is None:
        return [indices.ravel()]
    heights = widths = np.full(len(indices), recipe.test_side)
    if ratios is not None:
        # The short side is test_side; the long side is rounded to a multiple of STRIDE.
        means = [ratios[np.unique(batch)].mean() for batch in indices]
        ratios = np.clip(means, 1 / WIDEST, WIDEST)  # (steps,)
        heights, widths = (
            np.where(longer > 1, np.round(recipe.test_side * longer / STRIDE) * STRIDE, heights)
            for longer in (1 / ratios, ratios)
        )
    sides = [np.repeat(side.astype(np.int32), indices.shape[1]) for side in (heights, widths)]
    return [indices.ravel(), *sides]


def _test_images(
    split: Split, plan: Sequence[np.ndarray | tf.Tensor], batch_size: int, crop_size: int = 0
) -> tf.data.Dataset:
    """Returns full batches of test images, uint8 (b, h, w, c), from a plan of `_test_plan`."""
    # `crop_size` is that of the recipe's `Images`.
    examples = tf.data.Dataset.from_tensor_slices(tuple(plan))
    if split.jpegs is None:
        batches = examples.batch(batch_size, drop_remainder=True)
        return batches.map(lambda i: augment.crop_center(split.fetch(i), crop_size), 2)
    dataset = jpegs.decode_examples(examples, split.jpegs, jpegs.center_crop)
    dataset = dataset.batch(batch_size, drop_remainder=True)
    heights, widths = (np.unique(side) for side in plan[1:])
    if len(heights) > 1 or len(widths) > 1:
        return dataset
    shape = [batch_size, int(heights[0]), int(widths[0]), 3]
    return dataset.map(lambda images: tf.ensure_shape(images, shape))


class SingleImages(Sequence[Example]):
    """A sequence of a network's inputs for single images, float32 (1, h, w, c).

    Images are prepared on access, `BLOCK` at a time, so the test set may be larger than memory.
    `prepare` is a function from indices (b,) to inputs (b, h, w, c).
    """

    def __init__(self, prepare: Callable[[np.ndarray], np.ndarray], indices: Sequence[int]):
        self._prepare, self._indices = prepare, indices
        self._block, self._images = -1, np.empty(0)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:  # an Example; for a slice or indices, SingleImages
        if isinstance(index, slice | np.ndarray):
            return SingleImages(self._prepare, np.array(self._indices)[index].tolist())
        index = range(len(self))[index]
        if index // BLOCK != self._block:
            self._block = index // BLOCK
            self._images = self._prepare(np.array(self._indices[self._block * BLOCK :][:BLOCK]))
        return (self._images[index % BLOCK][None],)


def prepare(split: Split, recipe: Recipe, data_format: str, indices: np.ndarray) -> np.ndarray:
    """Returns a network's inputs for images as they are tested, float32 (b, ...)."""
    with tf.device("CPU:0"):
        return augment.standardizer(recipe, data_format)(pixels(split, recipe, indices)).numpy()


def pixels(split: Split, recipe: Recipe, indices: np.ndarray) -> np.ndarray:
    """Returns images cropped as they are tested, uint8 (b, height, width, 3)."""
    plan = _test_plan(split, recipe, np.reshape(indices, (1, -1)))
    with tf.device("CPU:0"), refusing_damage(partial(jpegs.describe_damage, split)):
        if split.jpegs is None:
            return augment.crop_center(split.fetch(plan[0]), recipe.data.crop_size).numpy()
        if len(indices) < FEW:
            sides = [side.tolist() for side in plan[1:]]
            contents = split.jpegs(tf.constant(plan[0])).numpy()
            cropped = map(jpegs.center_crop, contents, *map(tf.constant, sides))
            return np.stack([image.numpy() for image in cropped])
        return next(iter(_test_images(split, plan, len(indices), recipe.data.crop_size))).numpy()
