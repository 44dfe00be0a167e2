"""Attention layers of readers: context-question attention, self-attention, attention pooling.

Axis names: batch; context, the tokens of the passage; question, the tokens of the question; width,
the channels. Masks are boolean, (batch, tokens), true for tokens and false for padding.
"""

from typing import Any

import tensorflow as tf

from .. import checks
from .broadcast import multiply, widen
from .dropout import Dropout
from .registration import register
from .text import NEVER, Unmasked


def _softmax(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Softmax of logits (batch, tokens) over the tokens for which mask (batch, tokens) is true."""
    logits = tf.where(mask, widen(logits), NEVER)
    # Without the reshape TensorFlow's graph optimizer does not know the rank.
    return tf.nn.softmax(tf.reshape(logits, tf.shape(mask)))


def _average(logits: tf.Tensor, x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Averages x (batch, tokens, width) by the softmax of logits (batch, tokens, 1) over tokens."""
    # Returns (batch, 1, width).
    weights = tf.cast(_softmax(logits[..., 0], mask), x.dtype)
    return tf.matmul(weights[:, None, :], x)


def _add_trilinear_weights(layer: tf.keras.layers.Layer, width: int, fan_in: int) -> tf.Variable:
    """Adds the weights w of `_trilinear` to a layer, (3, width), Glorot-uniform for `fan_in`."""
    limit = (6 / (fan_in + 1)) ** 0.5
    initializer = tf.keras.initializers.RandomUniform(-limit, limit)
    return layer.add_weight(name="w", shape=(3, width), initializer=initializer)


def _trilinear(h: tf.Tensor, u: tf.Tensor, parts: tf.Variable) -> tf.Tensor:
    """Similarity w . [h; u; h * u] of each pair of tokens: (batch, context, question)."""
    # 16-bit inputs give float32. `parts` (3, width) are the parts of w for h, u and h * u. The
    # terms are summed one by one, so that no tensor (batch, context, question, width) exists.
    h_weights, u_weights, product_weights = tf.unstack(parts)
    similarity = widen(tf.matmul(multiply(h, product_weights), u, transpose_b=True))
    similarity += tf.reduce_sum(widen(multiply(h, h_weights)), -1)[:, :, None]
    return similarity + tf.reduce_sum(widen(multiply(u, u_weights)), -1)[:, None, :]


@register
class BidirectionalAttention(Unmasked):
    """BiDAF's attention flow (Seo et al. 2016, section 2, layer 4).

    Inputs: [h, u, mask of h, mask of u]; h is the context (batch, context, width), u the question
    (batch, question, width).
    Output: [h; u~; h * u~; h * h~], (batch, context, 4 width). u~ is the question averaged by each
    context token's attention, h~ the context averaged by the question's attention.
    The similarity of two tokens is w . [h; u; h * u] + b.
    """

    def build(self, input_shape: Any) -> None:
        width = input_shape[0][-1]
        self.parts = _add_trilinear_weights(self, width, 3 * width)  # w is one vector of 3 width
        self.bias = self.add_weight(name="b", shape=(), initializer="zeros")
        self.built = True

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        h, u, h_mask, u_mask = inputs
        similarity = _trilinear(h, u, self.parts)
        similarity += tf.cast(self.bias, similarity.dtype)
        similarity = tf.where(u_mask[:, None, :], similarity, NEVER)
        sizes = [tf.shape(u_mask)[0], tf.shape(h_mask)[1], tf.shape(u_mask)[1]]
        to_question = tf.cast(tf.nn.softmax(tf.reshape(similarity, sizes)), h.dtype)
        attended_question = tf.matmul(to_question, u)  # u~: (batch, context, width)
        to_context = tf.cast(_softmax(tf.reduce_max(similarity, -1), h_mask), h.dtype)
        attended_context = tf.matmul(to_context[:, None, :], h)  # h~: (batch, 1, width)
        attended = [attended_question, h * attended_question, multiply(h, attended_context)]
        return tf.concat([h, *attended], -1)


@register
class Coattention(Unmasked):
    """QANet's context-question attention: dynamic coattention (Xiong et al. 2016).

    Inputs: [c, q, mask of c, mask of q]; c is the context (batch, context, width), q the question
    (batch, question, width).
    Output: [c; a; c * a; c * b], (batch, context, 4 width). a is the question averaged by each
    context token's attention. b is the context averaged by each question token's attention, and
    these averages averaged by each context token's attention.
    """

    def build(self, input_shape: Any) -> None:
        width = input_shape[0][-1]
        self.parts = _add_trilinear_weights(self, width, width)
        self.built = True

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        c, q, c_mask, q_mask = inputs
        similarity = _trilinear(c, q, self.parts)
        to_question = tf.nn.softmax(tf.where(q_mask[:, None, :], similarity, NEVER), 2)
        to_context = tf.nn.softmax(tf.where(c_mask[:, :, None], similarity, NEVER), 1)
        to_question, to_context = (tf.cast(x, c.dtype) for x in (to_question, to_context))
        a = tf.matmul(to_question, q)
        b = tf.matmul(to_question, tf.matmul(to_context, c, transpose_a=True))
        return tf.concat([c, a, c * a, c * b], -1)


@register
class AttentionPooling(Unmasked):
    """Attention pooling: the average of a text's tokens by the softmax of their logits.

    Inputs: [logits (batch, tokens, 1), x (batch, tokens, width), mask]. Output: (batch, width).
    """

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        return _average(*inputs)[:, 0]


@register
class StartAttention(Unmasked):
    """Features of the predicted answer start, for predicting its end (BiDAF's seed, not its paper).

    Inputs: [start logits (batch, context, 1), m (batch, context, width), mask].
    Output: [a; m * a], (batch, context, 2 width); a is m averaged by the start's probability.
    """

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        _, m, _ = inputs
        a = _average(*inputs)  # (batch, 1, width)
        repeated = tf.broadcast_to(widen(a), tf.shape(m))  # whose gradient is a sum over the tokens
        return tf.concat([tf.cast(repeated, m.dtype), multiply(m, a)], -1)


def _split_heads(x: tf.Tensor, heads: int) -> tf.Tensor:
    """Reshapes (batch, tokens, width) to (batch, heads, tokens, width / heads)."""
    sizes = tf.unstack(tf.shape(x)[:2])
    return tf.transpose(tf.reshape(x, [*sizes, heads, x.shape[-1] // heads]), [0, 2, 1, 3])


@register
class DotProductAttention(Unmasked):
    """Multi-head dot-product attention, without projections.

    Inputs: [queries (batch, tokens, width), keys (batch, other tokens, width), values (batch, other
    tokens, value width), mask of keys]. The channels are those of head 1, then of head 2, ...
    Output: in each head softmax(queries x D x keys^T) values, (batch, tokens, value width).

    Args:
      heads: number of heads, a divisor of both widths.
      scale: D. "root": 1 / sqrt(width / heads) (Vaswani et al. 2017, section 3.2). "one": 1, as in
        the aligned question embedding (Chen et al. 2017, section 3.2). "trained": a trained
        diagonal matrix (Huang et al. 2018, arXiv 1711.07341, section 3.1; heads are its levels).
      dropout: share of the attention weights that training drops, in [0, 1).
    """

    def __init__(
        self, heads: int = 1, scale: str = "root", dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        checks.one_of(("root", "one", "trained"), scale=scale)
        self.heads, self.scale, self.dropout = heads, scale, dropout
        self.drop = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        if self.scale == "trained":
            width = input_shape[0][-1]
            self.diagonal = self.add_weight(name="diagonal", shape=(width,), initializer="ones")
        self.built = True

    def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
        queries, keys, values, mask = inputs
        shape = tf.stack([*tf.unstack(tf.shape(queries)[:2]), values.shape[-1]])
        keys = multiply(keys, self.diagonal) if self.scale == "trained" else keys
        queries, keys, values = (_split_heads(x, self.heads) for x in (queries, keys, values))
        if self.scale == "root":
            queries = queries * tf.cast(queries.shape[-1] ** -0.5, queries.dtype)
        scores = widen(tf.matmul(queries, keys, transpose_b=True))
        weights = tf.nn.softmax(tf.where(mask[:, None, None, :], scores, NEVER))
        weights = self.drop(tf.cast(weights, values.dtype), training=training)
        return tf.reshape(tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3]), shape)
