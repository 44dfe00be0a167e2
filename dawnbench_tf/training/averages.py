"""Moving averages of a model's weights and of BN's statistics, which are evaluated in their place.

With lookahead the weights themselves go back to their average each time (Zhang et al. 2019,
arXiv 1907.08610), of which more is kept the further training is (Jordan 2024, arXiv 2404.00498).
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
    """How averages follow the weights."""

    recipe: Recipe
    steps: int  # of the whole training
    weights: Sequence[tf.Variable]  # that are trained
    statistics: Sequence[tf.Variable]  # of BN: they move in no step of an optimizer

    def share(self, step: tf.Tensor) -> tf.Tensor:
        """How much of the average stays after that step, the first being 1."""
        step = tf.cast(step, tf.float32)
        every = self.recipe.average.every
        share = tf.constant(self.recipe.average.decay**every, tf.float32)
        if self.recipe.average.ramp:  # TensorFlow 1's `num_updates`
            share = tf.minimum(share, ((1 + step) / (10 + step)) ** every)
        if self.recipe.average.lookahead:
            share *= (step / self.steps) ** 3
        return share


def make_averaging(recipe: Recipe, steps: int, model: tf.keras.Model | None) -> Averaging:
    """How the recipe's averages follow a model.

    Args:
      recipe: whose `average`, `average_every` and `lookahead` say how.
      steps: of the whole training.
      model: which is trained; a recipe without averages needs none.
    """
    if not model:
        return Averaging(recipe, steps, [], [])
    statistics = [v for v in model.non_trainable_variables if v.dtype.is_floating]
    return Averaging(recipe, steps, model.trainable_variables, statistics)


class Averages(tf.keras.optimizers.Optimizer):
    """Mixed into an optimizer, in front of Keras's: averages as an `Averaging` says.

    Keras's own follow at every step, know no statistics and no lookahead.
    """

    def __init__(self, *args, averaging: Averaging, **kwargs):
        recipe = averaging.recipe
        super().__init__(
            *args,
            use_ema=bool(recipe.average.decay),
            ema_momentum=recipe.average.decay or 0.99,
            **kwargs,
        )
        self._averaging = averaging

    def build(self, var_list):
        """Makes the averages, which start from the weights as they are; Keras calls it."""
        first = not getattr(self, "_built", False)
        super().build(var_list)
        if first and self.use_ema:
            self._averages_of_statistics = [
                self.add_variable_from_reference(v, "average", initial_value=v)
                for v in self._averaging.statistics
            ]

    def pairs(self) -> Pairs:
        """Each weight and statistic, with its average."""
        how = self._averaging
        return [
            *zip(how.weights, self._model_variables_moving_average, strict=True),
            *zip(how.statistics, self._averages_of_statistics, strict=True),
        ]

    def _update_model_variables_moving_average(self, var_list):
        """Keras calls it after each step, once for all replicas."""
        step = self.iterations + 1
        share = self._averaging.share(step)
        recipe = self._averaging.recipe

        def follow():
            for weight, average in self.pairs():
                kept = tf.cast(share, average.dtype)
                average.assign(kept * average + (1 - kept) * weight)
                if recipe.average.lookahead:
                    weight.assign(average)

        if recipe.average.every == 1:
            follow()
        else:
            tf.cond(step % recipe.average.every == 0, follow, lambda: None)


def inner_optimizer(model: tf.keras.Model) -> Any:
    """A compiled model's optimizer itself, without the loss scaling around it."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


@contextmanager
def averaged(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Inside, a compiled model has its averages, if its optimizer keeps them."""
    pairs = _pairs(model)
    _exchange(pairs, strategy)
    try:
        yield
    finally:
        _exchange(pairs, strategy)


def _pairs(model):
    """Each weight and statistic of a compiled model, with its average, if its optimizer has any."""
    optimizer = inner_optimizer(model)
    return optimizer.pairs() if getattr(optimizer, "use_ema", False) else []


def _exchange(pairs, strategy):
    """Exchanges weights and their averages, on all replicas alike."""
    with strategy.scope():
        for variables in pairs:
            weight, average = (tf.identity(variable) for variable in variables)
            variables[0].assign(average)
            variables[1].assign(weight)


def values(model: tf.keras.Model) -> list[np.ndarray]:
    """Returns the floating-point weights that evaluation uses, in the order of `model.weights`.

    A moving average replaces its weight where the optimizer keeps one. Integer variables, which
    are counters and random seeds, are left out.
    """
    kept = {weight.ref(): average for weight, average in _pairs(model)}
    floats = [weight for weight in model.weights if weight.dtype.is_floating]
    return [kept.get(weight.ref(), weight).numpy() for weight in floats]
