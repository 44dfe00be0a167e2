"""Initializers: He's normal, PyTorch's uniform ones, `PartialIdentity`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

he_normal = partial(tf.keras.initializers.VarianceScaling, 2.0, "fan_out", "untruncated_normal")
pytorch_uniform = partial(tf.keras.initializers.VarianceScaling, 1 / 3, "fan_in", "uniform")
kaiming_uniform = partial(tf.keras.initializers.VarianceScaling, 1.0, "fan_in", "uniform")


@tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
class PartialIdentity(tf.keras.initializers.Initializer):
    """Initializer of convolutions that makes the first filters the identity (Dirac).

    Filter i, for each i below the numbers of filters and of input channels, copies input channel i:
    it is 1 at the kernel's center in channel i, else 0 (Jordan 2024, arXiv 2404.00498, section
    3.2). The other filters have PyTorch's default, uniform in +-1 / sqrt(fan-in).

    Args:
      seed: seed of the random filters; None: Keras draws one.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._uniform = pytorch_uniform(seed=seed)

    def __call__(
        self, shape: Sequence[int], dtype: tf.DType | str | None = None, **kwargs: Any
    ) -> tf.Tensor:
        height, width, channels, filters = shape
        copies = min(channels, filters)
        identity, is_copy = np.zeros(shape, "float32"), np.zeros(shape, bool)
        identity[height // 2, width // 2, range(copies), range(copies)] = 1
        is_copy[..., :copies] = True
        uniform = self._uniform(shape, dtype=dtype, **kwargs)
        return tf.where(is_copy, tf.cast(identity, uniform.dtype), uniform)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}
