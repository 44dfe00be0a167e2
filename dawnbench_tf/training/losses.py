"""What is minimised."""

import tensorflow as tf

from dawnbench_tf.recipe import Recipe


class SoftmaxCrossEntropy(tf.keras.losses.Loss):
    """Cross-entropy of logits (batch, classes) against classes (batch,).

    Args:
      smoothing: share of each label that is spread evenly over all classes (Szegedy et al. 2015,
        arXiv 1512.00567, section 7).
      auxiliary_weight: of an auxiliary head's loss, added where there are its logits too: (batch,
        2, classes).
    """

    def __init__(self, smoothing: float = 0.0, auxiliary_weight: float = 0.0):
        super().__init__()
        self.smoothing, self.auxiliary_weight = smoothing, auxiliary_weight

    def call(self, y_true, y_pred):
        classes = tf.reshape(tf.cast(y_true, tf.int64), [-1])  # `fit` makes columns of them
        if len(y_pred.shape) == 2:
            return self._cross_entropy(classes, y_pred)
        logits, auxiliary = tf.unstack(y_pred, axis=1)
        return self._cross_entropy(classes, logits) + self.auxiliary_weight * self._cross_entropy(
            classes, auxiliary
        )

    def _cross_entropy(self, classes, y_pred):
        if not self.smoothing:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(classes, y_pred)
        count = y_pred.shape[-1]
        others = self.smoothing / count
        labels = tf.one_hot(classes, count, 1 - self.smoothing + others, others)
        return tf.nn.softmax_cross_entropy_with_logits(labels, y_pred)


class SpanCrossEntropy(tf.keras.losses.Loss):
    """Cross-entropy of first plus last token: logits (batch, 2, context), spans (batch, 2)."""

    def call(self, y_true, y_pred):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y_true, tf.int32), y_pred)
        return tf.reduce_sum(losses, -1)


LOSSES = {
    "softmax_cross_entropy": lambda recipe: SoftmaxCrossEntropy(
        recipe.label_smoothing, recipe.network.auxiliary_weight
    ),
    "span_cross_entropy": lambda recipe: SpanCrossEntropy(),
}


def is_shift(weight: tf.Variable) -> bool:
    """Whether a weight is BN's beta."""
    return weight.name.split("/")[-1].startswith("beta")


def decays(weight: tf.Variable, recipe: Recipe) -> bool:
    """Whether the recipe's weight_decay is for this weight."""
    return recipe.optimizer.decays == "all" or weight.shape.rank > 1


def add_weight_decay(model: tf.keras.Model, recipe: Recipe) -> None:
    """Adds weight_decay x (sum of squares) / 2 of the weights that decay to the model's loss.

    `recipe.decays` says which do: "kernels", those of convolutions and dense layers, as in the
    TensorFlow seeds; "all", every trained weight, as in the PyTorch seeds' optimizer. The shifts
    of BN decay by weight_decay / shift_rate. AdamW decays weights by itself.

    Args:
      model: not yet compiled.
      recipe: a weight_decay of 0 adds nothing.
    """
    shares = [
        (1 / recipe.optimizer.shift_rate if is_shift(w) else 1.0, w)
        for w in model.trainable_variables
        if decays(w, recipe)
    ]
    if recipe.optimizer.weight_decay and recipe.optimizer.name != "adamw":
        model.add_loss(
            lambda: (
                recipe.optimizer.weight_decay * tf.add_n([s * tf.nn.l2_loss(w) for s, w in shares])
            )
        )
