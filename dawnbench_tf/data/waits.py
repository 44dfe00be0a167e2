"""How long training waits for its input."""

import tensorflow as tf


class Waits:
    """Adds up the seconds in which a batch was asked for and not there yet.

    Where a device takes batches ahead of its steps (several replicas do), part of the wait lies
    under earlier steps: it is then an upper bound.
    """

    def __init__(self):
        with tf.device("CPU:0"):
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    @property
    def seconds(self) -> float:
        """So far."""
        return float(self._seconds.numpy())

    def count(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """The batches as they are; from here on the time it takes to get one counts."""
        moments = tf.data.Dataset.counter().map(lambda _: tf.timestamp())  # when one is asked for

        def add(moment, batch):
            with tf.control_dependencies([self._seconds.assign_add(tf.timestamp() - moment)]):
                return tf.nest.map_structure(tf.identity, batch)

        return tf.data.Dataset.zip(moments, batches).map(add)
