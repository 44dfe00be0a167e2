"""Selection of the examples of each step: the hardest by their last loss, or by a proxy's.

`Hardest`: Loshchilov & Hutter 2015, "Online Batch Selection for Faster Training of Neural Networks"
(arXiv 1511.06343), rank all examples by the loss that was last computed for them. Here the examples
of one batch are ranked, and no loss is computed for the ranking alone: those that are left out cost
nothing, not even their augmentation.

`Proxy`: Jordan 2024 (airbench96_faster.py of cifar10-airbench): a small network computes the losses
of a batch, and the model trains on the examples whose loss is largest. The proxy trains on the same
examples in every few steps. It sees the augmented images that the model is trained on.
"""

from dataclasses import replace
from typing import Any

import tensorflow as tf

from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.recipe import Average, Network
from dawnbench_tf.training import losses, optimizers


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
        """Returns the `hardest` examples of a batch, indices first, by their last losses."""
        # Those that were never trained on come first; of equal losses, the first in the batch.
        indices = tf.cast(batch[0], tf.int64)  # GPU kernels copy int32 to the host
        ranked = tf.gather(self.last, indices)
        chosen = tf.math.top_k(ranked, min(self.count, indices.shape[0])).indices
        parts = tf.nest.map_structure(lambda part: tf.gather(part, chosen), (indices, *batch[1:]))
        self._chosen = parts[0]
        return parts

    def record(self, labels: tf.Tensor, logits: tf.Tensor) -> None:
        """Keeps the losses of the examples that `select` returned, in the same step."""
        chosen, self._chosen = self._chosen, None
        if chosen is not None:  # else `evaluate`, of a callback, computes a loss
            each = tf.cast(self._loss.call(labels, logits), tf.float32)
            self.last.scatter_update(tf.IndexedSlices(each, chosen))


class Proxy(tf.train.Checkpoint):
    """The recipe's proxy, with its own optimizer; checkpoints of a model that has it include it.

    It trains with the recipe's optimizer and schedule, without averages.
    """

    def __init__(self, data: ImageData, restored: bool = False):
        settings = data.recipe.data
        optimizer = replace(data.recipe.optimizer, backbone_rate=1.0, layer_rate_decay=1.0)
        recipe = replace(data.recipe, model=settings.proxy, network=Network(), average=Average())
        recipe = replace(recipe, optimizer=optimizer)
        own = replace(data, recipe=recipe)
        network = own.network()
        if not restored:
            own.adapt(network)
        losses.add_weight_decay(network, recipe)
        optimizer = optimizers.build(recipe, data.epoch_steps, network)
        optimizer.build(network.trainable_variables)
        super().__init__(network=network, optimizer=optimizer)
        self.share, self.every = settings.proxy_share, settings.proxy_every
        self._loss: tf.keras.losses.Loss = losses.make_loss(own)

    def select(
        self, images: tf.Tensor, labels: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the images and labels with the largest losses, `proxy_share` of the batch."""
        # It also trains the proxy, in step 0 and each `proxy_every` steps.
        count = max(1, round(images.shape[0] * self.share))

        def largest(losses: tf.Tensor) -> tf.Tensor:  # int64: tf.cond copies int32 to the host
            return tf.cast(tf.math.top_k(losses, count).indices, tf.int64)

        def choose() -> tf.Tensor:
            return largest(self._losses(images, labels))

        def train() -> tf.Tensor:
            weights = self.network.trainable_variables
            with tf.GradientTape() as tape:
                each = self._losses(images, labels)
                chosen = largest(each)
                loss = tf.reduce_mean(tf.gather(each, chosen))
                for penalty in self.network.losses:
                    loss += tf.cast(penalty, loss.dtype)
            self.optimizer.iterations.assign(step)  # for the schedule
            self.optimizer.minimize(loss, weights, tape=tape)
            return chosen

        chosen = tf.cond(step % self.every == 0, train, choose)
        return tf.gather(images, chosen), tf.gather(labels, chosen)

    def _losses(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return self._loss.call(labels, self.network(images, training=True))
