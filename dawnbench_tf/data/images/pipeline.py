"""Batches of training images, the same for however many replicas.

Images that fit into memory live on the devices and are augmented there, a batch in a few large
operations; JPEGs are read, cropped and decoded on the host, ahead of the steps. Everything random
about an epoch (order, crops, flips) is drawn at its start from (seed, epoch) alone, for the global
batch, and only then shared out: the same examples make up step i of epoch e under every strategy,
after every restart. Axes: b batch, h height, w width, c channels.
"""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine
from dawnbench_tf.data.dataset import Data, own_replicas, without_autotune
from dawnbench_tf.data.images import augment, jpegs

_ORDER, _CROP, _FLIP, _CUTOUT = range(4)  # purposes of random numbers


def count_batches(examples: int, batch_size: int) -> int:
    """Steps in which each example is seen at least once: 391 for 50,000 at 128, as the seeds count.

    >>> count_batches(50_000, 128)
    391
    """
    return -(-examples // batch_size)


def steps_per_epoch(data: Data) -> int:
    """Returns the number of steps of an epoch."""
    recipe, examples = data.recipe, len(data.splits.train.labels)
    if recipe.drop_remainder:
        return examples // recipe.batch_size
    return count_batches(examples, recipe.batch_size)


def training_batches(data: Data, first_epoch: int = 0) -> tf.data.Dataset:
    """Training batches from `first_epoch` on, shared out over replicas.

    An epoch's last batch is filled up with the first examples of its own order, so shapes are
    static and no example is left out; or, with `recipe.drop_remainder`, there is none.

    Returns:
      A distributed data set of what `on_devices` makes images and labels of: a few numbers for each
      image, where the split holds all; else labels int64 (b,), uint8 images (b, h, w, c).
    """
    strategy = data.placement.strategy
    per_replica = data.recipe.batch_size // strategy.num_replicas_in_sync
    epochs = range(first_epoch, math.ceil(data.recipe.epochs))

    def of_worker(context):
        worker = context.input_pipeline_id, context.num_input_pipelines
        batches = _batches(data, epochs, share(strategy, context), per_replica, worker)
        # Enough to bridge a checkpoint.
        return data.placement.count_waits(batches.prefetch(4)).with_options(without_autotune())

    return data.placement.distribute(of_worker)


def epoch_batches(data: Data, number: int) -> tf.data.Dataset:
    """An epoch's global batches as the network gets them: images and labels.

    Returns:
      A data set of images float32 (b, h, w, c), or (b, c, h, w) in NCHW, and labels int64 (b,).
    """
    fetch = data.splits.train.fetch
    whole = range(number, number + 1)
    batches = _batches(data, whole, lambda values, _: values, data.recipe.batch_size, (0, 1))
    prepared = batches.map(_preparation(data, fetch), machine.cpus(), deterministic=True)
    return prepared.prefetch(2).with_options(without_autotune())


def _batches(data, epochs, own, batch_size, worker):
    """Batches of what `on_devices` prepares, for some epochs.

    Args:
      data: the data set.
      epochs: range of them.
      own: from values (steps * batch, ...) of an epoch, and its steps, to this worker's.
      batch_size: examples of a batch.
      worker: number of this worker, and of all.
    """
    recipe, split, count = data.recipe, data.splits.train, steps_per_epoch(data)
    with tf.device("CPU:0"):
        labels = tf.constant(split.labels)  # here, so that no graph holds a copy

    def plan(epoch):
        drawn = (_plan_of_jpegs if split.held is None else _plan)(epoch, labels, recipe, count)
        return tf.data.Dataset.from_tensor_slices(tuple(own(x, count) for x in drawn))

    numbers = tf.data.Dataset.range(epochs.start, epochs.stop)
    if split.in_sequence:
        examples = _in_sequence(numbers, split.in_sequence, plan, recipe, worker)
    elif split.jpegs:
        examples = jpegs.decoded(numbers.flat_map(plan), split.jpegs, _cropper(recipe))
    else:
        examples = numbers.flat_map(plan)
    return examples.batch(batch_size, drop_remainder=True)


def _in_sequence(epochs, read, plan, recipe, worker):
    """Examples of a split that is read in its own order; of what is planned, the rest is used."""
    crop = _cropper(recipe)

    def of_epoch(epoch):
        examples = read(_seed(recipe, epoch, _ORDER), *worker).repeat()  # files differ in length
        return tf.data.Dataset.zip(examples, plan(epoch))

    return epochs.flat_map(of_epoch).map(
        lambda example, drawn: crop(example[1], example[0], *drawn[2:]),
        num_parallel_calls=machine.cpus(),
        deterministic=True,
    )


def on_devices(data: Data) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """What makes images and labels of a batch of `distributed`, as a part of the training step.

    Where the split holds all images, every device gets them, so that no step waits for the host.

    Returns:
      From a batch to images float32 (b, h, w, c), or (b, c, h, w) in NCHW, and labels int64 (b,).
    """
    held = data.splits.train.held
    fetch = None if held is None else _on_each_device(held.numpy(), data.placement.strategy)
    return _preparation(data, fetch)


def _preparation(data, fetch):
    """From a batch to the network's images and labels; `fetch` takes indices to images."""
    recipe = data.recipe
    standardize = augment.standardizer(recipe, data.placement.data_format)
    if data.splits.train.held is None:
        return lambda labels, images: (standardize(images), labels)

    def prepare(indices, labels, offsets, flips, *places):
        images = fetch(indices)
        images = augment.crop_and_flip(
            images, offsets, flips, recipe.data.pad, recipe.data.pad_mode
        )
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
        [count, 2], crop_seed, maxval=2 * recipe.data.pad + 1, dtype=tf.int32
    )  # (count, 2)
    drawn = order, tf.gather(labels, order), offsets, _flips(epoch, labels, recipe, order)
    if not recipe.data.cutout:
        return drawn
    return *drawn, tf.random.stateless_uniform([count, 2], cutout_seed)


