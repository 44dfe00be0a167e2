"""How long a step's communication between replicas takes."""

import time

import numpy as np
import tensorflow as tf

CALLS = 5


def seconds_per_step(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> float | None:
    """Median seconds of what replicas tell one another in a step, with nothing else to do.

    That is the sum of all gradients, and of the two statistics of each synchronized BN, forward and
    backward. Within a step part of it may lie under computation: the share of a step that this
    comes to is an upper bound. None where there is one replica.
    """
    if strategy.num_replicas_in_sync == 1:
        return None
    statistics = [
        layer.moving_mean
        for layer in model._flatten_layers()
        if getattr(layer, "synchronized", False) and hasattr(layer, "moving_mean")
    ]

    def exchange():
        replica = tf.distribute.get_replica_context()
        total = tf.distribute.ReduceOp.SUM
        pairs = [[_on_its_device(mean)] * 2 for mean in (*statistics, *statistics)]
        sums = [replica.all_reduce(total, pair)[0][0] for pair in pairs]
        gradients = [_on_its_device(weight) for weight in model.trainable_variables]
        sums += [tf.reshape(x, [-1])[0] for x in replica.all_reduce(total, gradients)]
        return tf.add_n([tf.cast(x, tf.float32) for x in sums])

    function = tf.function(lambda: strategy.run(exchange))

    def call():
        begin = time.monotonic()
        for value in strategy.experimental_local_results(function()):
            value.numpy()
        return time.monotonic() - begin

    call()  # which compiles it
    return float(np.median([call() for _ in range(CALLS)]))


def _on_its_device(variable):
    """A variable's value on the replica's device: several workers send from nowhere else."""
    with tf.device(variable.device):
        return tf.identity(variable)
