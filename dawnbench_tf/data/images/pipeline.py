"""Training batches of images, equal under every distribution strategy.

Images that fit into memory are kept on the devices and augmented there, a batch at a time. JPEGs
are read, cropped and decoded on the host, ahead of the steps.

Reproducibility: order, crops and flips of an epoch are drawn at its start from (seed, epoch), for
the global batch, and only then split over the replicas. So step i of epoch e has the same examples
under every strategy, and after every restart.

Axes: b batch, h height, w width, c channels.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import tensorflow as tf

from dawnbench_tf.data.dataset import Data
from dawnbench_tf.data.images import augment, jpegs
from dawnbench_tf.data.placement import own_replicas
from dawnbench_tf.recipe import Recipe

# Purposes of random numbers.
_ORDER, _CROP, _FLIP, _CUTOUT, _COLOR, _ROTATION, _PARTNER, _SHARE, _LIGHT = range(9)


def batches(
    data: Data, epochs: range, select: Callable[[tf.Tensor, int], tf.Tensor], batch_size: int
) -> tf.data.Dataset:
    """Returns this worker's batches of some epochs, for `preparation`."""
    # Images in memory: their indices, labels, crop offsets, flips and a dictionary of other draws
    # (`_plan`). JPEGs: labels int64 (b,), images uint8 (b, h, w, c). The last batch of an epoch is
    # completed with the first examples of its order, so shapes are static and no example is left
    # out.
    recipe, split, count = data.recipe, data.splits.train, data.steps_per_epoch
    with tf.device("CPU:0"):
        labels = tf.constant(split.labels)  # outside the graphs, so that none holds a copy

    draw = _jpeg_plan if split.held is None else partial(_plan, side=split.held.shape[1])

    def plan(epoch: tf.Tensor) -> tf.data.Dataset:
        drawn = draw(epoch, labels, recipe, count)
        shared = tf.nest.map_structure(lambda values: select(values, count), drawn)
        return tf.data.Dataset.from_tensor_slices(shared)

    examples = tf.data.Dataset.range(epochs.start, epochs.stop).flat_map(plan)
    if split.jpegs:
        examples = jpegs.decode_examples(examples, split.jpegs, _cropper(recipe))
    return examples.batch(batch_size, drop_remainder=True)