def _plan_of_jpegs(epoch, labels, recipe, steps):
    """What an epoch's steps see of JPEGs: indices, labels, seeds of crops, flips, sizes."""
    order = _order(epoch, labels, recipe, steps)
    count = steps * recipe.batch_size
    seeds = tf.random.stateless_uniform(
        [count, 2], _seed(recipe, epoch, _CROP), minval=None, maxval=None, dtype=tf.int32
    )
    past = tf.cast(epoch, tf.float32) >= tf.constant(recipe.data.image_size_epochs, tf.float32)
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
    if recipe.data.alternating_flip:  # drawn once for each image; then all turn in each epoch
        first = tf.random.stateless_uniform([labels.shape[0]], _seed(recipe, 0, _FLIP)) < 0.5
        return tf.gather(first, order) ^ (epoch % 2 == 1)
    return tf.random.stateless_uniform(order.shape, seed) < (0.5 if recipe.data.flip else 0.0)


def _cropper(recipe):
    """From a JPEG and what is drawn for it to its label and its pixels in training."""
    if recipe.data.rand_augment:
        # Only here: it takes seconds to import.
        from dawnbench_tf.data.images.rand_augment import rand_augment

    def crop(jpeg, label, seed, flip, size):
        image = jpegs.random_crop(jpeg, seed, flip, size, recipe.data.smallest_crop)
        if len(set(recipe.sizes)) == 1:
            image = tf.ensure_shape(image, [recipe.sizes[0], recipe.sizes[0], 3])
        if recipe.data.rand_augment:
            operations, magnitude = recipe.data.rand_augment
            image = rand_augment(image, seed, int(operations), magnitude)
        if recipe.data.color_shift:
            image = jpegs.shift_colors(image, seed, *recipe.data.color_shift)
        return label, image

    return crop


def _seed(recipe, epoch, purpose):
    seed = tf.stack([tf.constant(recipe.seed, tf.int64), tf.cast(epoch, tf.int64)])
    return tf.random.experimental.stateless_fold_in(seed, purpose)


def share(
    strategy: tf.distribute.Strategy, context: tf.distribute.InputContext
) -> Callable[[tf.Tensor, int], tf.Tensor]:
    """Cuts what belongs to this worker's replicas out of every global batch."""
    own, replicas = own_replicas(strategy, context), strategy.num_replicas_in_sync

    def own_part(values, steps):  # (steps * batch, ...) -> (steps * own share of the batch, ...)
        by_replica = tf.reshape(values, [steps, replicas, -1, *values.shape[1:]])
        return tf.reshape(by_replica[:, own], [-1, *values.shape[1:]])

    return own_part
