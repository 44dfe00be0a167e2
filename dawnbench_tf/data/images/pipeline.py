"""Batches of images, the same for however many replicas.

Images that fit into memory live on the devices and are augmented there, a batch in a few large
operations; others are read and augmented on the host, ahead of the steps. Everything random about
an epoch (order, crops, flips) is drawn at its start from (seed, epoch) alone, for the global batch,
and only then shared out: the same examples make up step i of epoch e under every strategy, after
every restart. Axes: b batch, h height, w width, c channels.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.images import augment
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.inputs import Example, Placement, own_replicas, without_autotune
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
      A distributed data set of images float32 (b, h, w, c), or (b, c, h, w) in NCHW, and labels
      int64 (b,). Where the split holds all images, a few numbers for each image come in their
      place, of which `on_devices` makes them.
    """
    strategy, split = placement.strategy, splits.train
    per_replica = recipe.batch_size // strategy.num_replicas_in_sync
    prepare = _preparation(recipe, placement.data_format, split.fetch)
    with tf.device("CPU:0"):
        labels = tf.constant(split.labels)  # here, so that no graph holds a copy

    def of_worker(context):
        def plan(epoch):
            count = steps(splits, recipe)
            drawn = _plan(epoch, labels, recipe, count)
            share = _share(strategy, context)
            return tf.data.Dataset.from_tensor_slices(tuple(share(x, count) for x in drawn))

        epochs = tf.data.Dataset.range(first_epoch, math.ceil(recipe.epochs))
        batches = epochs.flat_map(plan).batch(per_replica, drop_remainder=True)
        if split.held is None:  # more calls took cores from steps
            batches = batches.map(prepare, num_parallel_calls=2, deterministic=True)
        # Enough to bridge a checkpoint.
        return batches.prefetch(4).with_options(without_autotune())

    return strategy.distribute_datasets_from_function(of_worker)


def on_devices(
    splits: Splits, recipe: Recipe, placement: Placement
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]] | None:
    """What makes images and labels of a batch of `train`, as a part of the training step.

    Every device has all training images, so that none of its steps waits for the host. None: the
    split does not hold them, and `train` gives them itself.
    """
    if splits.train.held is None:
        return None
    fetch = _on_each_device(splits.train.held.numpy(), placement.strategy)
    return _preparation(recipe, placement.data_format, fetch)


def _on_each_device(images, strategy):
    """A split's `fetch`, from a copy of all its images on each of the strategy's devices.

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
        rows = tf.bitcast(tf.gather(held, indices), tf.uint8)  # (b, words, 4)
        rows = tf.reshape(rows, [-1, 4 * words.shape[1]])[:, :size]
        return tf.reshape(rows, [-1, *shape])

    return fetch


def _preparation(recipe, data_format, fetch):
    """From what is drawn for a batch to its images and labels."""
    standardize = _standardizer(recipe, data_format)

    def prepare(labels, indices, offsets, flips, *places):
        images = fetch(indices)
        images = augment.crop_and_flip(images, offsets, flips, recipe.pad, recipe.pad_mode)
        return standardize(images, *places), labels

    return prepare


def _plan(epoch, labels, recipe, steps):
    """What an epoch's steps see, all replicas together: labels, indices, offsets, flips; places of
    what is cut out, if anything is."""
    examples = labels.shape[0]
    count = steps * recipe.batch_size
    order_seed, crop_seed, flip_seed, cutout_seed = (
        _seed(recipe, epoch, purpose) for purpose in (_ORDER, _CROP, _FLIP, _CUTOUT)
    )
    order = tf.random.experimental.stateless_shuffle(tf.range(examples), order_seed)
    order = tf.gather(order, tf.range(count) % examples)  # (count,)
    offsets = tf.random.stateless_uniform(
        [count, 2], crop_seed, maxval=2 * recipe.pad + 1, dtype=tf.int32
    )  # (count, 2)
    flips = tf.random.stateless_uniform([count], flip_seed) < (0.5 if recipe.flip else 0.0)
    if recipe.alternating_flip:  # drawn once for each image; then all turn in each epoch
        first = tf.random.stateless_uniform([examples], _seed(recipe, 0, _FLIP)) < 0.5
        flips = tf.gather(first, order) ^ (epoch % 2 == 1)
    labels = tf.gather(labels, order)
    if not recipe.cutout:
        return labels, order, offsets, flips
    return labels, order, offsets, flips, tf.random.stateless_uniform([count, 2], cutout_seed)


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
    """Test images in order, float32 (b, h, w, c) or (b, c, h, w), shared out over replicas.

    The last batch is filled up with the first images again; `collect` cuts these off.
    """
    strategy = placement.strategy
    standardize = _standardizer(recipe, placement.data_format)
    per_replica = batch_size // strategy.num_replicas_in_sync
    examples = len(splits.test.labels)
    steps = steps_per_epoch(examples, batch_size)

    def of_worker(context):
        own = _share(strategy, context)(tf.range(steps * batch_size) % examples, steps)
        return (
            tf.data.Dataset.from_tensor_slices(own)
            .batch(per_replica, drop_remainder=True)
            .map(lambda indices: standardize(splits.test.fetch(indices)), num_parallel_calls=2)
            .prefetch(2)
            .with_options(without_autotune())
        )

    return strategy.distribute_datasets_from_function(of_worker)


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
    """

    def __init__(self, splits: Splits, recipe: Recipe):
        self._split, self._standardize = splits.test, _standardizer(recipe, "NHWC")
        self._block, self._images = -1, np.empty(0)

    def __len__(self):
        return len(self._split.labels)

    def __getitem__(self, index: Any) -> Any:  # an Example, or a list of them
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        index = range(len(self))[index]
        if index // BLOCK != self._block:
            self._block = index // BLOCK
            first = self._block * BLOCK
            with tf.device("CPU:0"):
                images = self._split.images(slice(first, first + BLOCK))
                self._images = self._standardize(tf.constant(images)).numpy()
        return (self._images[index % BLOCK][None],)


def join(outputs: Iterable[np.ndarray], splits: Splits) -> np.ndarray:
    """The test's outputs from those of each image alone."""
    return np.concatenate(list(outputs))


def without_augmentation(
    split: Split, recipe: Recipe, data_format: str, examples: int
) -> np.ndarray:
    """A split's first images as a network gets them in the test: float32."""
    with tf.device("CPU:0"):
        images = tf.constant(split.images(slice(examples)))
        return _standardizer(recipe, data_format)(images).numpy()


def _standardizer(recipe: Recipe, data_format: str) -> Callable[..., tf.Tensor]:
    """From uint8 images, and in training where to cut out, to the network's input."""

    def standardize(images, places=None):
        if recipe.standardize == "image":
            images = augment.standardize_by_image(images)
        else:
            images = augment.standardize_by_channel(
                images, recipe.channel_mean, recipe.channel_deviation
            )
        if places is not None:
            images = augment.cut_out(images, places, recipe.cutout)
        return images if data_format == "NHWC" else tf.transpose(images, [0, 3, 1, 2])

    return standardize
