"""The placement of input pipelines: strategy, replicas, tf.data options, input wait."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf


class Waits:
    """Input wait: the total seconds between the request for a batch and its arrival."""

    def __init__(self) -> None:
        with tf.device("CPU:0"):
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    @property
    def seconds(self) -> float:
        """Seconds waited so far."""
        return float(self._seconds.numpy())

    def next(self, batches: Iterator[Any], steps: int = 1) -> Any:
        """Returns the next batch; the time until it is there is added to `seconds`."""
        with tf.device("CPU:0"):
            begin = tf.timestamp()
        with tf.control_dependencies([begin]):
            batch = next(batches)
        with tf.control_dependencies(tf.nest.flatten(batch)), tf.device("CPU:0"):
            # If the host requests `steps` batches at once, the wait for the first counts for each:
            # exact if the pipeline is slower than the device, else an upper bound.
            self._seconds.assign_add(steps * (tf.timestamp() - begin))
        return batch


class Placement(NamedTuple):
    """The destination of batches: a distribution strategy, and the image layout on its devices.

    Attributes:
      strategy: the strategy that shares out the batches.
      data_format: layout of images on the devices, "NHWC" or "NCHW".
      waits: counter of the seconds that training waits for batches; None: not counted.
    """

    strategy: tf.distribute.Strategy
    data_format: str = "NHWC"
    waits: Waits | None = None

    def distribute(
        self, make_pipeline: Callable[[tf.distribute.InputContext], tf.data.Dataset]
    ) -> tf.data.Dataset:
        """Returns a distributed data set of the batches of all workers' pipelines.

        Args:
          make_pipeline: makes one worker's pipeline, of batches for one replica each.
        """
        # AutoGraph would search the pipelines for control flow for 0.3 s; they have none.
        make_pipeline = tf.autograph.experimental.do_not_convert(make_pipeline)
        share = self.strategy.distribute_datasets_from_function
        mirrored = isinstance(self.strategy, tf.distribute.MirroredStrategy)
        if not mirrored or tf.config.list_logical_devices("GPU"):
            return share(make_pipeline)
        # On several CPU devices TensorFlow's own prefetching autotunes, whatever the pipeline's
        # options say: two devices took 22 s to the digits' threshold, not 15, and `fit` took up to
        # a minute to end. So each replica reads a pipeline of its own, without prefetching.
        mode = tf.distribute.InputReplicationMode.PER_REPLICA
        options = tf.distribute.InputOptions(
            experimental_fetch_to_device=False, experimental_replication_mode=mode
        )
        return share(make_pipeline, options)


def own_replicas(strategy: tf.distribute.Strategy, context: tf.distribute.InputContext) -> slice:
    """Returns the slice of the strategy's replicas that this worker's pipeline feeds."""
    count = strategy.num_replicas_in_sync // context.num_input_pipelines
    first = context.input_pipeline_id * count
    return slice(first, first + count)


def without_autotune() -> tf.data.Options:
    """Returns the tf.data options of every pipeline: autotuning off."""
    options = tf.data.Options()
    # With it `fit` waited for the tuner's next period: 5.1 s for an epoch of 2.9 s.
    options.autotune.enabled = False
    return options
