"""Optimizers of recipes: Keras's, with rates of single weights, schedules and averages."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.models import parts
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.schedule import steps_before
from dawnbench_tf.refusals import refusing
from dawnbench_tf.settings import flag_text
from dawnbench_tf.training import losses, muon, schedules
from dawnbench_tf.training.averages import Averages
from dawnbench_tf.training.muon import SGD, Muon, Rates
from dawnbench_tf.training.schedules import OfStep


def _part_rates(recipe: Recipe, model: tf.keras.Model | None) -> dict[int, float]:
    """Returns the multipliers of weights before the head, by index among the trained ones."""
    optimizer = recipe.optimizer
    if model is None or optimizer.backbone_rate == optimizer.layer_rate_decay == 1:
        return {}
    name = "backbone_rate" if optimizer.backbone_rate != 1 else "layer_rate_decay"
    with refusing(flag_text(name, getattr(optimizer, name)), "", ValueError):
        layers = parts.split(model)
    multipliers = {
        weight.ref(): optimizer.backbone_rate * optimizer.layer_rate_decay**distance
        for distance, part in enumerate(layers[-2::-1], 1)
        for layer in part
        for weight in layer.trainable_weights
    }
    weights = enumerate(model.trainable_variables)
    return {i: multipliers[w.ref()] for i, w in weights if w.ref() in multipliers}


def _rates(
    recipe: Recipe,
    epoch_steps: Sequence[int],
    model: tf.keras.Model | None,
    kernels: Collection[int] = (),
) -> Rates:
    """Returns the learning-rate multipliers of single weights, by index among the trained ones."""
    # `kernels` are the indices of those that Muon trains.
    by_part, settings = _part_rates(recipe, model), recipe.optimizer
    rates: dict[int, OfStep] = {}
    total = recipe.total_steps(epoch_steps)
    for index, weight in enumerate(model.trainable_variables if model else []):
        rate = by_part.get(index, 1.0) * (1.0 if index in kernels else settings.sgd_rate)
        rate *= losses.own_rate(weight, recipe)
        if losses.is_whitening_bias(weight) and settings.whitening_bias_epochs:
            rates[index] = schedules.lookup(_whitening_rate(recipe, epoch_steps, rate), total)
        elif rate != 1:
            rates[index] = partial(lambda rate, step: rate, rate)
    return rates


def _whitening_rate(recipe: Recipe, epoch_steps: Sequence[int], rate: float) -> OfStep:
    """Returns the multiplier of a whitening layer's bias, which is frozen after some epochs."""
    trained = math.ceil(round(steps_before(recipe.optimizer.whitening_bias_epochs, epoch_steps), 6))
    if not recipe.optimizer.whitening_bias_falls:
        return lambda step: rate * (step < trained)
    factor = schedules.factor(recipe, epoch_steps)

    def falling(step: np.ndarray) -> np.ndarray:
        left, scale = rate * np.maximum(1 - step / trained, 0), factor(step)
        return np.divide(left, scale, out=np.zeros_like(left), where=scale != 0)

    return falling


