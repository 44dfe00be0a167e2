"""Learning-rate schedules, as pure functions of the step, and optimizers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tensorflow as tf

from dawnbench_tf.models import parts
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse
from dawnbench_tf.training import averages, losses
from dawnbench_tf.training.averages import Averages


def factor(recipe: Recipe, steps_per_epoch: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the recipe's schedule: a function from the step, from 0 on, to the rate's factor.

    Args:
      recipe: its `schedule` has the form, the epochs of its corners and the factors there.
      steps_per_epoch: number of steps in an epoch.

    >>> from dawnbench_tf import recipe
    >>> steps = recipe.Schedule("steps", epochs=(1, 3), factors=(0.1, 1, 0.5))
    >>> scale = factor(Recipe(schedule=steps), 10)
    >>> [round(float(scale(step)), 3) for step in (0, 9, 10, 29, 30, 99)]
    [0.1, 0.1, 1.0, 1.0, 0.5, 0.5]
    >>> linear = recipe.Schedule("linear", epochs=(0, 2, 6), factors=(0, 1, 0))
    >>> scale = factor(Recipe(schedule=linear), 10)
    >>> [round(float(scale(step)), 3) for step in (0, 10, 20, 40, 60, 70)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    last = recipe.total_steps(steps_per_epoch)
    edges = [epochs * steps_per_epoch for epochs in recipe.schedule.epochs]
    if recipe.schedule.form == "linear":  # corners are at whole steps, the last at the last step
        edges = [
            last if epochs == recipe.epochs else math.floor(round(edge, 6))
            for epochs, edge in zip(recipe.schedule.epochs, edges, strict=True)
        ]
    forms: Mapping[str, Callable[..., Callable[[tf.Tensor], tf.Tensor]]] = {
        "constant": _constant,
        "steps": _steps,
        "linear": _linear,
        "cosine": partial(_falling, lambda done: 0.5 * (1 + tf.cos(math.pi * done))),
        "quadratic": partial(_falling, lambda done: (1 - done) ** 2),
    }
    return forms[recipe.schedule.form](edges, recipe.schedule.factors, last)


def _constant(
    edges: Sequence[float], factors: Sequence[float], last: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    return lambda step: 1.0


def _steps(
    edges: Sequence[float], factors: Sequence[float], last: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Piecewise constant: factors[i] after i edges have been passed."""

    def scale(step: tf.Tensor) -> tf.Tensor:
        passed = tf.reduce_sum(
            tf.cast(tf.cast(step, tf.float32) >= tf.constant(edges, tf.float32), tf.int32)
        )
        return tf.gather(tf.constant(factors, tf.float32), passed)

    return scale


def _linear(
    edges: Sequence[float], factors: Sequence[float], last: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Piecewise linear: factors[i] at step edges[i]."""

    def scale(step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        # A sum over the pieces: each adds its rise, times the fraction of the piece that is done.
        value = tf.constant(factors[0], tf.float32)
        for left, right, start, end in zip(edges, edges[1:], factors, factors[1:], strict=False):
            if left == right:  # a jump: with short epochs two corners can fall on one step
                done = tf.cast(step >= left, tf.float32)
            else:
                done = tf.clip_by_value((step - left) / (right - left), 0.0, 1.0)
            value += done * (end - start)
        return value

    return scale


def _falling(
    fall: Callable[[tf.Tensor], tf.Tensor],
    edges: Sequence[float],
    factors: Sequence[float],
    last: int,
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Linear warmup to edges[0], then `fall` of the fraction of the remaining steps, 0 to 1."""
    warmup = edges[0] if edges else 0.0

    def scale(step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        done = tf.clip_by_value((step - warmup) / (last - warmup), 0.0, 1.0)
        return tf.where(step < warmup, step / max(warmup, 1.0), fall(done))

    return scale


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A Keras learning-rate schedule: rate x factor(step)."""

    def __init__(self, rate: float, factor: Callable[[tf.Tensor], tf.Tensor]) -> None:
        self.rate, self.factor = rate, factor

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        return self.rate * self.factor(step)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(
            "a run's optimizer is rebuilt from its recipe, not from a configuration"
        )


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


def _rates(recipe: Recipe, steps_per_epoch: int, model: tf.keras.Model | None) -> Rates:
    """Returns the learning-rate multipliers of single weights, by index among the trained ones."""
    rates: dict[int, Callable[[tf.Tensor], tf.Tensor]] = {
        index: partial(lambda rate, step: rate, rate)
        for index, rate in _part_rates(recipe, model).items()
    }
    trained = math.ceil(recipe.optimizer.whitening_bias_epochs * steps_per_epoch)
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
      trust: LARS trust coefficient (You, Gitman & Ginsburg 2017, arXiv 1708.03888, in the form of
        TensorFlow's reference models): a kernel's rate is multiplied by trust x |w| / |g|, where g
        includes the weight decay. 0: no LARS.
    """

    def __init__(
        self, *args: Any, rate_in_velocity: bool, rates: Rates, trust: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._in_velocity, self._rates, self._trust = rate_in_velocity, rates, trust

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
            momentum=tf.cast(self.momentum, variable.dtype),
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


class Adam(Averages, PartRates, tf.keras.optimizers.Adam):
    """Keras's Adam with `Averages`."""


class AdamW(Averages, PartRates, tf.keras.optimizers.AdamW):
    """Keras's AdamW with `Averages`."""


class Adamax(Averages, PartRates, tf.keras.optimizers.Adamax):
    """Keras's Adamax with `Averages`."""


class Adadelta(Averages, PartRates, tf.keras.optimizers.Adadelta):
    """Keras's Adadelta with `Averages`."""


def build(
    recipe: Recipe, steps_per_epoch: int, model: tf.keras.Model | None = None
) -> tf.keras.optimizers.Optimizer:
    """Builds the recipe's optimizer; with loss scaling, if the precision is mixed_float16.

    Args:
      recipe: optimizer, schedule, averages and precision.
      steps_per_epoch: number of steps in an epoch.
      model: the model to train; needed for learning-rate multipliers of single weights, and for
        averages.
    """
    schedule = Schedule(recipe.scaled_learning_rate, factor(recipe, steps_per_epoch))
    common: dict[str, Any] = {
        "averaging": averages.make_averaging(recipe, recipe.total_steps(steps_per_epoch), model),
        "global_clipnorm": recipe.optimizer.clip_norm or None,
    }
    if recipe.optimizer.name in ("sgd", "lars"):
        lars = recipe.optimizer.name == "lars"
        optimizer = SGD(
            schedule,
            momentum=recipe.optimizer.momentum,
            nesterov=recipe.optimizer.nesterov,
            rate_in_velocity=lars or recipe.optimizer.rate_in_velocity,
            rates=_rates(recipe, steps_per_epoch, model),
            trust=recipe.optimizer.trust if lars else 0.0,
            **common,
        )
    else:
        classes: dict[str, tuple[Callable[..., PartRates], dict[str, float]]] = {
            "rmsprop": (RMSprop, {"rho": 0.9, "momentum": recipe.optimizer.momentum}),
            "adadelta": (Adadelta, {"rho": 0.95}),  # Zeiler's (2012), and TensorFlow 1's
            "adam": (Adam, {}),
            "adamw": (AdamW, {"weight_decay": recipe.optimizer.weight_decay}),
            "adamax": (Adamax, {}),
        }
        cls, arguments = classes[recipe.optimizer.name]
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
