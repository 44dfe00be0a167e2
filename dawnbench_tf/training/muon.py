"""SGD, with LARS, and Muon: momentum whose updates of kernels are orthogonalized; SGD for others.

Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; in the form of
airbench94_muon.py of KellerJordan/cifar10-airbench, which normalizes the kernels too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.models import parts
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refusing
from dawnbench_tf.training.averages import Averages
from dawnbench_tf.training.schedules import OfStep, lookup


def kernels(model: tf.keras.Model, recipe: Recipe) -> set[Any]:
    """Returns references to the weights that Muon trains; none without Muon. Raises Refusal."""
    if recipe.optimizer.name != "muon":
        return set()
    with refusing("--optimizer=muon", "", ValueError):
        return {weight.ref() for weight in parts.hidden_kernels(model)}


def orthogonalize(
    matrices: tf.Tensor, coefficients: Sequence[float], iterations: int, dtype: tf.DType | str
) -> tf.Tensor:
    """Returns matrices with the same singular vectors, and singular values near 1 unless tiny."""
    # Each of the (matrices, rows, columns) is divided by its Frobenius norm; then, in `dtype`, X <-
    # a X + b X X'X + c X X'X X'X (Newton-Schulz). With Jordan's coefficients, five iterations bring
    # singular values of at least 0.003 to between 0.68 and 1.2; zeros stay so.
    a, b, c = coefficients
    x = tf.math.divide_no_nan(matrices, tf.norm(matrices, axis=(1, 2), keepdims=True))
    x = tf.cast(x, dtype)
    is_tall = matrices.shape[1] > matrices.shape[2]
    for _ in range(iterations):  # of X'X and X X', the smaller one is computed
        gram = tf.matmul(x, x, transpose_a=is_tall, transpose_b=not is_tall)
        polynomial = b * gram + c * tf.matmul(gram, gram)
        x = a * x + (tf.matmul(x, polynomial) if is_tall else tf.matmul(polynomial, x))
    return x


def normalized_steps(steps_between: Sequence[int], steps: int) -> list[bool]:
    """Returns for each step of training whether it normalizes the kernels.

    `steps_between` is a recipe's `kernel_norm_steps`; (): never.

    >>> [step for step, due in enumerate(normalized_steps((2, 5), 12), 1) if due]
    [2, 5, 9]
    """
    due, last = [], 0
    for step in range(1, steps + 1):
        between = math.inf
        if steps_between:
            first, final = steps_between
            between = first + int((final - first) * step / steps)
        due.append(step - last >= between)
        last = step if due[-1] else last
    return due


Rates = Mapping[int, OfStep]  # by a weight's index


class SGD(Averages, tf.keras.optimizers.SGD):
    """SGD with momentum m, optionally with LARS; one fused kernel for each weight."""

    def __init__(
        self,
        *args: Any,
        rate_in_velocity: bool,  # v = m v - lr g, w += v (Keras); else v = m v + g, w -= lr v
        rates: Rates,  # multipliers by a weight's index among the trained ones
        momentum_at: OfStep,
        # LARS (arXiv 1708.03888): a kernel's rate is multiplied by trust x |w| / (|g| + d |w|).
        trust: float = 0.0,
        decays: Mapping[int, float] | None = None,  # LARS' d, added to g as d w, by index
        **kwargs: Any,
    ) -> None:
        # Not by XLA, which tf-keras uses on GPUs: it would compile anew for each shape of weights.
        super().__init__(*args, jit_compile=False, **kwargs)
        self._in_velocity, self._rates, self._trust = rate_in_velocity, rates, trust
        self._momentum_at, self._decays = momentum_at, dict(decays or {})

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        steps = tf.raw_ops.ResourceApplyMomentum, tf.raw_ops.ResourceApplyKerasMomentum
        index = self._index_dict[self._var_key(variable)]
        scale = self._scale(gradient, variable, index)
        decay = self._decays.get(index)
        gradient = gradient + decay * variable if decay else gradient
        momentum = tf.cast(self._momentum_at(self.iterations), variable.dtype)
        if index in self._rates and self._in_velocity:  # the velocity must not move a frozen weight
            momentum *= tf.cast(scale > 0, variable.dtype)
        steps[self._in_velocity](
            var=variable.handle,
            accum=self.momentums[index].handle,
            lr=tf.cast(self.learning_rate, variable.dtype) * scale,
            grad=tf.convert_to_tensor(gradient),
            momentum=momentum,
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


class Muon(SGD):
    """Muon for the `kernels`, by index among the trained weights; SGD for the other weights.

    An update of a kernel (height, width, channels, filters), whose momentum is Nesterov's or not,
    is orthogonalized as a matrix (height x width x channels, filters). Kernels with equal filters,
    and up to 4 times the rows of the smallest, are orthogonalized together, completed by rows of
    zeros, which stay so: a small operation takes a GPU longer to start than to compute.
    """

    def __init__(
        self,
        *args: Any,
        recipe: Recipe,
        kernels: Iterable[int],
        steps: int,
        kernel_momentum_at: OfStep,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, recipe=recipe, steps=steps, **kwargs)
        self._settings, self._kernels = recipe.optimizer, frozenset(kernels)
        self._low_precision = recipe.precision == "mixed_bfloat16"
        due = np.array([*normalized_steps(recipe.optimizer.kernel_norm_steps, steps), False])
        self._normalizes, self._due_at = due.any(), lookup(lambda step: due[step], steps)
        self._kernel_momentum_at = kernel_momentum_at

    def _distributed_apply_gradients_fn(
        self, distribution: Any, grads_and_vars: Iterable[tuple], **kwargs: Any
    ) -> Any:
        sized: list[tuple] = []  # of each kernel: filters, elements, index, gradient, weight
        others: list[tuple] = []
        for gradient, weight in grads_and_vars:
            index = self._index_dict[self._var_key(weight)]
            if index in self._kernels:
                size = weight.shape[-1], weight.shape.num_elements()
                sized.append((*size, index, gradient, weight))
            else:
                others.append((gradient, weight))
        groups: list[list[tuple]] = []
        smallest = 0, 0  # filters and elements of a group's first kernel
        for filters, elements, _, gradient, weight in sorted(sized, key=lambda row: row[:3]):
            if filters != smallest[0] or elements > 4 * smallest[1]:
                groups.append([])
                smallest = filters, elements
            groups[-1].append((gradient, weight))
        for group in groups:
            gradients, weights = zip(*group, strict=True)
            distribution.extended.update(
                weights[0], self._update_kernels, args=(gradients, weights), group=False
            )
        return super()._distributed_apply_gradients_fn(distribution, others, **kwargs)

    def _update_kernels(
        self, first: tf.Variable, gradients: Sequence[tf.Tensor], weights: Sequence[tf.Variable]
    ) -> None:
        """Updates kernels with equal filters, `first` among them, on one replica."""
        settings, dtype, filters = self._settings, first.dtype, first.shape[-1]
        indices = [self._index_dict[self._var_key(weight)] for weight in weights]
        rows = [weight.shape.num_elements() // filters for weight in weights]
        momentum = tf.cast(self._kernel_momentum_at(self.iterations), dtype)
        directions = []
        for index, gradient, own in zip(indices, gradients, rows, strict=True):
            velocity = self.momentums[index]
            velocity.assign(momentum * velocity + gradient)
            direction = gradient + momentum * velocity if self.nesterov else velocity
            matrix = tf.reshape(direction, [own, filters])
            directions.append(tf.pad(matrix, [[0, max(rows) - own], [0, 0]]))
        updates = orthogonalize(
            tf.stack(directions),
            settings.newton_schulz,
            settings.newton_schulz_steps,
            "bfloat16" if self._low_precision else dtype,
        )
        scales = [self._scale(g, w, i) for g, w, i in zip(gradients, weights, indices, strict=True)]
        rates = tf.cast(self.learning_rate, dtype) * tf.stack(scales)
        # (w - rate u) (1 - rate decay), of a kernel w that is normalized first.
        left = 1 - rates * settings.kernel_decay
        factors = tf.ones(len(weights), dtype)  # that normalize kernels; 1: not in this step
        if self._normalizes:
            norms = tf.sqrt(2 * tf.stack([tf.nn.l2_loss(weight) for weight in weights]))
            unit = tf.math.divide_no_nan(tf.cast(filters**0.5, norms.dtype), norms)
            factors = tf.where(self._due_at(self.iterations), unit, factors)
        kept = tf.unstack(left * factors)
        updates = tf.cast(updates, dtype) * (rates * left)[:, None, None]
        for weight, factor, update, own in zip(
            weights, kept, tf.unstack(updates), rows, strict=True
        ):
            weight.assign(factor * weight - tf.reshape(update[:own], weight.shape))
