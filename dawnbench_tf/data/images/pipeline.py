"""Batches of images, the same for however many replicas.

Images that fit into memory live on the devices and are augmented there, a batch in a few large
operations; JPEGs are read, cropped and decoded on the host, ahead of the steps. Everything random
about an epoch (order, crops, flips) is drawn at its start from (seed, epoch) alone, for the global
batch, and only then shared out: the same examples make up step i of epoch e under every strategy,
after every restart. Axes: b batch, h height, w width, c channels.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.images import augment, jpegs
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.inputs import (
    Example,
    Placement,
    own_replicas,
    refusing_damage,
    without_autotune,
)
from dawnbench_tf.recipe import Recipe

_ORDER, _CROP, _FLIP, _CUTOUT = range(4)  # purposes of random numbers
BLOCK = 500  # images that `OneByOne` prepares at a time


def steps_per_epoch(examples: int, batch_size: int) -> int:
    """Steps in which each example is seen at least once: 391 for 50,000 at 128, as the seeds count.

    >>> steps_per_epoch(50_000, 128)
    391
    """
    return -(-examples // batch_size)


def steps(splits: Splits, recipe: Recipe) -> int:
    """Steps of an epoch of the recipe."""
    examples = len(splits.train.labels)
    if recipe.drop_remainder:
        return examples // recipe.batch_size
    return steps_per_epoch(examples, recipe.batch_size)


def train(
    splits: Splits, recipe: Recipe, placement: Placement, first_epoch: int = 0
) -> tf.data.Dataset:
    """Training batches from `first_epoch` on, shared out over replicas.

    An epoch's last batch is filled up with the first examples of its own order, so shapes are
    static and no example is left out; or, with `recipe.drop_remainder`, there is none.

    Returns:
      A distributed data set of what `on_devices` makes images and labels of: a few numbers for each
      image, where the split holds all; else labels int64 (b,), uint8 images (b, h, w, c).
    """
    strategy, split = placement.strategy, splits.train
    per_replica = recipe.batch_size // strategy.num_replicas_in_sync
    with tf.device("CPU:0"):
        labels = tf.constant(split.labels)  # here, so that no graph holds a copy
    count = steps(splits, recipe)

    def of_worker(context):
        share = _share(strategy, context)

        def plan(epoch):
            drawn = (_plan if split.jpegs is None else _plan_of_jpegs)(epoch, labels, recipe, count)
            return tf.data.Dataset.from_tensor_slices(tuple(share(x, count) for x in drawn))

        epochs = tf.data.Dataset.range(first_epoch, math.ceil(recipe.epochs))
        examples = epochs.flat_map(plan)
        if split.jpegs:
            examples = jpegs.decoded(examples, split.jpegs, _cropper(recipe))
        batches = examples.batch(per_replica, drop_remainder=True)
        # Enough to bridge a checkpoint.
        return batches.prefetch(4).with_options(without_autotune())

    return strategy.distribute_datasets_from_function(of_worker)


def on_devices(
    splits: Splits, recipe: Recipe, placement: Placement
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """What makes images and labels of a batch of `train`, as a part of the training step.

    Where the split holds all images, every device gets them, so that no step waits for the host.

    Returns:
      From a batch to images float32 (b, h, w, c), or (b, c, h, w) in NCHW, and labels int64 (b,).
    """
    standardize = augment.standardizer(recipe, placement.data_format)
    if splits.train.held is None:
        return lambda labels, images: (standardize(images), labels)
    fetch = _on_each_device(splits.train.held.numpy(), placement.strategy)

    def prepare(indices, labels, offsets, flips, *places):
        images = fetch(indices)
        images = augment.crop_and_flip(images, offsets, flips, recipe.pad, recipe.pad_mode)
        return standardize(images, *places), labels

    return prepare


def _on_each_device(images, strategy):
    """From indices to images, of a copy of them all on each of the strategy's devices.

    They are held as words of float32: workers hand one another the values that variables start
    from, which can't be bytes, and TensorFlow keeps integers of 32 bits in the host's memory.
    """
    count, *shape = images.shape
    rows = images.reshape(count, -1)
    size = rows.shape[1]
    words = np.pad(rows, [(0, 0), (0, -size % 4)]).view(np.float32)
    with strategy.scope():
        held = tf.Variable(words, trainable=False, name="training_images")

    def fetch(indices):
        rows = tf.bitcast(tf.gather(held, indices % count), tf.uint8)  # (b, words, 4)
        rows = tf.reshape(rows, [-1, 4 * words.shape[1]])[:, :size]
        return tf.reshape(rows, [-1, *shape])

    return fetch


def _plan(epoch, labels, recipe, steps):
    """What an epoch's steps see, all replicas together: indices, labels, offsets, flips; places of
    what is cut out, if anything is."""
    order = _order(epoch, labels, recipe, steps)
    count = steps * recipe.batch_size
    crop_seed, cutout_seed = (_seed(recipe, epoch, purpose) for purpose in (_CROP, _CUTOUT))
    offsets = tf.random.stateless_uniform(
        [count, 2], crop_seed, maxval=2 * recipe.pad + 1, dtype=tf.int32
    )  # (count, 2)
    drawn = order, tf.gather(labels, order), offsets, _flips(epoch, labels, recipe, order)
    if not recipe.cutout:
        return drawn
    return *drawn, tf.random.stateless_uniform([count, 2], cutout_seed)


def _plan_of_jpegs(epoch, labels, recipe, steps):
    """What an epoch's steps see of JPEGs: indices, labels, seeds of crops, flips, sizes."""
    order = _order(epoch, labels, recipe, steps)
    count = steps * recipe.batch_size
    seeds = tf.random.stateless_uniform(
        [count, 2], _seed(recipe, epoch, _CROP), minval=None, maxval=None, dtype=tf.int32
    )
    past = tf.cast(epoch, tf.float32) >= tf.constant(recipe.image_size_epochs, tf.float32)
    size = tf.gather(recipe.sizes, tf.reduce_sum(tf.cast(past, tf.int32)))
    flips = _flips(epoch, labels, recipe, order)
    return order, tf.gather(labels, order), seeds, flips, tf.fill([count], size)


