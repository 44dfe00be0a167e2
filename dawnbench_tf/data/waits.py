"""Input wait: the seconds that training waits for its batches."""

from typing import Any

import tensorflow as tf


class Waits:
    """The total seconds between the request for a batch and its arrival.

    An upper bound where devices prefetch batches, as several replicas do: part of the wait then
    overlaps earlier steps.
    """

    def __init__(self) -> None:
        with tf.device("CPU:0"):
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    @property
    def seconds(self) -> float:
        """Seconds waited so far."""
        return float(self._seconds.numpy())

    def count(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches unchanged; the time to get each is added to `seconds`."""
        # zip asks for the moment first, then for the batch: `add` runs when the batch is there.
        moments = tf.data.Dataset.counter().map(lambda _: tf.timestamp())

        def add(moment: tf.Tensor, batch: Any) -> Any:
            with tf.control_dependencies([self._seconds.assign_add(tf.timestamp() - moment)]):
                return tf.nest.map_structure(tf.identity, batch)

        return tf.data.Dataset.zip(moments, batches).map(add)
