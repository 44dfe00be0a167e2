"""Learning rate and momentum of a recipe, as pure functions of the step.

NumPy computes them for all steps of a training at once; a step of training looks its own up. On a
GPU each operation is a kernel: computed in the step, rate and momentum of airbench94_muon are 40.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.schedule import steps_before

OfStep = Callable[[Any], Any]  # a function of the step: of NumPy's arrays, or of tensors


def lookup(function: OfStep, steps: int) -> OfStep:
    """Returns a function from a tensor, the step, to NumPy's `function` of it."""
    # The table has `steps` + 1 values; later steps have the last.
    table = np.broadcast_to(function(np.arange(steps + 1)), steps + 1)
    table = table if table.dtype == bool else table.astype("float32")
    if (table == table[0]).all():
        return lambda step: tf.constant(table[0])
    values = tf.constant(table)  # once: each weight looks the momentum up
    return lambda step: tf.gather(values, tf.minimum(step, steps))


def factor(recipe: Recipe, epoch_steps: Sequence[int]) -> OfStep:
    """Returns the recipe's schedule: a function from the step, from 0 on, to the rate's factor.

    >>> from dawnbench_tf import recipe
    >>> steps = recipe.Schedule("steps", epochs=(1, 3), factors=(0.1, 1, 0.5))
    >>> scale = factor(Recipe(schedule=steps), [10])
    >>> [round(float(scale(step)), 3) for step in (0, 9, 10, 29, 30, 99)]
    [0.1, 0.1, 1.0, 1.0, 0.5, 0.5]
    >>> linear = recipe.Schedule("linear", epochs=(0, 2, 6), factors=(0, 1, 0))
    >>> scale = factor(Recipe(schedule=linear), [10])
    >>> [round(float(scale(step)), 3) for step in (0, 10, 20, 40, 60, 70)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    edges, factors = _edges(recipe, epoch_steps), recipe.schedule.factors
    last = recipe.total_steps(epoch_steps)
    forms: dict[str, Callable[[], OfStep]] = {
        "constant": lambda: lambda step: 1.0,
        "steps": lambda: _steps(edges, factors),
        "linear": lambda: _linear(edges, factors),
        "cosine_points": lambda: _linear(edges, factors, _half_cosine),
        "cosine": lambda: _falling(edges, last, lambda done: 0.5 * (1 + np.cos(math.pi * done))),
        "quadratic": lambda: _falling(edges, last, lambda done: (1 - done) ** 2),
    }
    scale = forms[recipe.schedule.form]()
    if not (recipe.later_batch_sizes and recipe.optimizer.scale_learning_rate_from):
        return scale
    changes = [steps_before(epoch, epoch_steps) for epoch in recipe.batch_size_epochs]
    growth = [size / recipe.batch_size for size in recipe.batch_sizes]
    return lambda step: scale(step) * _steps(changes, growth)(step)


def _edges(recipe: Recipe, epoch_steps: Sequence[int]) -> list[float]:
    """Returns the schedule's epochs in steps."""
    edges = [steps_before(epochs, epoch_steps) for epochs in recipe.schedule.epochs]
    if recipe.schedule.form not in ("linear", "cosine_points"):
        return edges
    last = recipe.total_steps(epoch_steps)
    return [  # corners are at whole steps, the last at the last step
        last if epochs == recipe.epochs else math.floor(round(edge, 6))
        for epochs, edge in zip(recipe.schedule.epochs, edges, strict=True)
    ]


def momentum(recipe: Recipe, epoch_steps: Sequence[int]) -> OfStep:
    """Returns the recipe's momentum: a function from a tensor, the step, from 0 on.

    >>> from dawnbench_tf import recipe
    >>> cycle = recipe.Schedule("linear", (0, 1, 2), (0, 1, 0), momenta=(0.95, 0.85, 0.95))
    >>> at = momentum(Recipe(epochs=2, schedule=cycle), [10])
    >>> [round(float(at(step)), 3) for step in (0, 5, 10, 20, 30)]
    [0.95, 0.9, 0.85, 0.95, 0.95]
    """
    if not recipe.schedule.momenta:
        return lambda step: recipe.optimizer.momentum
    bend = _half_cosine if recipe.schedule.form == "cosine_points" else None
    momenta = _linear(_edges(recipe, epoch_steps), recipe.schedule.momenta, bend)
    return lookup(momenta, recipe.total_steps(epoch_steps))


def _steps(edges: Sequence[float], factors: Sequence[float]) -> OfStep:
    """Piecewise constant: factors[i] after i edges have been passed."""
    # In float32: 0.3 epochs of 10 steps have ended at step 3, though 0.3 * 10 is more.
    ends = np.asarray(edges, "float32")
    return lambda step: np.asarray(factors)[np.searchsorted(ends, step, side="right")]


def _half_cosine(done: np.ndarray) -> np.ndarray:
    """Bends a line from 0 to 1 into half a period of a cosine."""
    return 0.5 * (1 - np.cos(math.pi * done))


def _linear(edges: Sequence[float], factors: Sequence[float], bend: OfStep | None = None) -> OfStep:
    """Piecewise linear: factors[i] at step edges[i]; `bend` maps the done fraction of a piece."""
    # A last piece, of one factor, follows the last edge.
    starts, values = np.array([*edges, edges[-1] + 1]), np.array([*factors, factors[-1]])

    def scale(step: np.ndarray) -> np.ndarray:
        # The piece is the number of edges after the first that are passed: of two edges on one
        # step, as short epochs can have, the factor jumps to the second's.
        piece = np.searchsorted(starts[1:-1], step, side="right")
        left, right = starts[piece], starts[piece + 1]
        done = np.clip((step - left) / np.maximum(right - left, 1), 0.0, 1.0)
        start, end = values[piece], values[piece + 1]
        return start + (bend(done) if bend else done) * (end - start)

    return scale


def _falling(edges: Sequence[float], last: int, fall: OfStep) -> OfStep:
    """Linear warmup to edges[0], then `fall` of the fraction of the remaining steps, 0 to 1."""
    warmup = edges[0] if edges else 0.0

    def scale(step: np.ndarray) -> np.ndarray:
        done = np.clip((step - warmup) / (last - warmup or 1), 0.0, 1.0)  # 0: all is warmup
        return np.where(step < warmup, step / max(warmup, 1.0), fall(done))

    return scale


class LearningRate(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A recipe's learning rate as a Keras schedule: a function of the step."""

    def __init__(self, recipe: Recipe, epoch_steps: Sequence[int]) -> None:
        scale = factor(recipe, epoch_steps)
        self._at = lookup(
            lambda step: recipe.scaled_learning_rate * scale(step), recipe.total_steps(epoch_steps)
        )

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        return self._at(step)

    def get_config(self) -> dict[str, Any]:
        text = "a run's optimizer is rebuilt from its recipe, not from a configuration; set "
        text += "save_weights_only=True of a ModelCheckpoint"
        raise NotImplementedError(text)
