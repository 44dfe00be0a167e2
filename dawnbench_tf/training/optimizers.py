"""Optimizers of recipes: Keras's, with rates of single weights, schedules and averages."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tensorflow as tf

from dawnbench_tf.models import parts
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.schedule import steps_before
from dawnbench_tf.refusals import refuse
from dawnbench_tf.training import averages, losses, schedules
from dawnbench_tf.training.averages import Averages

Rates = Mapping[int, Callable[[tf.Tensor], tf.Tensor]]


def _part_rates(recipe: Recipe, model: tf.keras.Model | None) -> dict[int, float]:
    """Returns the multipliers of weights before the head, by index among the trained ones."""
    optimizer = recipe.optimizer
    if model is None or not optimizer.by_part:
        return {}
    try:
        layers = parts.split(model)
    except ValueError as error:
        name = "backbone_rate" if optimizer.backbone_rate != 1 else "layer_rate_decay"
        refuse(name, getattr(optimizer, name), str(error))
    multipliers = {
        weight.ref(): optimizer.backbone_rate * optimizer.layer_rate_decay**distance
        for distance, part in enumerate(layers[-2::-1], 1)
        for layer in part
        for weight in layer.trainable_weights
    }
    weights = enumerate(model.trainable_variables)
    return {i: multipliers[w.ref()] for i, w in weights if w.ref() in multipliers}


def _rates(recipe: Recipe, epoch_steps: Sequence[int], model: tf.keras.Model | None) -> Rates:
    """Returns the learning-rate multipliers of single weights, by index among the trained ones."""
    rates: dict[int, Callable[[tf.Tensor], tf.Tensor]] = {
        index: partial(lambda rate, step: rate, rate)
        for index, rate in _part_rates(recipe, model).items()
    }
    trained = math.ceil(steps_before(recipe.optimizer.whitening_bias_epochs, epoch_steps))
    for index, weight in enumerate(model.trainable_variables if model else []):
        if recipe.optimizer.shift_rate != 1 and losses.is_shift(weight):
            by_part = rates.get(index, lambda step: 1.0)
            rates[index] = partial(
                lambda part, step: recipe.optimizer.shift_rate * part(step), by_part
            )
        elif trained and weight.name.startswith("whitening/bias"):
            rates[index] = lambda step: step < trained  # 1 in the first epochs, then 0
    return rates


class SGD(Averages, tf.keras.optimizers.SGD):
    """SGD with momentum m, optionally with LARS; one fused kernel for each weight.

    Args:
      rate_in_velocity: if true, v = m v - lr g, w += v (Keras); if false, v = m v + g, w -= lr v
        (TensorFlow 1 and PyTorch). The two differ when the learning rate changes.
      rates: learning-rate multipliers, functions of the step, by a weight's index among the trained
        ones.
      momentum_at: momentum, a function of the step.
      trust: LARS trust coefficient (You, Gitman & Ginsburg 2017, arXiv 1708.03888, in the form of
        TensorFlow's reference models): a kernel's rate is multiplied by trust x |w| / |g|, where g
        includes the weight decay. 0: no LARS.
    """

    def __init__(
        self,
        *args: Any,
        rate_in_velocity: bool,
        rates: Rates,
        momentum_at: Callable[[tf.Tensor], tf.Tensor],
        trust: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._in_velocity, self._rates, self._trust = rate_in_velocity, rates, trust
        self._momentum_at = momentum_at

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one weight on one replica; Keras calls it."""
        kernels = tf.raw_ops.ResourceApplyMomentum, tf.raw_ops.ResourceApplyKerasMomentum
        index = self._index_dict[self._var_key(variable)]
        rate = tf.cast(self.learning_rate, variable.dtype)
        rate = rate * self._scale(gradient, variable, index)
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
        ratio = self._trust * norm / gradient_norm
        return scale * tf.where((norm > 0) & (gradient_norm > 0), ratio, tf.ones_like(ratio))


class PartRates(tf.keras.optimizers.Optimizer):
    """A mix-in for Keras optimizers: multiplies the learning rates of single weights.

    A weight's decoupled decay (AdamW) is multiplied too, as in PyTorch's parameter groups.

    Args:
      rates: learning-rate multipliers by a weight's index among the trained ones.
    """

    _multiplier = 1.0  # of the weight that is being updated

    def __init__(self, *args: Any, rates: Mapping[int, float], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._part_rates = dict(rates)

    @property
    def learning_rate(self) -> Any:
        """The current learning rate, of the weight that is being updated."""
        rate = super().learning_rate
        return rate if self._multiplier == 1 else rate * self._multiplier

    @contextmanager
    def _rate_of(self, variable: tf.Variable) -> Iterator[None]:
        index = self._index_dict[self._var_key(variable)]
        self._multiplier = self._part_rates.get(index, 1.0)
        try:
            yield
        finally:
            self._multiplier = 1.0

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one weight on one replica; Keras calls it."""
        with self._rate_of(variable):
            super().update_step(gradient, variable)

    def _apply_weight_decay(self, variables: Sequence[tf.Variable]) -> None:
        """Decays weights (AdamW); Keras calls it."""
        if not self._part_rates:
            super()._apply_weight_decay(variables)
            return
        for variable in variables:
            with self._rate_of(variable):
                super()._apply_weight_decay([variable])


class RMSprop(Averages, PartRates, tf.keras.optimizers.RMSprop):
    """Keras's RMSprop with `Averages`; the mean of squared gradients starts at 1 (TensorFlow 1)."""

    def build(self, var_list: list[tf.Variable]) -> None:
        """Creates the variables and sets the means to 1; Keras calls it."""
        first = not getattr(self, "_built", False)
        super().build(var_list)
        for mean in self._velocities if first else ():
            mean.assign(tf.ones_like(mean))


class Cycle(tf.keras.optimizers.Optimizer):
    """A mix-in for Keras's Adams: beta_1 follows the recipe's schedule.

    Args:
      momentum_at: beta_1, a function of the step; None: 0.9.
    """

    beta_1: Any

    def __init__(
        self,
        *args: Any,
        momentum_at: Callable[[tf.Tensor], tf.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._momentum_at = momentum_at

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one weight on one replica; Keras calls it."""
        constant = self.beta_1
        if self._momentum_at:
            self.beta_1 = tf.cast(self._momentum_at(self.iterations), variable.dtype)
        try:
            super().update_step(gradient, variable)
        finally:
            self.beta_1 = constant


class Adam(Averages, PartRates, Cycle, tf.keras.optimizers.Adam):
    """Keras's Adam with `Averages`."""


class AdamW(Averages, PartRates, Cycle, tf.keras.optimizers.AdamW):
    """Keras's AdamW with `Averages`."""


class Adamax(Averages, PartRates, tf.keras.optimizers.Adamax):
    """Keras's Adamax with `Averages`."""


class Adadelta(Averages, PartRates, tf.keras.optimizers.Adadelta):
    """Keras's Adadelta with `Averages`."""


def _other(
    recipe: Recipe, epoch_steps: Sequence[int]
) -> tuple[Callable[..., PartRates], dict[str, Any]]:
    """Returns class and own arguments of an optimizer that is not SGD or LARS."""
    cycle = schedules.momentum(recipe, epoch_steps) if recipe.schedule.momenta else None
    adam = {"beta_2": recipe.optimizer.beta_2, "momentum_at": cycle}
    classes: dict[str, tuple[Callable[..., PartRates], dict[str, Any]]] = {
        "rmsprop": (RMSprop, {"rho": 0.9, "momentum": recipe.optimizer.momentum}),
        "adadelta": (Adadelta, {"rho": 0.95}),  # Zeiler's (2012), and TensorFlow 1's
        "adam": (Adam, adam),
        "adamw": (AdamW, {"weight_decay": recipe.optimizer.weight_decay, **adam}),
        "adamax": (Adamax, {}),
    }
    return classes[recipe.optimizer.name]


def build(
    recipe: Recipe, epoch_steps: Sequence[int], model: tf.keras.Model | None = None
) -> tf.keras.optimizers.Optimizer:
    """Builds the recipe's optimizer; with loss scaling, if the precision is mixed_float16.

    Args:
      recipe: optimizer, schedule, averages and precision.
      epoch_steps: number of steps in each epoch; later epochs have the last number.
      model: the model to train; needed for learning-rate multipliers of single weights, and for
        averages.
    """
    factor = schedules.factor(recipe, epoch_steps)
    schedule = schedules.Schedule(recipe.scaled_learning_rate, factor)
    common: dict[str, Any] = {
        "averaging": averages.make_averaging(recipe, recipe.total_steps(epoch_steps), model),
        "global_clipnorm": recipe.optimizer.clip_norm or None,
    }
    if recipe.optimizer.name in ("sgd", "lars"):
        lars = recipe.optimizer.name == "lars"
        optimizer = SGD(
            schedule,
            momentum=recipe.optimizer.momentum,
            nesterov=recipe.optimizer.nesterov,
            rate_in_velocity=lars or recipe.optimizer.rate_in_velocity,
            rates=_rates(recipe, epoch_steps, model),
            momentum_at=schedules.momentum(recipe, epoch_steps),
            trust=recipe.optimizer.trust if lars else 0.0,
            **common,
        )
    else:
        cls, arguments = _other(recipe, epoch_steps)
        optimizer = cls(
            schedule,
            epsilon=recipe.optimizer.epsilon,
            rates=_part_rates(recipe, model),
            **arguments,
            **common,
        )
        if model and recipe.optimizer.name == "adamw":
            still = [w for w in model.trainable_variables if not losses.decays(w, recipe)]
            optimizer.exclude_from_weight_decay(var_list=still)
    if recipe.precision == "mixed_float16":
        return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer
