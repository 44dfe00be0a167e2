"""Selection of examples by their last loss: each step trains on the hardest of its batch.

Loshchilov & Hutter 2015, "Online Batch Selection for Faster Training of Neural Networks" (arXiv
1511.06343), rank all examples by the loss that was last computed for them. Here the examples of one
batch are ranked, and no loss is computed for the ranking alone: those that are left out cost
nothing, not even their augmentation.
"""

from typing import Any

import tensorflow as tf

from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.training import losses


class Hardest(tf.train.Checkpoint):
    """The last loss of each training example; checkpoints of a model that has it include it."""

    def __init__(self, data: ImageData):
        examples = len(data.splits.train.labels)
        last = tf.Variable(tf.fill([examples], float("inf")), trainable=False, name="last_losses")
        super().__init__(last=last)
        self.count = data.recipe.data.hardest
        self._loss: tf.keras.losses.Loss = losses.make_loss(data)
        self._chosen: tf.Tensor | None = None  # of the step that is being traced

    def select(self, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the `hardest` examples of a batch, indices first, whose last losses are largest.

        Those that were never trained on come first; of equal losses, the first in the batch.
        """
        indices = tf.cast(batch[0], tf.int64)  # GPU kernels copy int32 to the host
        ranked = tf.gather(self.last, indices)
        chosen = tf.math.top_k(ranked, min(self.count, indices.shape[0])).indices
        parts = tf.nest.map_structure(lambda part: tf.gather(part, chosen), (indices, *batch[1:]))
        self._chosen = parts[0]
        return parts

    def record(self, labels: tf.Tensor, logits: tf.Tensor) -> None:
        """Keeps the losses of the examples that `select` returned, in the same step."""
        each = tf.cast(self._loss.call(labels, logits), tf.float32)
        self.last.scatter_update(tf.IndexedSlices(each, self._chosen))
