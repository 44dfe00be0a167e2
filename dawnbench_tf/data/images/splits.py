"""Splits: what the `load` of every image data set returns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.origin import Origin


class Split(NamedTuple):
    """One split of an image data set: its labels, and its images by index.

    A set that is larger than memory comes through the same door: its `fetch` reads and decodes, and
    it holds nothing.
    """

    labels: np.ndarray  # int64 (examples,)
    fetch: Callable[[tf.Tensor], tf.Tensor]  # indices (batch,) -> uint8 (batch, height, width, 3)
    held: tf.Tensor | None = None  # all images, if they are in memory

    def images(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Some images, or all, as a NumPy array: uint8 (examples, height, width, 3)."""
        with tf.device("CPU:0"):
            return self.fetch(tf.constant(np.arange(len(self.labels))[indices])).numpy()

    def first(self, count: int) -> "Split":
        """The split with its first examples only."""
        return self._replace(labels=self.labels[:count])


class Splits(NamedTuple):
    """An image data set."""

    train: Split
    test: Split
    origin: Origin = Origin("given")


def in_memory(images: np.ndarray, labels: np.ndarray) -> Split:
    """A split whose images are all in memory.

    Args:
      images: uint8 (examples, height, width, channels).
      labels: int64 (examples,).
    """
    with tf.device("CPU:0"):  # tf.data runs there
        held = tf.constant(images)
    return Split(labels, lambda indices: tf.gather(held, indices), held)
