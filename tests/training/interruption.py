"""A run that is interrupted in its second epoch and then continued."""

import pytest
import tensorflow as tf

from dawnbench_tf.train import train


class _Interrupt(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def continued(whole, folder):
    """Returns a run of the recipe of `whole`, interrupted and continued; it has the same rows."""
    with pytest.raises(KeyboardInterrupt):
        train(whole.recipe, output=folder / "part", callbacks=[_Interrupt()])
    again = train(whole.recipe, output=folder / "part")
    scores = [[(row["epoch"], row["top1Accuracy"]) for row in run.rows] for run in (whole, again)]
    assert scores[0] == scores[1]
    return again
