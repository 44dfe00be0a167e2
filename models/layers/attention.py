"""Readers' own layers in which tokens see one another.

Masks are boolean, (batch, tokens), true where a token is. Axis names: batch, context (tokens of the
passage), question, width.
"""

import tensorflow as tf

from .dropout import Dropout
from .text import NEVER, no_mask

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")


def _softmax(logits, mask):
    """Over the last axis, where the mask is true; both (batch, tokens)."""
    logits = tf.where(mask, tf.cast(logits, tf.float32), NEVER)
    return tf.nn.softmax(tf.reshape(logits, tf.shape(mask)))  # else the optimizer misses the rank


def _average(logits, x, mask):
    """x (batch, tokens, width) by the softmax of logits (batch, tokens, 1): (batch, 1, width)."""
    shares = tf.cast(_softmax(logits[..., 0], mask), x.dtype)
    return tf.matmul(shares[:, None, :], x)


def _parts(layer, width, fan_in):
    """The weights of `_trilinear`, (3, width)."""
    limit = (6 / (fan_in + 1)) ** 0.5
    start = tf.keras.initializers.RandomUniform(-limit, limit)
    return layer.add_weight(name="w", shape=(3, width), initializer=start)


def _trilinear(h, u, parts):
    """w . [h; u; h * u] of each pair of tokens, w in three parts: (batch, context, question)."""
    of_h, of_u, of_both = tf.unstack(tf.cast(parts, h.dtype))
    similarity = tf.matmul(h * of_both, u, transpose_b=True)
    similarity += tf.reduce_sum(h * of_h, -1)[:, :, None]
    return similarity + tf.reduce_sum(u * of_u, -1)[:, None, :]


@_register
class BidirectionalAttention(tf.keras.layers.Layer):
    """BiDAF's attention flow (Seo et al. 2016, section 2, layer 4).

    Inputs: [h, u, mask of h, mask of u], h (batch, context, width), u (batch, question, width).
    Output: [h; u~; h * u~; h * h~], (batch, context, 4 width): u~ is the question as each token of
    the context attends to it, h~ the context as the question attends to it. The similarity
    w . [h; u; h * u] + b is summed part by part, so that no tensor of (batch, context, question,
    width) is ever made.
    """

    supports_masking, compute_mask = True, no_mask

    def build(self, input_shape):
        """Makes w, in its three parts, and b."""
        width = input_shape[0][-1]
        self.parts = _parts(self, width, 3 * width)  # Glorot's, of the vector that they make up
        self.bias = self.add_weight(name="b", shape=(), initializer="zeros")
        self.built = True

    def call(self, inputs):
        h, u, h_mask, u_mask = inputs
        similarity = _trilinear(h, u, self.parts) + tf.cast(self.bias, h.dtype)
        similarity = tf.where(u_mask[:, None, :], tf.cast(similarity, tf.float32), NEVER)
        sizes = [tf.shape(u_mask)[0], tf.shape(h_mask)[1], tf.shape(u_mask)[1]]
        to_question = tf.cast(tf.nn.softmax(tf.reshape(similarity, sizes)), h.dtype)
        attended_question = tf.matmul(to_question, u)  # u~: (batch, context, width)
        to_context = tf.cast(_softmax(tf.reduce_max(similarity, -1), h_mask), h.dtype)
        attended_context = tf.matmul(to_context[:, None, :], h)  # h~: (batch, 1, width)
        return tf.concat([h, attended_question, h * attended_question, h * attended_context], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], 4 * input_shape[0][-1])


@_register
class Coattention(tf.keras.layers.Layer):
    """QANet's attention, which is that of dynamic coattention networks (Xiong et al. 2016).

    Inputs: [c, q, mask of c, mask of q], c (batch, context, width), q (batch, question, width).
    Output: [c; a; c * a; c * b], (batch, context, 4 width): a is the question as each token of the
    context attends to it; b the context as the question attends to it, attended to in turn.
    """

    supports_masking, compute_mask = True, no_mask

    def build(self, input_shape):
        """Makes the similarity's weights."""
        width = input_shape[0][-1]
        self.parts = _parts(self, width, width)
        self.built = True

    def call(self, inputs):
        c, q, c_mask, q_mask = inputs
        similarity = tf.cast(_trilinear(c, q, self.parts), tf.float32)
        to_question = tf.nn.softmax(tf.where(q_mask[:, None, :], similarity, NEVER), 2)
        to_context = tf.nn.softmax(tf.where(c_mask[:, :, None], similarity, NEVER), 1)
        to_question, to_context = (tf.cast(x, c.dtype) for x in (to_question, to_context))
        a = tf.matmul(to_question, q)
        b = tf.matmul(to_question, tf.matmul(to_context, c, transpose_a=True))
        return tf.concat([c, a, c * a, c * b], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], 4 * input_shape[0][-1])


