"""A run that is interrupted in its second epoch and then continued."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import run_folder
from dawnbench_tf.train import train


class _Interrupt(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def check_continued(whole, folder):
    """Interrupts and continues a run of the recipe of `whole`: it has the same rows and weights."""
    with pytest.raises(KeyboardInterrupt):
        train(whole.recipe, output=folder / "part", callbacks=[_Interrupt()])
    again = train(whole.recipe, output=folder / "part")
    scores = [[(row["epoch"], row["top1Accuracy"]) for row in run.rows] for run in (whole, again)]
    assert scores[0] == scores[1]
    weights = (run_folder.read_weights(run.folder) for run in (whole, again))
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)