def preparation(
    data: Data,
    fetch: Callable[[tf.Tensor], tf.Tensor] | Any,  # None without images in memory
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """Returns a function from `batches` to network inputs and labels, with mixup (b, classes)."""
    # `fetch` is a function from indices to images.
    recipe = data.recipe
    standardize = augment.standardizer(recipe, data.placement.data_format)
    if data.splits.train.held is None:
        return lambda labels, images: (standardize(images), labels)

    settings = recipe.data

    def augmented(
        indices: tf.Tensor, offsets: tf.Tensor, flips: tf.Tensor, others: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        # TensorFlow has no GPU kernel that gathers uint8.
        images = tf.cast(fetch(indices), tf.float32)
        images = augment.crop_and_flip(
            images, offsets, flips, settings.pad, settings.pad_mode, settings.crop_size
        )
        if "colors" in others:
            images = augment.jitter_colors(images, others["colors"])
        if "degrees" in others:
            images = augment.rotate(images, others["degrees"])
        images = standardize(images, others.get("positions"))
        if "light" in others:
            images = augment.jitter_light(images, others["light"])
        if "side" in others:
            images = augment.scale_down(images, others["side"].shape[1], data.placement.data_format)
        return images

    def prepare(
        indices: tf.Tensor,
        labels: tf.Tensor,
        offsets: tf.Tensor,
        flips: tf.Tensor,
        others: Mapping[str, Any],
    ) -> tuple[tf.Tensor, tf.Tensor]:
        images = augmented(indices, offsets, flips, others)
        if "partner" not in others:
            return images, labels
        partners = augmented(*others["partner"])
        shares, classes = others["share"], recipe.task_row.classes
        probabilities = shares[:, None] * tf.one_hot(labels, classes)
        probabilities += (1 - shares[:, None]) * tf.one_hot(others["partner_labels"], classes)
        shares = shares[:, None, None, None]
        return shares * images + (1 - shares) * partners, probabilities

    return prepare


def on_each_device(
    images: tf.Tensor, strategy: tf.distribute.Strategy, examples: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Copies all images to every device; returns a function from indices to images."""
    # If there are more `examples` than images, as in synthetic data, example i has image i %
    # images. The copy is a float32 variable that holds 4 bytes in each element. Workers exchange
    # initial values of variables, which fails for uint8, and TensorFlow keeps int32 variables in
    # host memory.
    count, *shape = images.shape
    size = math.prod(shape)
    with tf.device("CPU:0"):  # without a copy, unless the rows are padded
        rows = tf.reshape(images, [count, size])
        rows = tf.pad(rows, [[0, 0], [0, -size % 4]]) if size % 4 else rows
        words = tf.bitcast(tf.reshape(rows, [count, -1, 4]), tf.float32)
    with strategy.scope():
        held = tf.Variable(words, trainable=False, name="training_images")

    def fetch(indices: tf.Tensor) -> tf.Tensor:
        indices = indices if examples == count else indices % count
        rows = tf.bitcast(tf.gather(held, indices), tf.uint8)  # (b, words, 4)
        rows = tf.reshape(rows, [-1, 4 * words.shape[1]])[:, :size]
        return tf.reshape(rows, [-1, *shape])

    return fetch


def _plan(
    epoch: tf.Tensor, labels: tf.Tensor, recipe: Recipe, steps: int, side: int
) -> tuple[Any, ...]:
    """Draws an epoch of images in memory; each draw is of length steps * batch."""
    # Returns indices, labels, crop offsets, flips and a dictionary of what the recipe draws
    # besides: `positions` (.., 2) of Cutout in 0..1; `colors` (.., 3), factors; `light` (.., 2),
    # shift and change of contrast; `degrees`; `side` (.., size of the images, 0); with mixup
    # `partner`, the draws of the image that an image is mixed with, its `partner_labels`, and the
    # image's own `share`.
    order = _order(epoch, labels, recipe, steps)
    count = steps * recipe.batch_size
    settings = recipe.data

    def uniform(purpose: int, *shape: int, **limits: Any) -> tf.Tensor:
        return tf.random.stateless_uniform([count, *shape], _seed(recipe, epoch, purpose), **limits)

    margin = 2 * settings.pad + side - (settings.crop_size or side)
    offsets = uniform(_CROP, 2, maxval=margin + 1, dtype=tf.int32)  # (count, 2)
    others: dict[str, Any] = {}
    if settings.image_sizes:  # empty; its static shape carries the size
        others["side"] = tf.zeros([count, settings.image_sizes[0], 0])
    if settings.cutout:
        others["positions"] = uniform(_CUTOUT, 2)
    if settings.color_jitter:
        others["colors"] = 1 + settings.color_jitter * (2 * uniform(_COLOR, 3) - 1)
    if settings.brightness_contrast:
        others["light"] = settings.brightness_contrast * (2 * uniform(_LIGHT, 2) - 1)
    if settings.rotation:
        others["degrees"] = settings.rotation * (2 * uniform(_ROTATION) - 1)
    drawn = order, tf.gather(labels, order), offsets, _flips(epoch, labels, recipe, order), others
    if not settings.mixup:
        return drawn
    # Partners are a random permutation of the batch, in which an image may be its own.
    keys = tf.reshape(uniform(_PARTNER), [steps, -1])
    positions = tf.argsort(keys) + recipe.batch_size * tf.range(steps)[:, None]
    positions = tf.reshape(positions, [-1])
    index, partner_labels, *partner = tf.nest.map_structure(
        lambda values: tf.gather(values, positions), drawn
    )
    # A Beta(a, a) number is the share of one of two Gamma(a) numbers.
    gammas = tf.random.stateless_gamma([count, 2], _seed(recipe, epoch, _SHARE), settings.mixup)
    share = gammas[:, 0] / tf.maximum(tf.reduce_sum(gammas, 1), 1e-30)
    mixup = {"partner": (index, *partner), "partner_labels": partner_labels}
    return *drawn[:4], {**others, **mixup, "share": tf.maximum(share, 1 - share)}


def _jpeg_plan(
    epoch: tf.Tensor, labels: tf.Tensor, recipe: Recipe, steps: int
) -> tuple[tf.Tensor, ...]:
    """Draws an epoch of JPEGs: indices, labels, seeds of crops, flips, indices of the size."""
    # Each is of length steps * batch.
    order = _order(epoch, labels, recipe, steps)
    count = steps * recipe.batch_size
    seeds = tf.random.stateless_uniform(
        [count, 2], _seed(recipe, epoch, _CROP), minval=None, maxval=None, dtype=tf.int32
    )
    past = tf.cast(epoch, tf.float32) >= tf.constant(recipe.data.image_size_epochs, tf.float32)
    size_index = tf.reduce_sum(tf.cast(past, tf.int32))  # boundaries that the epoch has passed
    flips = _flips(epoch, labels, recipe, order)
    return order, tf.gather(labels, order), seeds, flips, tf.fill([count], size_index)


def _order(epoch: tf.Tensor, labels: tf.Tensor, recipe: Recipe, steps: int) -> tf.Tensor:
    """Draws an epoch's order: indices of examples, (steps * batch,), a permutation that wraps."""
    examples = labels.shape[0]
    seed = _seed(recipe, epoch, _ORDER)
    order = tf.random.experimental.stateless_shuffle(tf.range(examples), seed)
    return tf.gather(order, tf.range(steps * recipe.batch_size) % examples)


def _flips(epoch: tf.Tensor, labels: tf.Tensor, recipe: Recipe, order: tf.Tensor) -> tf.Tensor:
    """Whether each of the examples in `order` is mirrored."""
    seed = _seed(recipe, epoch, _FLIP)
    # Alternating flip (airbench): drawn once for each image, then inverted in every other epoch.
    if recipe.data.alternating_flip:
        first = tf.random.stateless_uniform([labels.shape[0]], _seed(recipe, 0, _FLIP)) < 0.5
        return tf.gather(first, order) ^ (epoch % 2 == 1)
    return tf.random.stateless_uniform(order.shape, seed) < (0.5 if recipe.data.flip else 0.0)


def _cropper(recipe: Recipe) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """Returns a function from a JPEG and its plan to the label and the augmented pixels."""

    def crop(
        jpeg: tf.Tensor, label: tf.Tensor, seed: tf.Tensor, flip: tf.Tensor, size_index: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        crop = partial(jpegs.random_crop, jpeg, seed, flip, tf.gather(recipe.sizes, size_index))
        if recipe.data.smallest_crops:  # TensorFlow takes the share as a constant
            crops = [partial(crop, share) for share in recipe.data.smallest_crops]
            image = tf.switch_case(size_index, crops)
        else:
            image = crop(recipe.data.smallest_crop)
        if len(set(recipe.sizes)) == 1:
            image = tf.ensure_shape(image, [recipe.sizes[0], recipe.sizes[0], 3])
        if recipe.data.color_shift:
            image = jpegs.shift_colors(image, seed, *recipe.data.color_shift)
        return label, image

    return crop


def _seed(recipe: Recipe, epoch: tf.Tensor | int, purpose: int) -> tf.Tensor:
    seed = tf.stack([tf.constant(recipe.seed, tf.int64), tf.cast(epoch, tf.int64)])
    return tf.random.experimental.stateless_fold_in(seed, purpose)


def share(
    strategy: tf.distribute.Strategy, context: tf.distribute.InputContext
) -> Callable[[tf.Tensor, int], tf.Tensor]:
    """Returns a function that selects this worker's part of every global batch."""
    # The function takes an epoch's values (steps * batch, ...) and its number of steps.
    own, replicas = own_replicas(strategy, context), strategy.num_replicas_in_sync

    # (steps * batch, ...) -> (steps * worker's batch, ...)
    def select(values: tf.Tensor, steps: int) -> tf.Tensor:
        # A global batch is the replicas' batches end to end: replica r has its r-th part.
        by_replica = tf.reshape(values, [steps, replicas, -1, *values.shape[1:]])
        return tf.reshape(by_replica[:, own], [-1, *values.shape[1:]])

    return select
