"""SGD with momentum in two forms, learning rates of single weights, and LARS."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from dawnbench_tf.training.averages import Averages
from dawnbench_tf.training.schedules import OfStep

Rates = Mapping[int, OfStep]  # by a weight's index


class SGD(Averages, tf.keras.optimizers.SGD):
    """SGD with momentum m, optionally with LARS; one fused kernel for each weight.

    Args:
      rate_in_velocity: if true, v = m v - lr g, w += v (Keras); if false, v = m v + g, w -= lr v
        (TensorFlow 1 and PyTorch). The two differ when the learning rate changes.
      rates: learning-rate multipliers, functions of the step, by a weight's index among the trained
        ones.
      momentum_at: momentum, a function of the step.
      trust: LARS trust coefficient (You, Gitman & Ginsburg 2017, arXiv 1708.03888): a kernel's
        rate is multiplied by trust x |w| / (|g| + d |w|). 0: no LARS.
      decays: LARS' weight decay d, which is added to the gradient g as d w, by a weight's index.
    """

    def __init__(
        self,
        *args: Any,
        rate_in_velocity: bool,
        rates: Rates,
        momentum_at: OfStep,
        trust: float = 0.0,
        decays: Mapping[int, float] | None = None,
        **kwargs: Any,
    ) -> None:
        # Not by XLA, which tf-keras uses on GPUs: it would compile anew for each shape of weights.
        super().__init__(*args, jit_compile=False, **kwargs)
        self._in_velocity, self._rates, self._trust = rate_in_velocity, rates, trust
        self._momentum_at, self._decays = momentum_at, dict(decays or {})

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one weight on one replica; Keras calls it."""
        kernels = tf.raw_ops.ResourceApplyMomentum, tf.raw_ops.ResourceApplyKerasMomentum
        index = self._index_dict[self._var_key(variable)]
        rate = tf.cast(self.learning_rate, variable.dtype)
        rate = rate * self._scale(gradient, variable, index)
        decay = self._decays.get(index)
        gradient = gradient + decay * variable if decay else gradient
        kernels[self._in_velocity](
            var=variable.handle,
            accum=self.momentums[index].handle,
            lr=rate,
            grad=tf.convert_to_tensor(gradient),
            momentum=tf.cast(self._momentum_at(self.iterations), variable.dtype),
            use_nesterov=self.nesterov,
        )

    def _scale(self, gradient: tf.Tensor, variable: tf.Variable, index: int) -> tf.Tensor:
        """Returns the multiplier of a weight's learning rate."""
        multiplier = self._rates.get(index)
        scale = tf.cast(multiplier(self.iterations) if multiplier else 1.0, variable.dtype)
        if not self._trust or variable.shape.rank < 2:
            return scale
        norm, gradient_norm = tf.norm(variable), tf.norm(gradient)
        ratio = self._trust * norm / (gradient_norm + self._decays.get(index, 0.0) * norm)
        return scale * tf.where((norm > 0) & (gradient_norm > 0), ratio, tf.ones_like(ratio))