def _order(epoch, labels, recipe, steps):
    """Indices of the examples that an epoch's steps see, (steps x batch,)."""
    examples = labels.shape[0]
    seed = _seed(recipe, epoch, _ORDER)
    order = tf.random.experimental.stateless_shuffle(tf.range(examples), seed)
    return tf.gather(order, tf.range(steps * recipe.batch_size) % examples)


def _flips(epoch, labels, recipe, order):
    """Whether each of the examples in `order` is mirrored."""
    seed = _seed(recipe, epoch, _FLIP)
    if recipe.alternating_flip:  # drawn once for each image; then all turn in each epoch
        first = tf.random.stateless_uniform([labels.shape[0]], _seed(recipe, 0, _FLIP)) < 0.5
        return tf.gather(first, order) ^ (epoch % 2 == 1)
    return tf.random.stateless_uniform(order.shape, seed) < (0.5 if recipe.flip else 0.0)


def _cropper(recipe):
    """From a JPEG and what is drawn for it to its label and its pixels in training."""
    if recipe.rand_augment:
        # Only here: it takes seconds to import.
        from dawnbench_tf.data.images.rand_augment import rand_augment

    def crop(jpeg, label, seed, flip, size):
        image = jpegs.random_crop(jpeg, seed, flip, size, recipe.smallest_crop)
        if len(set(recipe.sizes)) == 1:
            image = tf.ensure_shape(image, [recipe.sizes[0], recipe.sizes[0], 3])
        if recipe.rand_augment:
            operations, magnitude = recipe.rand_augment
            image = rand_augment(image, seed, int(operations), magnitude)
        return label, image

    return crop