class OwnRates(Averages):
    """A mix-in for Keras optimizers: averages, rates of single weights, a schedule of beta_1.

    A weight's decoupled decay (AdamW) is multiplied too, as in PyTorch's parameter groups. `rates`
    are multipliers by a weight's index among the trained ones.
    """

    _multiplier = 1.0  # of the weight that is being updated

    def __init__(
        self,
        *args: Any,
        rates: Mapping[int, float],
        momentum_at: OfStep | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._own_rates, self._momentum_at = dict(rates), momentum_at
        # TensorFlow casts a number of Python through float32, and one of NumPy directly.
        for name in vars(self).keys() & {"beta_1", "beta_2"}:
            setattr(self, name, np.float64(getattr(self, name)))

    @property
    def learning_rate(self) -> Any:
        """The current learning rate, of the weight that is being updated."""
        rate = super().learning_rate
        return rate if self._multiplier == 1 else rate * self._multiplier

    @contextmanager
    def _settings_of(self, variable: tf.Variable) -> Iterator[None]:
        constant = getattr(self, "beta_1", None)
        self._multiplier = self._own_rates.get(self._index_dict[self._var_key(variable)], 1.0)
        if self._momentum_at:
            self.beta_1 = tf.cast(self._momentum_at(self.iterations), variable.dtype)
        try:
            yield
        finally:
            self._multiplier, self.beta_1 = 1.0, constant

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        with self._settings_of(variable):
            super().update_step(gradient, variable)

    def _apply_weight_decay(self, variables: Sequence[tf.Variable]) -> None:
        if not self._own_rates:
            super()._apply_weight_decay(variables)
            return
        for variable in variables:
            with self._settings_of(variable):
                super()._apply_weight_decay([variable])


class RMSprop(tf.keras.optimizers.RMSprop):
    """Keras's RMSprop; the mean of squared gradients starts at 1 (TensorFlow 1)."""

    def build(self, var_list: list[tf.Variable]) -> None:
        first = not getattr(self, "_built", False)
        super().build(var_list)
        for mean in self._velocities if first else ():
            mean.assign(tf.ones_like(mean))


def build(
    recipe: Recipe, epoch_steps: Sequence[int], model: tf.keras.Model | None = None
) -> tf.keras.optimizers.Optimizer:
    """Builds the recipe's optimizer; with loss scaling, if the precision is mixed_float16."""
    # Rates of single weights and averages need the model. `epoch_steps` is as in `steps_before`.
    settings, keras = recipe.optimizer, tf.keras.optimizers
    weights = list(model.trainable_variables) if model else []
    if settings.name in ("sgd", "lars", "muon"):
        lars, momentum_at = settings.name == "lars", schedules.momentum(recipe, epoch_steps)
        references = muon.kernels(model, recipe) if model else set()
        kernels = {index for index, weight in enumerate(weights) if weight.ref() in references}
        cls: Any = SGD
        arguments: dict[str, Any] = {
            "nesterov": settings.nesterov,
            "momentum": settings.momentum,
            "rate_in_velocity": lars or settings.rate_in_velocity,
            "momentum_at": momentum_at,
            "trust": settings.trust if lars else 0.0,
            "rates": _rates(recipe, epoch_steps, model, kernels),
            "decays": {
                index: settings.weight_decay / losses.own_rate(weight, recipe)
                for index, weight in enumerate(weights if lars else [])
                if losses.decays(weight, recipe)
            },
        }
        if settings.name == "muon":
            arguments |= {"kernels": kernels, "kernel_momentum_at": momentum_at}
            cls, arguments["momentum_at"] = Muon, lambda step: settings.sgd_momentum
    else:
        cycle = schedules.momentum(recipe, epoch_steps) if recipe.schedule.momenta else None
        adam = {"beta_2": settings.beta_2, "momentum_at": cycle}
        classes: dict[str, tuple[type, dict[str, Any]]] = {
            "adadelta": (keras.Adadelta, {"rho": 0.95}),  # Zeiler's (2012), and TensorFlow 1's
            "adam": (keras.Adam, adam),
            "adamw": (keras.AdamW, {"weight_decay": settings.weight_decay, **adam}),
            "adamax": (keras.Adamax, {}),
            "rmsprop": (RMSprop, {"rho": 0.9, "momentum": settings.momentum}),
        }
        base, own = classes[settings.name]
        cls = type(base.__name__, (OwnRates, base), {})
        arguments = {"epsilon": settings.epsilon, "rates": _part_rates(recipe, model), **own}
    optimizer = cls(
        schedules.LearningRate(recipe, epoch_steps),
        recipe=recipe,
        steps=recipe.total_steps(epoch_steps),
        model=model,
        global_clipnorm=settings.clip_norm or None,
        **arguments,
    )
    if model and settings.name == "adamw":
        still = [weight for weight in weights if not losses.decays(weight, recipe)]
        optimizer.exclude_from_weight_decay(var_list=still)
    if recipe.precision == "mixed_float16":
        return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer
