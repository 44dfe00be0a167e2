"""Readers' own layers: vectors by id, highway, attention both ways, and what makes a span.

Masks are boolean, (batch, tokens), true where a token is. Axis names: batch, context (tokens of the
passage), question, width. Layers that get a mask as an input hand none on to Keras: they set
`supports_masking` and return None from `compute_mask`.
"""

import math

import tensorflow as tf

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
NEVER = -1e30  # logit of what can't be


def _softmax(logits, mask):
    """Over the last axis, where the mask is true; both (batch, tokens)."""
    logits = tf.where(mask, tf.cast(logits, tf.float32), NEVER)
    return tf.nn.softmax(tf.reshape(logits, tf.shape(mask)))  # else the optimizer misses the rank


def _no_mask(self, inputs, previous_mask=None):
    """Keras's `compute_mask` of layers that get masks as inputs: they hand none on."""


@_register
class IsWord(tf.keras.layers.Layer):
    """The mask of token ids (batch, tokens): true where the id is not 0, padding."""

    def call(self, ids):
        return tf.not_equal(ids, 0)


@_register
class Vectors(tf.keras.layers.Layer):
    """Vectors by id: ids (...) to vectors (..., width). Some are trained, some stay as they are.

    Args:
      trained: ids, from 0 on, whose vectors are trained.
      fixed: ids, after those, whose vectors stay as they are; zeros until `set_fixed`.
      width: of a vector.
      initializer: of the trained ones.
    """

    def __init__(self, trained, fixed, width, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.trained, self.fixed, self.width = trained, fixed, width
        self.initializer = tf.keras.initializers.get(initializer)

    def build(self, input_shape):
        """Makes the table of trained vectors, and that of the fixed ones."""
        self.table = self.add_weight(
            name="trained", shape=(self.trained, self.width), initializer=self.initializer
        )
        if self.fixed:
            self.given = self.add_weight(  # checkpoints know it by this name
                name="fixed", shape=(self.fixed, self.width), initializer="zeros", trainable=False
            )
        self.built = True

    def set_fixed(self, vectors: tf.Tensor) -> None:
        """Sets the fixed vectors, (fixed, width)."""
        if self.fixed:
            self.given.assign(vectors)

    def set_last_trained(self, vectors: tf.Tensor) -> None:
        """Sets the last of the trained vectors, (some, width): what these start from."""
        if len(vectors):
            first = self.table[: self.trained - len(vectors)]
            self.table.assign(tf.concat([first, tf.cast(vectors, first.dtype)], 0))

    def call(self, ids):
        # The product makes the gradient dense: XLA knows no size that depends on values.
        table = tf.convert_to_tensor(self.table) * 1.0
        vectors = tf.gather(table, tf.minimum(ids, self.trained - 1))
        if self.fixed:
            fixed = tf.convert_to_tensor(self.given)
            fixed = tf.gather(fixed, tf.maximum(ids - self.trained, 0))
            vectors = tf.where((ids < self.trained)[..., None], vectors, fixed)
        return tf.cast(vectors, self.compute_dtype)

    def get_config(self):
        own = {"trained": self.trained, "fixed": self.fixed, "width": self.width}
        initializer = tf.keras.initializers.serialize(self.initializer)
        return {**super().get_config(), **own, "initializer": initializer}


@_register
class Highway(tf.keras.layers.Layer):
    """gate * relu(W x + b) + (1 - gate) * x, gate = sigmoid(V x + c). (Srivastava et al. 2015.)"""

    supports_masking, compute_mask = True, _no_mask

    def build(self, input_shape):
        """Makes both matrices and biases, of the input's own width."""
        width = input_shape[-1]
        for name in ("transform", "gate"):
            kernel = self.add_weight(
                name=f"{name}_kernel", shape=(width, width), initializer="glorot_uniform"
            )
            bias = self.add_weight(name=f"{name}_bias", shape=(width,), initializer="zeros")
            setattr(self, name, [kernel, bias])
        self.built = True

    def call(self, x):
        def linear(weights):
            kernel, bias = (tf.cast(weight, x.dtype) for weight in weights)
            return tf.tensordot(x, kernel, 1) + bias

        gate = tf.sigmoid(linear(self.gate))
        return gate * tf.nn.relu(linear(self.transform)) + (1 - gate) * x


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

    supports_masking, compute_mask = True, _no_mask

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

    supports_masking, compute_mask = True, _no_mask

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
class Timing(tf.keras.layers.Layer):
    """Adds to x (batch, tokens, width) sines, then cosines, of the tokens' places.

    (Vaswani et al. 2017, arXiv 1706.03762; wavelengths from 2 pi to 10,000 x 2 pi, as tensor2tensor
    has them: the sines in the first half of the width.)
    """

    supports_masking = True

    def call(self, x):
        scales = x.shape[-1] // 2
        falls = tf.exp(-tf.range(scales, dtype=tf.float32) * (math.log(1e4) / max(scales - 1, 1)))
        angles = tf.range(tf.shape(x)[1], dtype=tf.float32)[:, None] * falls  # (tokens, scales)
        signal = tf.concat([tf.sin(angles), tf.cos(angles)], 1)
        return x + tf.cast(tf.pad(signal, [[0, 0], [0, x.shape[-1] % 2]]), x.dtype)


@_register
class OnlyWords(tf.keras.layers.Layer):
    """[x (batch, tokens, width), mask] to x, zeros where no token is."""

    supports_masking, compute_mask = True, _no_mask

    def call(self, inputs):
        x, mask = inputs
        return x * tf.cast(mask, x.dtype)[..., None]

    def compute_output_shape(self, input_shape):
        return input_shape[0]


@_register
class Weighted(tf.keras.layers.Layer):
    """What the answer's likely start says of each token (BiDAF's seed; not in the paper).

    Inputs: [start logits (batch, context, 1), m (batch, context, width), mask]. Output: [a; m * a],
    (batch, context, 2 width), where a is m averaged by the start's probability.
    """

    supports_masking, compute_mask = True, _no_mask

    def call(self, inputs):
        start, m, mask = inputs
        probability = tf.cast(_softmax(start[..., 0], mask), m.dtype)
        a = tf.matmul(probability[:, None, :], m)  # (batch, 1, width)
        return tf.concat([tf.broadcast_to(a, tf.shape(m)), m * a], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[1][:2], 2 * input_shape[1][-1])


@_register
class SpanLogits(tf.keras.layers.Layer):
    """Logits of an answer's first and last token, side by side.

    Inputs: [start logits, end logits, both (batch, context, 1), mask]. Output: float32
    (batch, 2, context), -1e30 in padding.
    """

    supports_masking, compute_mask = True, _no_mask

    def call(self, inputs):
        start, end, mask = inputs
        both = tf.stack([start[..., 0], end[..., 0]], 1)
        return tf.where(mask[:, None, :], tf.cast(both, tf.float32), NEVER)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], 2, input_shape[0][1])
