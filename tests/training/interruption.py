"""A run that is interrupted in its second epoch and then continued, beside one that is not."""

import pytest
import tensorflow as tf

from dawnbench_tf.train import train


class _Interrupt(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def both(recipe, folder):
    """Returns the runs, whose rows are equal: one without and one with an interruption."""
    whole = train(recipe, output=folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, output=folder / "part", callbacks=[_Interrupt()])
    again = train(recipe, output=folder / "part")
    scores = [[(row["epoch"], row["top1Accuracy"]) for row in run.rows] for run in (whole, again)]
    assert scores[0] == scores[1]
    return whole, again
