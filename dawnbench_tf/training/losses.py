"""Loss functions and weight decay."""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Data
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import muon


class SoftmaxCrossEntropy(tf.keras.losses.Loss):
    """Softmax cross-entropy of logits (batch, classes) and integer classes (batch,).

    Labels may be probabilities (batch, classes), as mixup gives them; a mixed label has the mean of
    its classes' weights. `smoothing` of each label is spread evenly over all classes (Szegedy et
    al. 2015, arXiv 1512.00567, section 7). Logits (batch, 2, classes) are of the network's head and
    an auxiliary one, whose loss is added with `auxiliary_weight`.
    """

    def __init__(
        self,
        smoothing: float = 0.0,
        auxiliary_weight: float = 0.0,
        class_weights: np.ndarray | None = None,
    ):
        super().__init__()
        self.smoothing, self.auxiliary_weight = smoothing, auxiliary_weight
        self.class_weights = class_weights

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        soft = tf.as_dtype(y_true.dtype).is_floating and y_true.shape == y_pred.shape
        # `fit` passes classes as (batch, 1).
        labels = y_true if soft else tf.reshape(tf.cast(y_true, tf.int64), [-1])
        if soft:
            smoothed = tf.cast(labels, y_pred.dtype) * (1 - self.smoothing)
            smoothed += self.smoothing / y_pred.shape[-1]
            losses = tf.nn.softmax_cross_entropy_with_logits(smoothed, y_pred)
        elif len(y_pred.shape) == 2:
            losses = self._cross_entropy(labels, y_pred)
        else:
            logits, auxiliary = tf.unstack(y_pred, axis=1)
            auxiliary_loss = self._cross_entropy(labels, auxiliary)
            losses = self._cross_entropy(labels, logits) + self.auxiliary_weight * auxiliary_loss
        if self.class_weights is None:
            return losses
        weights = tf.constant(self.class_weights, losses.dtype)
        if soft:
            return losses * tf.linalg.matvec(tf.cast(labels, losses.dtype), weights)
        return losses * tf.gather(weights, labels)

    def _cross_entropy(self, classes: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        if not self.smoothing:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(classes, y_pred)
        count = y_pred.shape[-1]
        others = self.smoothing / count
        labels = tf.one_hot(classes, count, 1 - self.smoothing + others, others, dtype=y_pred.dtype)
        return tf.nn.softmax_cross_entropy_with_logits(labels, y_pred)


class SpanCrossEntropy(tf.keras.losses.Loss):
    """Sum of the cross-entropies of logits (batch, 2, context) and tokens int (batch, 2)."""

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y_true, tf.int32), y_pred)
        return tf.reduce_sum(losses, -1)


def make_loss(data: Data) -> tf.keras.losses.Loss:
    """Returns the loss of a recipe's task, with the recipe's class weights."""
    recipe, weights = data.recipe, None
    if recipe.task_row.inputs == "questions":
        return SpanCrossEntropy()
    if recipe.data.class_weights:  # examples / (classes x examples of the class), as scikit-learn's
        counts = np.bincount(data.splits.train.labels, minlength=recipe.task_row.classes)
        weights = counts.sum() / (len(counts) * np.maximum(counts, 1))
    return SoftmaxCrossEntropy(recipe.label_smoothing, recipe.network.auxiliary_weight, weights)


def is_whitening_bias(weight: tf.Variable) -> bool:
    """Whether a weight is the bias of a whitening layer."""
    return weight.name.startswith("whitening/bias")


def own_rate(weight: tf.Variable, recipe: Recipe) -> float:
    """Returns a weight's learning-rate multiplier by its kind, by which its decay is divided."""
    if weight.name.split("/")[-1].startswith("beta"):
        return recipe.optimizer.shift_rate
    return recipe.optimizer.whitening_bias_rate if is_whitening_bias(weight) else 1.0


def decays(weight: tf.Variable, recipe: Recipe) -> bool:
    """Whether the recipe's weight decay applies to a weight."""
    kind, name = recipe.optimizer.decays, weight.name.split("/")[-1]
    if kind == "all_but_norms":
        return not name.startswith(("gamma", "beta"))
    return kind == "all" or (weight.shape.rank > 1 and not name.startswith("bias"))


def add_weight_decay(model: tf.keras.Model, recipe: Recipe) -> None:
    """Adds L2 regularization to the loss of a model that is not compiled yet."""
    # It is weight_decay x (sum of squares) / 2, for a weight of `own_rate` weight_decay / own_rate.
    # `decays` chooses the weights: "kernels" of convolutions and dense layers, as in DAWNBench's
    # TensorFlow seeds; "all" trained weights, as in its PyTorch seeds; or "all_but_norms". Nothing
    # is added for LARS, AdamW and the kernels of Muon, which decay them themselves.
    kernels = muon.kernels(model, recipe)
    shares = [
        (1 / own_rate(w, recipe), w)
        for w in model.trainable_variables
        if decays(w, recipe) and w.ref() not in kernels
    ]
    if penalty := recipe.optimizer.penalty:
        model.add_loss(lambda: penalty * tf.add_n([s * tf.nn.l2_loss(w) for s, w in shares]))