def _seed(recipe, epoch, purpose):
    seed = tf.stack([tf.constant(recipe.seed, tf.int64), tf.cast(epoch, tf.int64)])
    return tf.random.experimental.stateless_fold_in(seed, purpose)


def _share(strategy, context):
    """Cuts what belongs to this worker's replicas out of every global batch."""
    own, replicas = own_replicas(strategy, context), strategy.num_replicas_in_sync

    def share(values, steps):  # (steps * batch, ...) -> (steps * own share of the batch, ...)
        by_replica = tf.reshape(values, [steps, replicas, -1, *values.shape[1:]])
        return tf.reshape(by_replica[:, own], [-1, *values.shape[1:]])

    return share


def test(splits: Splits, recipe: Recipe, placement: Placement, batch_size: int) -> tf.data.Dataset:
    """Test images in order, uint8 (b, h, w, c), shared out over replicas.

    The last batch is filled up with the first images again; `collect` cuts these off.
    """
    strategy = placement.strategy
    per_replica = batch_size // strategy.num_replicas_in_sync
    examples = len(splits.test.labels)
    steps = steps_per_epoch(examples, batch_size)

    def of_worker(context):
        own = _share(strategy, context)(tf.range(steps * batch_size) % examples, steps)
        batches = _as_tested(splits.test, recipe, own, per_replica)
        return batches.prefetch(2).with_options(without_autotune())

    return strategy.distribute_datasets_from_function(of_worker)


def _as_tested(split, recipe, indices, batch_size):
    """Batches of images as the test sees them, uint8 (b, h, w, c): full ones only."""
    examples = tf.data.Dataset.from_tensor_slices(indices)
    if split.jpegs is None:
        batches = examples.batch(batch_size, drop_remainder=True)
        return batches.map(split.of_memory, num_parallel_calls=2)
    side = recipe.test_side

    def crop(jpeg):
        return tf.ensure_shape(jpegs.center_crop(jpeg, side, side), [side, side, 3])

    return jpegs.decoded(examples, split.jpegs, crop).batch(batch_size, drop_remainder=True)


def prepare_test(recipe: Recipe, placement: Placement) -> Callable[[tf.Tensor], tf.Tensor]:
    """From a batch of `test` to the network's input, float32 (b, h, w, c) or (b, c, h, w)."""
    return augment.standardizer(recipe, placement.data_format)


def collect(
    outputs: list[np.ndarray], splits: Splits, placement: Placement, batch_size: int
) -> np.ndarray:
    """The test's outputs, one for each image, from those of `test`'s batches."""
    return np.concatenate(outputs)[: len(splits.test.labels)]  # the rest is padding


class OneByOne(Sequence[Example]):
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
            return OneByOne(self._splits, self._recipe, self._indices[index])
        index = range(len(self))[index]
        if index // BLOCK != self._block:
            self._block = index // BLOCK
            block = self._indices[self._block * BLOCK :][:BLOCK]
            self._images = _one_batch(self._splits.test, self._recipe, "NHWC", np.array(block))
        return (self._images[index % BLOCK][None],)


def join(outputs: Iterable[np.ndarray], splits: Splits) -> np.ndarray:
    """The test's outputs from those of each image alone."""
    return np.concatenate(list(outputs))


def without_augmentation(
    split: Split, recipe: Recipe, data_format: str, examples: int
) -> np.ndarray:
    """A split's first images as a network gets them in the test: float32."""
    return _one_batch(split, recipe, data_format, np.arange(min(examples, len(split.labels))))


def _one_batch(split, recipe, data_format, indices):
    with tf.device("CPU:0"), refusing_damage():
        images = next(iter(_as_tested(split, recipe, indices, len(indices))))
        return augment.standardizer(recipe, data_format)(images).numpy()
