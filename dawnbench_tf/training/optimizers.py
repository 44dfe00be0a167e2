"""How the loss is minimised: schedules as pure functions of the step, and the optimizers."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import tensorflow as tf

from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import averages, losses
from dawnbench_tf.training.averages import Averages


def factor(recipe: Recipe, steps_per_epoch: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """The recipe's schedule: a function of the step (0 is the first) to what scales the rate.

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
    if recipe.schedule.form == "linear":  # corners are whole steps, the end is the last step
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


def _constant(edges, factors, last):
    return lambda step: 1.0


def _steps(edges, factors, last):
    def at(step):
        passed = tf.reduce_sum(
            tf.cast(tf.cast(step, tf.float32) >= tf.constant(edges, tf.float32), tf.int32)
        )
        return tf.gather(tf.constant(factors, tf.float32), passed)

    return at


def _linear(edges, factors, last):
    def at(step):
        step = tf.cast(step, tf.float32)
        value = tf.constant(factors[0], tf.float32)
        for left, right, start, end in zip(edges, edges[1:], factors, factors[1:], strict=False):
            if left == right:  # two corners on one step, which short epochs make, are a jump
                share = tf.cast(step >= left, tf.float32)
            else:
                share = tf.clip_by_value((step - left) / (right - left), 0.0, 1.0)
            value += share * (end - start)
        return value

    return at


def _falling(fall, edges, factors, last):
    """From 1 to 0 by a function of the part that is done, 0 to 1; after a warmup."""
    warmup = edges[0] if edges else 0.0

    def at(step):
        step = tf.cast(step, tf.float32)
        done = tf.clip_by_value((step - warmup) / (last - warmup), 0.0, 1.0)
        return tf.where(step < warmup, step / max(warmup, 1.0), fall(done))

    return at


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    """Keras's form of `rate x factor(step)`."""

    def __init__(self, rate, factor):
        self.rate, self.factor = rate, factor

    def __call__(self, step):
        return self.rate * self.factor(step)

    def get_config(self):
        raise NotImplementedError(
            "a run's optimizer is rebuilt from its recipe, not from a configuration"
        )


Rates = Mapping[int, Callable[[tf.Tensor], tf.Tensor]]


def _rates(recipe, steps_per_epoch, weights) -> Rates:
    """What scales the rates of single weights, by their places."""
    rates: dict[int, Callable[[tf.Tensor], tf.Tensor]] = {}
    trained = math.ceil(recipe.optimizer.whitening_bias_epochs * steps_per_epoch)
    for place, weight in enumerate(weights):
        if recipe.optimizer.shift_rate != 1 and losses.is_shift(weight):
            rates[place] = lambda step: recipe.optimizer.shift_rate
        elif trained and weight.name.startswith("whitening/bias"):
            rates[place] = lambda step: step < trained
    return rates


class SGD(Averages, tf.keras.optimizers.SGD):
    """SGD with momentum in either of its two forms, in one fused kernel for each weight.

    Args:
      rate_in_velocity: v = m v - rate g, w += v, as Keras has it; if not, v = m v + g,
        w -= rate v, as TensorFlow 1 and PyTorch. They differ when the rate changes.
      rates: by a weight's place among the trained ones: from the step to what scales its rate.
      trust: of LARS (You, Gitman & Ginsburg 2017, arXiv 1708.03888, as TensorFlow's references
        have it): a kernel's rate is multiplied by this, its norm over its gradient's, decay
        included; 0: it is not.
    """

    def __init__(self, *args, rate_in_velocity: bool, rates: Rates, trust: float = 0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self._in_velocity, self._rates, self._trust = rate_in_velocity, rates, trust

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates a weight, or a replica's copy of one; Keras calls it."""
        kernels = tf.raw_ops.ResourceApplyMomentum, tf.raw_ops.ResourceApplyKerasMomentum
        place = self._index_dict[self._var_key(variable)]
        rate = tf.cast(self.learning_rate, variable.dtype)
        rate = rate * self._scale(gradient, variable, place)
        kernels[self._in_velocity](
            var=variable.handle,
            accum=self.momentums[place].handle,
            lr=rate,
            grad=tf.convert_to_tensor(gradient),
            momentum=tf.cast(self.momentum, variable.dtype),
            use_nesterov=self.nesterov,
        )

    def _scale(self, gradient, variable, place):
        """What a weight's rate is multiplied by."""
        own = self._rates.get(place)
        scale = tf.cast(own(self.iterations) if own else 1.0, variable.dtype)
        if not self._trust or variable.shape.rank < 2:
            return scale
        norm, of_gradient = tf.norm(variable), tf.norm(gradient)
        ratio = self._trust * norm / of_gradient
        return scale * tf.where((norm > 0) & (of_gradient > 0), ratio, tf.ones_like(ratio))


class RMSprop(Averages, tf.keras.optimizers.RMSprop):
    """Keras's, with our averages; squared gradients' mean starts at 1, as TensorFlow 1's did."""

    def build(self, var_list):
        """Makes the means; Keras calls it."""
        first = not getattr(self, "_built", False)
        super().build(var_list)
        for mean in self._velocities if first else ():
            mean.assign(tf.ones_like(mean))


class Adam(Averages, tf.keras.optimizers.Adam):
    """Keras's, with our averages."""


class AdamW(Averages, tf.keras.optimizers.AdamW):
    """Keras's, with our averages."""


class Adamax(Averages, tf.keras.optimizers.Adamax):
    """Keras's, with our averages."""


class Adadelta(Averages, tf.keras.optimizers.Adadelta):
    """Keras's, with our averages."""


def build(
    recipe: Recipe, steps_per_epoch: int, model: tf.keras.Model | None = None
) -> tf.keras.optimizers.Optimizer:
    """The recipe's optimizer, with float16's loss scaling where that is the precision.

    Args:
      recipe: which optimizer, and how.
      steps_per_epoch: what the schedule's epochs are of.
      model: that will be trained; needed where single weights have rates of their own, or averages
        are kept.
    """
    schedule = Schedule(recipe.scaled_learning_rate, factor(recipe, steps_per_epoch))
    both: dict[str, Any] = {
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
            rates=_rates(recipe, steps_per_epoch, model.trainable_variables if model else []),
            trust=recipe.optimizer.trust if lars else 0.0,
            **both,
        )
    else:
        kinds: dict[str, tuple[Callable[..., Averages], dict[str, float]]] = {
            "rmsprop": (RMSprop, {"rho": 0.9, "momentum": recipe.optimizer.momentum}),
            "adadelta": (Adadelta, {"rho": 0.95}),  # Zeiler's (2012), and TensorFlow 1's
            "adam": (Adam, {}),
            "adamw": (AdamW, {"weight_decay": recipe.optimizer.weight_decay}),
            "adamax": (Adamax, {}),
        }
        kind, own = kinds[recipe.optimizer.name]
        optimizer = kind(schedule, epsilon=recipe.optimizer.epsilon, **own, **both)
        if model and recipe.optimizer.name == "adamw":
            still = [w for w in model.trainable_variables if not losses.decays(w, recipe)]
            optimizer.exclude_from_weight_decay(var_list=still)
    if recipe.precision == "mixed_float16":
        return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer
