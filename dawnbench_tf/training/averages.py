"""Exponential moving averages (EMA) of weights and BN statistics, which evaluation uses.

With lookahead (Zhang et al. 2019, arXiv 1907.08610) the weights are set to their average after each
update of it. The average's decay then grows with the third power of the fraction of training that
is done (Jordan 2024, arXiv 2404.00498).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.recipe import Recipe

Pairs = list[tuple[tf.Variable, tf.Variable]]


@dataclass(frozen=True)
class Averaging:
    """The averaged variables of a model, and the decay of their averages."""

    recipe: Recipe
    steps: int  # of the whole training
    weights: Sequence[tf.Variable]  # trained weights
    statistics: Sequence[tf.Variable]  # BN's; the forward pass updates them, not the optimizer

    def decay(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the decay d of average = d average + (1 - d) weight, at a step from 1 on."""
        step = tf.cast(step, tf.float32)
        # The average is updated every `every` steps; decay^every is the decay over all of them.
        every = self.recipe.average.every
        decay = tf.constant(self.recipe.average.decay**every, tf.float32)
        if self.recipe.average.ramp:  # TensorFlow 1's `num_updates`
            decay = tf.minimum(decay, ((1 + step) / (10 + step)) ** every)
        if self.recipe.average.lookahead:
            decay *= (step / self.steps) ** 3
        return decay


def make_averaging(recipe: Recipe, steps: int, model: tf.keras.Model | None) -> Averaging:
    """Makes the averaging of a model's weights and BN statistics.

    Args:
      recipe: its `average` has decay, interval, ramp and lookahead.
      steps: of the whole training.
      model: the trained model; None for a recipe without averages.
    """
    if not model:
        return Averaging(recipe, steps, [], [])
    # The average of a frozen weight would differ from it by rounding.
    frozen = {w.ref() for layer in model.layers if not layer.trainable for w in layer.weights}
    others = [v for v in model.non_trainable_variables if v.ref() not in frozen]
    statistics = [v for v in others if v.dtype.is_floating]
    return Averaging(recipe, steps, model.trainable_variables, statistics)


class Averages(tf.keras.optimizers.Optimizer):
    """A mix-in for Keras optimizers that keeps moving averages; it precedes Keras's class.

    Keras's own averages are updated at every step, and have no BN statistics and no lookahead.

    Args:
      averaging: variables and decay of the averages.
    """

    def __init__(self, *args: Any, averaging: Averaging, **kwargs: Any) -> None:
        recipe = averaging.recipe
        super().__init__(
            *args,
            use_ema=bool(recipe.average.decay),
            ema_momentum=recipe.average.decay or 0.99,
            **kwargs,
        )
        self._averaging = averaging

    def build(self, var_list: list[tf.Variable]) -> None:
        """Creates the averages, equal to the current weights; Keras calls it."""
        first = not getattr(self, "_built", False)
        super().build(var_list)
        if first and self.use_ema:
            self._statistics_averages = [
                self.add_variable_from_reference(v, "average", initial_value=v)
                for v in self._averaging.statistics
            ]

    def pairs(self) -> Pairs:
        """Returns pairs of each averaged variable and its average."""
        averaging = self._averaging
        return [
            *zip(averaging.weights, self._model_variables_moving_average, strict=True),
            *zip(averaging.statistics, self._statistics_averages, strict=True),
        ]

    def _update_model_variables_moving_average(self, var_list: list[tf.Variable]) -> None:
        """Updates the averages; Keras calls it after each step, once for all replicas."""
        step = self.iterations + 1  # `iterations` is incremented after this call
        decay = self._averaging.decay(step)
        recipe = self._averaging.recipe

        def update() -> None:
            for weight, average in self.pairs():
                kept = tf.cast(decay, average.dtype)
                average.assign(kept * average + (1 - kept) * weight)
                if recipe.average.lookahead:
                    weight.assign(average)

        if recipe.average.every == 1:
            update()
        else:
            tf.cond(step % recipe.average.every == 0, update, lambda: None)


def inner_optimizer(model: tf.keras.Model) -> Any:
    """Returns a compiled model's optimizer, without the LossScaleOptimizer around it."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


@contextmanager
def use_averages(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Replaces a compiled model's variables by their averages, if it has any, inside the body."""
    pairs = _pairs(model)
    _exchange(pairs, strategy)
    try:
        yield
    finally:
        _exchange(pairs, strategy)


def _pairs(model: tf.keras.Model) -> Pairs:
    """Returns pairs of a compiled model's variables and averages; [] without averages."""
    optimizer = inner_optimizer(model)
    return optimizer.pairs() if getattr(optimizer, "use_ema", False) else []


def _exchange(pairs: Pairs, strategy: tf.distribute.Strategy) -> None:
    """Swaps variables and their averages on all replicas; a second call restores them."""
    with strategy.scope():
        for variables in pairs:
            weight, average = (tf.identity(variable) for variable in variables)
            variables[0].assign(average)
            variables[1].assign(weight)


def values(model: tf.keras.Model) -> list[np.ndarray]:
    """Returns the floating-point weights that evaluation uses, in the order of `model.weights`.

    Averages replace their weights. Integer variables (counters, random seeds) are left out.
    """
    kept = {weight.ref(): average for weight, average in _pairs(model)}
    floats = [weight for weight in model.weights if weight.dtype.is_floating]
    return [kept.get(weight.ref(), weight).numpy() for weight in floats]
