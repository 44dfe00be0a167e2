"""Batches of images in memory, the same for however many replicas.

Everything random about an epoch (order, crops, flips) is drawn at its start from (seed, epoch)
alone, for the global batch, and only then shared out: the same examples make up step i of epoch e
under every strategy, after every restart.
"""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data import augment
from dawnbench_tf.data.splits import Splits

_ORDER, _CROP, _FLIP = range(3)  # purposes of random numbers


def steps_per_epoch(examples: int, batch_size: int) -> int:
    """Steps in which each example is seen at least once: 391 for 50,000 at 128, as the seeds count.

    >>> steps_per_epoch(50_000, 128)
    391
    """
    return -(-examples // batch_size)


def steps(splits: Splits, recipe) -> int:
    """Steps of an epoch of the recipe."""
    return steps_per_epoch(len(splits.train_labels), recipe.batch_size)


def train(splits: Splits, recipe, strategy, data_format: str, first_epoch: int = 0):
    """Training batches from `first_epoch` on, images float32 and labels, shared out over replicas.

    An epoch's last batch is filled up with the first examples of its own order, so shapes are
    static and no example is left out.
    """
    per_replica = recipe.batch_size // strategy.num_replicas_in_sync
    standardize = _standardizer(recipe, data_format)

    with tf.device("CPU:0"):  # tf.data runs there; a GPU's memory is for the model
        images, labels = tf.constant(splits.train_images), tf.constant(splits.train_labels)

    def of_worker(context):
        def prepare(indices, offsets, flips):
            batch = augment.crop_and_flip(tf.gather(images, indices), offsets, flips, recipe.pad)
            return standardize(batch), tf.gather(labels, indices)

        return (
            tf.data.Dataset.range(first_epoch, recipe.epochs)
            .flat_map(
                lambda epoch: _plan(epoch, len(splits.train_labels), recipe, strategy, context)
            )
            .batch(per_replica, drop_remainder=True)
            .map(prepare, num_parallel_calls=2, deterministic=True)
            .prefetch(4)
            .with_options(_options())
        )

    return strategy.distribute_datasets_from_function(of_worker)


def _plan(epoch, examples, recipe, strategy, context):
    """What each step of an epoch sees: indices, crop offsets, flips; this worker's share."""
    steps = steps_per_epoch(examples, recipe.batch_size)
    count = steps * recipe.batch_size
    seed = tf.stack([tf.constant(recipe.seed, tf.int64), epoch])
    order_seed, crop_seed, flip_seed = (
        tf.random.experimental.stateless_fold_in(seed, purpose)
        for purpose in (_ORDER, _CROP, _FLIP)
    )
    order = tf.random.experimental.stateless_shuffle(tf.range(examples), order_seed)
    order = tf.gather(order, tf.range(count) % examples)
    offsets = tf.random.stateless_uniform(
        [count, 2], crop_seed, maxval=2 * recipe.pad + 1, dtype=tf.int32
    )
    flips = tf.random.stateless_uniform([count], flip_seed) < (0.5 if recipe.flip else 0.0)
    share = _share(strategy, context)
    return tf.data.Dataset.from_tensor_slices(
        tuple(share(x, steps) for x in (order, offsets, flips))
    )


def _share(strategy, context):
    """Cuts what belongs to this worker's replicas out of every global batch."""
    replicas = strategy.num_replicas_in_sync
    mine = replicas // context.num_input_pipelines
    first = context.input_pipeline_id * mine

    def share(values, steps):
        cut = tf.reshape(values, [steps, replicas, -1, *values.shape[1:]])[:, first : first + mine]
        return tf.reshape(cut, [-1, *values.shape[1:]])

    return share


def test(splits: Splits, recipe, strategy, data_format: str, batch_size: int):
    """Test images in order, float32, shared out over replicas; the last batch is padded with zeros.

    `collect` cuts the padding off again.
    """
    standardize = _standardizer(recipe, data_format)
    per_replica = batch_size // strategy.num_replicas_in_sync
    steps = steps_per_epoch(len(splits.test_labels), batch_size)
    padding = steps * batch_size - len(splits.test_labels)
    with tf.device("CPU:0"):
        images = tf.pad(tf.constant(splits.test_images), [[0, padding], [0, 0], [0, 0], [0, 0]])

    def of_worker(context):
        mine = _share(strategy, context)(tf.range(steps * batch_size), steps)
        return (
            tf.data.Dataset.from_tensor_slices(mine)
            .batch(per_replica, drop_remainder=True)
            .map(lambda indices: standardize(tf.gather(images, indices)), num_parallel_calls=2)
            .prefetch(2)
            .with_options(_options())
        )

    return strategy.distribute_datasets_from_function(of_worker)


def collect(outputs, splits: Splits, strategy, batch_size: int) -> np.ndarray:
    """The test's outputs, one for each image, from those of `test`'s batches."""
    return np.concatenate(outputs)[: len(splits.test_labels)]  # the rest is padding


def one_by_one(splits: Splits, recipe) -> list[tuple[np.ndarray, ...]]:
    """The model's input for each test image alone, NHWC, in their order."""
    standardize = _standardizer(recipe, "NHWC")
    with tf.device("CPU:0"):
        images = [
            standardize(tf.constant(some)).numpy()
            for some in np.array_split(splits.test_images, -(-len(splits.test_images) // 500))
        ]
    return [(image[None],) for some in images for image in some]


def together(outputs: list[np.ndarray], splits: Splits) -> np.ndarray:
    """The test's outputs from those of each image alone."""
    return np.concatenate(outputs)


def first(splits: Splits, count: int) -> Splits:
    """The data set with its first test images only."""
    return splits._replace(
        test_images=splits.test_images[:count], test_labels=splits.test_labels[:count]
    )


def references(splits: Splits) -> np.ndarray:
    """What the test's outputs are held against."""
    return splits.test_labels


def sample(splits: Splits, recipe, data_format: str, examples: int = 1000):
    """The first training images as a model gets them, but for augmentation: float32."""
    return _standardizer(recipe, data_format)(tf.constant(splits.train_images[:examples]))


def _standardizer(recipe, data_format):
    if recipe.standardize == "image":
        standardize = augment.standardize_by_image
    else:

        def standardize(images):
            return augment.standardize_by_channel(
                images, recipe.channel_mean, recipe.channel_deviation
            )

    if data_format == "NHWC":
        return standardize
    return lambda images: tf.transpose(standardize(images), [0, 3, 1, 2])


def _options():
    options = tf.data.Options()
    # With autotune on, fit lingered until the tuner's next period: 5.1 s for an epoch of 2.9 s.
    options.autotune.enabled = False
    return options
