"""What is minimised."""

import tensorflow as tf


def softmax_cross_entropy() -> tf.keras.losses.Loss:
    """Mean cross-entropy of logits (batch, classes) against classes (batch,)."""
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


class SpanCrossEntropy(tf.keras.losses.Loss):
    """Cross-entropy of first plus last token: logits (batch, 2, context), spans (batch, 2)."""

    def call(self, y_true, y_pred):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y_true, tf.int32), y_pred)
        return tf.reduce_sum(losses, -1)


LOSSES = {
    "softmax_cross_entropy": softmax_cross_entropy,
    "span_cross_entropy": SpanCrossEntropy,
}


def add_weight_decay(model: tf.keras.Model, weight_decay: float, decays: str = "kernels") -> None:
    """Adds weight_decay x (sum of squares) / 2 of the weights that decay to the model's loss.

    Args:
      model: not yet compiled.
      weight_decay: 0 adds nothing.
      decays: "kernels": convolution and dense kernels, as the TensorFlow seeds defined it; "all":
        every trained weight, as the PyTorch seeds' optimizer had it.
    """
    weights = [w for w in model.trainable_variables if decays == "all" or w.shape.rank > 1]
    if weight_decay:
        model.add_loss(lambda: weight_decay * tf.add_n([tf.nn.l2_loss(w) for w in weights]))
