"""The time of a training step's communication between replicas."""

import time

import numpy as np
import tensorflow as tf

CALLS = 5  # timed all-reduces, of which the median counts


def seconds_per_step(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> float | None:
    """Measures a step's communication alone, without computation: median seconds.

    It all-reduces all gradients, and two statistics of each synchronized BN layer, forward and
    backward. An upper bound of the communication's part in a step, where it may overlap with
    computation. None with one replica.
    """
    if strategy.num_replicas_in_sync == 1:
        return None
    statistics = [
        layer.moving_mean
        for layer in model._flatten_layers()
        if getattr(layer, "synchronized", False) and hasattr(layer, "moving_mean")
    ]

    def exchange() -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        total = tf.distribute.ReduceOp.SUM
        pairs = [[_on_its_device(mean)] * 2 for mean in (*statistics, *statistics)]
        # One all-reduce for each BN layer and direction, one for all gradients, as in a step.
        sums = [replica.all_reduce(total, pair)[0][0] for pair in pairs]
        gradients = [_on_its_device(weight) for weight in model.trainable_variables]
        sums += [tf.reshape(x, [-1])[0] for x in replica.all_reduce(total, gradients)]
        return tf.add_n([tf.cast(x, tf.float32) for x in sums])

    function = tf.function(lambda: strategy.run(exchange))

    def call() -> float:
        begin = time.monotonic()
        for value in strategy.experimental_local_results(function()):
            value.numpy()
        return time.monotonic() - begin

    call()  # traces and compiles
    return float(np.median([call() for _ in range(CALLS)]))


def _on_its_device(variable: tf.Variable) -> tf.Tensor:
    """Returns a variable's value on its replica's device, as multi-worker all-reduce requires."""
    with tf.device(variable.device):
        return tf.identity(variable)
