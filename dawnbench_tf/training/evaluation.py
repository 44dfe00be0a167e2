"""Evaluation: scores over the whole test set, each example once, under any strategy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import terminal
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.recipe import Images
from dawnbench_tf.training import averages

BATCH = 500  # size of the global batch; rounded up to a multiple of the number of replicas


class Evaluator:
    """A callable that evaluates a model and returns {column: score} over the test set.

    It uses the moving averages of the weights, if the recipe has them (`average`), and the mean
    logits of the recipe's test-time augmentation (`test_views`). `answers` keeps the last answers.
    """

    def __init__(self, data: Data, model: tf.keras.Model):
        strategy = data.placement.strategy
        replicas = strategy.num_replicas_in_sync
        most = min(BATCH, data.recipe.task_row.test_examples or BATCH)
        self._batch_size = -(-most // replicas) * replicas
        self._data, self._model = data, model
        self.answers: Any = None
        self._alike = 0  # evaluations in a row that gave all images one class
        self._batches = data.test_batches(self._batch_size)
        with strategy.scope():
            with_views = data.with_views(model)
        order = _gathered_order(strategy)
        # Lengths of texts vary: for a signature one trace takes all. A TPU needs one for each.
        one = replicas == 1 and not isinstance(strategy, tf.distribute.TPUStrategy)
        spec = self._batches.element_spec if one else None
        self._forward = _forward(data, with_views, order, spec)
        self._forward_once = _forward(data, model, order, spec)  # without test-time augmentation

    def __call__(self) -> dict[str, float]:
        form = self._data.recipe.data
        selects = isinstance(form, Images) and form.views_share < 1
        with averages.use_averages(self._model, self._data.placement.strategy):
            forward = self._forward_once if selects else self._forward
            outputs = [forward(batch).numpy() for batch in self._batches]
            self.answers = self._data.collect(outputs, self._batch_size)
            if selects:
                indices, unsure = self._data.unsure(self.answers)
                batches = unsure.test_batches(self._batch_size)
                outputs = [self._forward(batch).numpy() for batch in batches]
                self.answers[indices] = unsure.collect(outputs, self._batch_size)
        if self._data.recipe.whole_task.is_own and self._data.recipe.task_row.inputs == "images":
            classes = self.answers.argmax(1)
            self._alike = self._alike + 1 if (classes == classes[0]).all() else 0
            if self._alike == 2:
                text = "two evaluations in a row gave every test image the same class: the network"
                text += " has learnt nothing yet; if it stays so, try a lower --learning_rate"
                terminal.say(text)
        return self._data.score(self.answers)


def _forward(
    data: Data, model: tf.keras.Model, order: np.ndarray, spec: Any = None
) -> Callable[[Any], tf.Tensor]:
    """Returns a function from a batch of `data.test_batches` to the outputs of `model` for it."""
    strategy = data.placement.strategy

    def answer(batch: Any) -> tf.Tensor:
        return model(data.prepare(batch), training=False)

    signature = None if spec is None else [spec]

    @tf.function(reduce_retracing=True, autograph=False, input_signature=signature)
    def forward(batch: Any) -> tf.Tensor:
        outputs = strategy.gather(strategy.run(answer, args=(batch,)), axis=0)
        if (order[1:] > order[:-1]).all():
            return outputs
        sizes = tf.shape(outputs)
        parts = tf.reshape(outputs, tf.concat([[len(order), -1], sizes[1:]], 0))
        return tf.reshape(tf.gather(parts, np.argsort(order)), sizes)

    # TensorFlow counts the functions of several runs as one that is retraced, and warns.
    forward._omit_frequent_tracing_warning = True
    return forward


def _gathered_order(strategy: tf.distribute.Strategy) -> np.ndarray:
    """Returns the numbers of the replicas in the order in which `gather` puts them together."""
    # TensorFlow orders workers by their names, in which worker 10 comes before worker 2.
    if strategy.num_replicas_in_sync == 1:
        return np.zeros(1, np.int32)

    def own() -> tf.Tensor:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.reshape(tf.cast(number, tf.int32), [1])

    gathered = tf.function(lambda: strategy.gather(strategy.run(own), axis=0), autograph=False)
    return np.asarray(gathered())
