"""`Splits`, the return type of every image data set's `load`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import GIVEN


class Split(NamedTuple):
    """One split of an image data set: labels, and images by index.

    One of `held` and `jpegs` is set: images of one size in memory, or JPEGs of any size that are
    read by index.
    """

    labels: np.ndarray  # int64 (examples,)
    # uint8 (images, height, width, 3). May hold fewer images than examples (synthetic data):
    # example i has image i % images.
    held: tf.Tensor | None = None
    jpegs: Callable[[tf.Tensor], tf.Tensor] | None = None  # indices (b,) -> strings (b,)
    names: Sequence[str] = ()  # of the examples, if they are files: CLASS/FILE

    def images(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Returns images in memory as an array, uint8 (examples, height, width, 3)."""
        with tf.device("CPU:0"):
            return self.fetch(np.arange(len(self.labels))[indices]).numpy()

    def fetch(self, indices: tf.Tensor) -> tf.Tensor:
        """Returns images in memory by index (b,), uint8 (b, height, width, 3)."""
        held = tf.convert_to_tensor(self.held)
        return tf.gather(held, indices % held.shape[0])

    def spaced(self, count: int) -> tuple[np.ndarray, "Split"]:
        """Returns the indices of at most `count` examples, and the split with only them."""
        # They are evenly spaced, as files may be in the order of their classes.
        total = len(self.labels)
        chosen = np.arange(min(count, total)) * total // min(count, total)
        return chosen, self.take(chosen)

    def take(self, indices: np.ndarray) -> "Split":
        """Returns the split with only the examples of the given indices, in their order."""
        labels, names = self.labels[indices], [self.names[i] for i in indices if self.names]
        if self.held is not None:
            return in_memory(self.images(indices), labels)
        if self.jpegs is None:
            raise ValueError("the split has neither images nor JPEGs")
        read, wanted = self.jpegs, np.asarray(indices)
        return Split(labels, jpegs=lambda own: read(tf.gather(wanted, own)), names=names)


class Splits(NamedTuple):
    """The splits of an image data set."""

    train: Split
    test: Split
    origin: Origin = Origin(GIVEN)
    held_out: Split | None = None  # training examples excluded from training
    classes: Sequence[str] = ()  # names of the classes of a task of the user's own

    def count_classes(self, name: str) -> int:
        """Returns the number of classes: of their names, or up to the largest label."""
        numbers = np.unique(np.concatenate([self.train.labels, self.test.labels]))
        classes = len(self.classes) or 1 + int(numbers.max())
        if not self.classes and classes > 2 * len(numbers):
            text = f"{len(numbers)} classes have examples, but the largest label is {classes - 1:,}"
            raise Refusal(f"{name}: labels should be 0 to {len(numbers) - 1:,}: {text}")
        return classes

    def hold_out(self, count: int) -> "Splits":
        """Returns the data set with its last `count` training images (in memory) held out."""
        left = len(self.train.labels) - count
        if len(lost := np.setdiff1d(self.train.labels, self.train.labels[:left])):
            text = f"leaves no training example of class {lost[0]}; lower it, or mix the classes"
            refuse("held_out", count, text)
        images, labels = self.train.images(slice(left, None)), self.train.labels[left:]
        train = self.train._replace(labels=self.train.labels[:left], names=self.train.names[:left])
        return self._replace(train=train, held_out=in_memory(images, labels))


def in_memory(images: np.ndarray, labels: np.ndarray) -> Split:
    """Returns a split of images uint8 (examples, h, w, c) and labels int64 (examples,)."""
    with tf.device("CPU:0"):  # where tf.data runs
        return Split(labels, held=tf.constant(images))