@_register
class AlignedQuestion(tf.keras.layers.Layer):
    """What each token of the context sees of the question (Chen et al. 2017, section 3.2).

    Inputs: [projections of c and of q, both (batch, tokens, width), q (batch, question, any width),
    mask of q]. Output: q averaged by the softmax of the projections' products, (batch, context, any
    width).
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        of_c, of_q, q, q_mask = inputs
        products = tf.cast(tf.matmul(of_c, of_q, transpose_b=True), tf.float32)
        shares = tf.nn.softmax(tf.where(q_mask[:, None, :], products, NEVER))
        return tf.matmul(tf.cast(shares, q.dtype), q)

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], input_shape[2][-1])


@_register
class AttentionPooling(tf.keras.layers.Layer):
    """[logits (batch, tokens, 1), x (batch, tokens, width), mask] to x's average, (batch, width).

    Tokens count by the softmax of their logits.
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        return _average(*inputs)[:, 0]

    def compute_output_shape(self, input_shape):
        return (input_shape[1][0], input_shape[1][-1])


@_register
class StartAttention(tf.keras.layers.Layer):
    """What the answer's likely start says of each token (BiDAF's seed; not in the paper).

    Inputs: [start logits (batch, context, 1), m (batch, context, width), mask]. Output: [a; m * a],
    (batch, context, 2 width), where a is m averaged by the start's probability.
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        _, m, _ = inputs
        a = _average(*inputs)  # (batch, 1, width)
        return tf.concat([tf.broadcast_to(a, tf.shape(m)), m * a], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[1][:2], 2 * input_shape[1][-1])


def _by_head(x, heads):
    """(batch, tokens, width) to (batch, heads, tokens, width of one)."""
    sizes = tf.unstack(tf.shape(x)[:2])
    return tf.transpose(tf.reshape(x, [*sizes, heads, x.shape[-1] // heads]), [0, 2, 1, 3])


def _joined(x):
    """(batch, heads, tokens, width of one) to (batch, tokens, width)."""
    batch, _, tokens, _ = tf.unstack(tf.shape(x))
    width = x.shape[1] * x.shape[3]
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [batch, tokens, width])


@_register
class ScaledDotProductAttention(tf.keras.layers.Layer):
    """Attention of several heads (Vaswani et al. 2017, section 3.2), without weights of its own.

    Inputs: [queries, keys, values, all (batch, tokens, width), mask]. Output: values averaged, in
    each head's part, by the softmax of products over the root of a head's width; (batch, tokens,
    width).

    Args:
      heads: they divide the width.
      dropout: share of the softmax that is dropped in training.
    """

    supports_masking, compute_mask = True, no_mask

    def __init__(self, heads, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.heads, self.dropout = heads, dropout
        self.drop = Dropout(dropout, dtype=self.dtype_policy)

    def call(self, inputs, training=False):
        queries, keys, values = (_by_head(x, self.heads) for x in inputs[:3])
        queries = queries * tf.cast(queries.shape[-1] ** -0.5, queries.dtype)
        products = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
        shares = tf.nn.softmax(tf.where(inputs[3][:, None, None, :], products, NEVER))
        shares = self.drop(tf.cast(shares, values.dtype), training=training)
        return _joined(tf.matmul(shares, values))

    def compute_output_shape(self, input_shape):
        return input_shape[2]

    def get_config(self):
        return {**super().get_config(), "heads": self.heads, "dropout": self.dropout}


@_register
class MultiLevelAttention(tf.keras.layers.Layer):
    """Fully-aware attention of several levels (Huang et al. 2018, arXiv 1711.07341, section 3.1).

    Inputs: [keys of c and of q, both (batch, tokens, any width), values of q (batch, question,
    width), mask of q]. Each level has its part of keys and of values, side by side. Output: at each
    level values averaged by the softmax of the product key of c x D x key of q, D a trained
    diagonal: (batch, context, width).

    Args:
      levels: how many; they divide the widths.
    """

    supports_masking, compute_mask = True, no_mask

    def __init__(self, levels, **kwargs):
        super().__init__(**kwargs)
        self.levels = levels

    def build(self, input_shape):
        """Makes the diagonals."""
        width = input_shape[0][-1]
        self.diagonal = self.add_weight(name="diagonal", shape=(width,), initializer="ones")
        self.built = True

    def call(self, inputs):
        of_c, of_q, values, q_mask = inputs
        of_q = of_q * tf.cast(self.diagonal, of_q.dtype)
        of_c, of_q, values = (_by_head(x, self.levels) for x in (of_c, of_q, values))
        scores = tf.cast(tf.matmul(of_c, of_q, transpose_b=True), tf.float32)
        shares = tf.nn.softmax(tf.where(q_mask[:, None, None, :], scores, NEVER))
        return _joined(tf.matmul(tf.cast(shares, values.dtype), values))

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], input_shape[2][-1])

    def get_config(self):
        return {**super().get_config(), "levels": self.levels}
