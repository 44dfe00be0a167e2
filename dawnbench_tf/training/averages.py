"""Exponential moving averages (EMA) of weights and BN statistics, which evaluation uses.

With lookahead (Zhang et al. 2019, arXiv 1907.08610) the weights are set to their average after each
update of it. The average's decay then grows with the third power of the fraction of training that
is done (Jordan 2024, arXiv 2404.00498).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.recipe import Recipe

Pairs = list[tuple[tf.Variable, tf.Variable]]


class Averages(tf.keras.optimizers.Optimizer):
    """A mix-in for Keras optimizers that keeps moving averages; it precedes Keras's class.

    Keras's own averages are updated at every step, and have no BN statistics and no lookahead.
    """

    def __init__(
        self, *args: Any, recipe: Recipe, steps: int, model: tf.keras.Model | None, **kwargs: Any
    ) -> None:
        average, weights, statistics = recipe.average, list[tf.Variable](), list[tf.Variable]()
        super().__init__(
            *args, use_ema=bool(average.decay), ema_momentum=average.decay or 0.99, **kwargs
        )
        if model:
            # The average of a frozen weight would differ from it by rounding.
            frozen = {w.ref() for la in model.layers if not la.trainable for w in la.weights}
            others = [v for v in model.non_trainable_variables if v.ref() not in frozen]
            weights = model.trainable_variables
            statistics = [v for v in others if v.dtype.is_floating]
        self._average, self._last_step = average, steps
        # A function: Keras would track lists of variables, which checkpoints have already.
        self._averaged = lambda: (weights, statistics)

    def build(self, var_list: list[tf.Variable]) -> None:
        first = not getattr(self, "_built", False)
        super().build(var_list)
        if first and self.use_ema:
            self._statistics_averages = [
                self.add_variable_from_reference(v, "average", initial_value=v)
                for v in self._averaged()[1]
            ]

    def finalize_variable_values(self, var_list: list[tf.Variable]) -> None:
        """Leaves the weights as they are; Keras calls it at the end of each `fit`."""
        # Keras's own replaces them by their averages, from which the next phase would go on.

    def pairs(self) -> Pairs:
        """Returns pairs of each averaged variable and its average."""
        weights, statistics = self._averaged()
        return [
            *zip(weights, self._model_variables_moving_average, strict=True),
            *zip(statistics, self._statistics_averages, strict=True),
        ]

    def _update_model_variables_moving_average(self, var_list: list[tf.Variable]) -> None:
        count, settings = self.iterations + 1, self._average  # `iterations` is incremented after it
        step = tf.cast(count, tf.float32)
        # The average is updated every `every` steps; decay^every is the decay over all of them.
        decay = tf.constant(settings.decay**settings.every, tf.float32)
        if settings.ramp:  # TensorFlow 1's `num_updates`
            decay = tf.minimum(decay, ((1 + step) / (10 + step)) ** settings.every)
        if settings.lookahead:
            decay *= (step / self._last_step) ** 3

        def update() -> None:
            for weight, average in self.pairs():
                kept = tf.cast(decay, average.dtype)
                average.assign(kept * average + (1 - kept) * weight)
                if settings.lookahead:
                    weight.assign(average)

        if settings.every == 1:
            update()
        else:
            tf.cond(count % settings.every == 0, update, lambda: None)


def inner_optimizer(model: tf.keras.Model) -> Any:
    """Returns a compiled model's optimizer, without the LossScaleOptimizer around it."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


@contextmanager
def use_averages(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Replaces a compiled model's variables by their averages, if it has any, inside the body."""

    def exchange() -> None:
        with strategy.scope():
            for variables in _pairs(model):
                weight, average = (tf.identity(variable) for variable in variables)
                variables[0].assign(average)
                variables[1].assign(weight)

    exchange()
    try:
        yield
    finally:
        exchange()


def _pairs(model: tf.keras.Model) -> Pairs:
    """Returns pairs of a compiled model's variables and averages; [] without averages."""
    optimizer = inner_optimizer(model)
    return optimizer.pairs() if getattr(optimizer, "use_ema", False) else []


def values(model: tf.keras.Model) -> list[np.ndarray]:
    """Returns the floating-point weights that evaluation uses, in the order of `model.weights`."""
    # Averages replace their weights. Integer variables (counters, random seeds) are left out.
    kept = {weight.ref(): average for weight, average in _pairs(model)}
    floats = [weight for weight in model.weights if weight.dtype.is_floating]
    return [kept.get(weight.ref(), weight).numpy() for weight in floats]
