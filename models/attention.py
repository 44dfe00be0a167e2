"""The reader's own layers: vectors by number, highway, attention both ways, and what makes a span.

Masks are boolean, (batch, words), true where a word is; axis names as in `readers.py`.
"""

import tensorflow as tf

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
NEVER = -1e30  # logit of what can't be


def _softmax(logits, mask):
    """Over the last axis, where the mask is true; both (batch, words)."""
    logits = tf.where(mask, tf.cast(logits, tf.float32), NEVER)
    return tf.nn.softmax(tf.reshape(logits, tf.shape(mask)))  # else the optimizer misses the rank


class _TakesMasks(tf.keras.layers.Layer):
    """A layer that gets its masks as inputs, and hands none on."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, inputs, previous_mask=None):
        return None


@_register
class IsWord(tf.keras.layers.Layer):
    """The mask of numbers of words: true where the number is not 0."""

    def call(self, words):
        return tf.not_equal(words, 0)


@_register
class Vectors(tf.keras.layers.Layer):
    """Vectors by number: of the first `trained` they are trained, of the next `fixed` given.

    Args:
      trained, fixed: how many.
      width: of a vector.
      initializer: of the trained ones; the given ones are zeros until `set_fixed`.
    """

    def __init__(self, trained, fixed, width, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.trained, self.fixed, self.width = trained, fixed, width
        self.initializer = tf.keras.initializers.get(initializer)

    def build(self, input_shape):
        """Makes the table of trained vectors, and that of the given ones."""
        self.table = self.add_weight(
            name="trained", shape=(self.trained, self.width), initializer=self.initializer
        )
        if self.fixed:
            self.given = self.add_weight(
                name="fixed", shape=(self.fixed, self.width), initializer="zeros", trainable=False
            )
        self.built = True

    def set_fixed(self, vectors):
        """Sets the given vectors, (fixed, width)."""
        if self.fixed:
            self.given.assign(vectors)

    def call(self, numbers):
        # The product makes the gradient dense: XLA knows no size that depends on values.
        table = tf.convert_to_tensor(self.table) * 1.0
        vectors = tf.gather(table, tf.minimum(numbers, self.trained - 1))
        if self.fixed:
            given = tf.convert_to_tensor(self.given)
            given = tf.gather(given, tf.maximum(numbers - self.trained, 0))
            vectors = tf.where((numbers < self.trained)[..., None], vectors, given)
        return tf.cast(vectors, self.compute_dtype)

    def get_config(self):
        own = {"trained": self.trained, "fixed": self.fixed, "width": self.width}
        initializer = tf.keras.initializers.serialize(self.initializer)
        return {**super().get_config(), **own, "initializer": initializer}


@_register
class Highway(_TakesMasks):
    """gate * relu(W x + b) + (1 - gate) * x, gate = sigmoid(V x + c). (Srivastava et al. 2015.)"""

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


@_register
class BidirectionalAttention(_TakesMasks):
    """Passage and question to what each word of the passage knows of the question.

    [h, u, masks of both] to [h; u~; h * u~; h * h~], (batch, context, 4 width): u~ is the question
    as each word of the passage attends to it, h~ the passage as the question attends to it.
    The similarity w . [h; u; h * u] + b is summed part by part, so that no tensor of (batch,
    context, question, width) is ever made.
    """

    def build(self, input_shape):
        """Makes w, in its three parts, and b."""
        width = input_shape[0][-1]
        self.parts = self.add_weight(name="w", shape=(3, width), initializer="glorot_uniform")
        self.bias = self.add_weight(name="b", shape=(), initializer="zeros")
        self.built = True

    def call(self, inputs):
        h, u, h_mask, u_mask = inputs
        of_h, of_u, of_both = tf.unstack(tf.cast(self.parts, h.dtype))
        similarity = tf.matmul(h * of_both, u, transpose_b=True)  # (batch, context, question)
        similarity += tf.reduce_sum(h * of_h, -1)[:, :, None]
        similarity += tf.reduce_sum(u * of_u, -1)[:, None, :] + tf.cast(self.bias, h.dtype)
        similarity = tf.where(u_mask[:, None, :], tf.cast(similarity, tf.float32), NEVER)
        sizes = [tf.shape(u_mask)[0], tf.shape(h_mask)[1], tf.shape(u_mask)[1]]
        to_question = tf.cast(tf.nn.softmax(tf.reshape(similarity, sizes)), h.dtype)
        asked = tf.matmul(to_question, u)  # u~: (batch, context, width)
        to_context = tf.cast(_softmax(tf.reduce_max(similarity, -1), h_mask), h.dtype)
        told = tf.matmul(to_context[:, None, :], h)  # h~: (batch, 1, width)
        return tf.concat([h, asked, h * asked, h * told], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], 4 * input_shape[0][-1])


@_register
class Weighted(_TakesMasks):
    """[start logits, m, mask] to [a; m * a], where a is m averaged by the start's probability."""

    def call(self, inputs):
        start, m, mask = inputs
        probability = tf.cast(_softmax(start[..., 0], mask), m.dtype)
        a = tf.matmul(probability[:, None, :], m)  # (batch, 1, width)
        return tf.concat([tf.broadcast_to(a, tf.shape(m)), m * a], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[1][:2], 2 * input_shape[1][-1])


@_register
class SpanLogits(_TakesMasks):
    """[start logits, end logits, mask] to float32 logits (batch, 2, context), NEVER in padding."""

    def call(self, inputs):
        start, end, mask = inputs
        both = tf.stack([start[..., 0], end[..., 0]], 1)
        return tf.where(mask[:, None, :], tf.cast(both, tf.float32), NEVER)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], 2, input_shape[0][1])
