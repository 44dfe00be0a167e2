"""Splits: what the `load` of every image data set returns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.tasks import GIVEN


class Split(NamedTuple):
    """One split of an image data set: its labels, and its images by index.

    Images are either all in memory, of one size, or come as JPEGs of any size, a set of which may
    be larger than memory.
    """

    labels: np.ndarray  # int64 (examples,)
    held: tf.Tensor | None = None  # uint8 (examples, height, width, 3); fewer stand for all
    jpegs: Callable[[tf.Tensor], tf.Tensor] | None = None  # indices (b,) -> strings (b,)
    # From a seed (2,), a worker and the number of workers to labels and JPEGs in an epoch's order,
    # where these can't be had by index.
    in_sequence: Callable[..., tf.data.Dataset] | None = None

    def images(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Some of the images that are in memory, or all: uint8 (examples, height, width, 3)."""
        with tf.device("CPU:0"):
            return self.fetch(np.arange(len(self.labels))[indices]).numpy()

    def fetch(self, indices: tf.Tensor) -> tf.Tensor:
        """Images that are in memory by their indices (b,): uint8 (b, height, width, 3)."""
        held = tf.convert_to_tensor(self.held)
        return tf.gather(held, indices % held.shape[0])

    def first(self, count: int) -> "Split":
        """The split with its first examples only."""
        return self._replace(labels=self.labels[:count])


class Splits(NamedTuple):
    """An image data set."""

    train: Split
    test: Split
    origin: Origin = Origin(GIVEN)
    held_out: Split | None = None  # training examples that are not trained on

    def hold_out(self, count: int) -> "Splits":
        """The data set with its last `count` training images, all in memory, held out."""
        left = len(self.train.labels) - count
        images, labels = self.train.images(slice(left, None)), self.train.labels[left:]
        return self._replace(train=self.train.first(left), held_out=in_memory(images, labels))


def in_memory(images: np.ndarray, labels: np.ndarray) -> Split:
    """A split whose images are all in memory.

    Args:
      images: uint8 (examples, height, width, channels).
      labels: int64 (examples,).
    """
    with tf.device("CPU:0"):  # tf.data runs there
        return Split(labels, held=tf.constant(images))
