"""Initializers: He's and PyTorch's defaults, of Keras's own classes; `PartialIdentity`, of ours."""

from functools import partial

import numpy as np
import tensorflow as tf

he_normal = partial(tf.keras.initializers.VarianceScaling, 2.0, "fan_out", "untruncated_normal")
pytorch_uniform = partial(tf.keras.initializers.VarianceScaling, 1 / 3, "fan_in", "uniform")


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class PartialIdentity(tf.keras.initializers.Initializer):
    """A convolution's first filters hand on one input channel each; the others are drawn.

    As many filters as there are input channels, or all if there are fewer, are Dirac's: 1 at the
    kernel's centre, in their own channel (Jordan 2024, arXiv 2404.00498, section 3.2). The others
    are PyTorch's default: uniform up to 1 / sqrt(fan-in).

    Args:
      seed: of the draws; None: one of Keras's.
    """

    def __init__(self, seed=None):
        self.seed = seed
        self._others = pytorch_uniform(seed=seed)

    def __call__(self, shape, dtype=None, **kwargs):
        height, width, channels, filters = shape
        passed = min(channels, filters)
        identity, own = np.zeros(shape, "float32"), np.zeros(shape, bool)
        identity[height // 2, width // 2, range(passed), range(passed)] = 1
        own[..., :passed] = True
        others = self._others(shape, dtype=dtype, **kwargs)
        return tf.where(own, tf.cast(identity, others.dtype), others)

    def get_config(self):
        return {"seed": self.seed}
