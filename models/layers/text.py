"""Readers' own layers of single tokens: vectors by id, highway, places, and an answer's logits.

Masks are boolean, (batch, tokens), true where a token is. Layers that get a mask as an input hand
none on to Keras: they set `supports_masking` and `compute_mask` to `no_mask`.
"""

import math

import tensorflow as tf

_register = tf.keras.utils.register_keras_serializable(package="dawnbench_tf")
NEVER = -1e30  # logit of what can't be


def no_mask(self, inputs, previous_mask=None):
    """Keras's `compute_mask` of layers that get masks as inputs: they hand none on."""


@_register
class PaddingMask(tf.keras.layers.Layer):
    """The mask of token ids (batch, tokens): true where the id is not 0, padding."""

    def call(self, ids):
        return tf.not_equal(ids, 0)


@_register
class TokenEmbedding(tf.keras.layers.Layer):
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

    def call(self, ids, training=False):
        table = tf.convert_to_tensor(self.table)
        if training:  # makes the gradient dense: XLA knows no size that depends on values
            table = table * 1.0
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


def _ones(ids, counts, dtype):
    """Of ids (..., kinds) a 1 by kind, (..., count - 1) each; id 0 is zeros.

    Its column is cut off: a one-hot of -1 is zeros in TensorFlow, but the last id in ONNX.
    """
    kinds = zip(tf.unstack(ids, axis=-1), counts, strict=True)
    return [tf.one_hot(kind, count, dtype=dtype)[..., 1:] for kind, count in kinds]


@_register
class OneHot(tf.keras.layers.Layer):
    """Ids (batch, tokens, kinds) to a 1 in each kind's own part; id 0 is zeros in all of it.

    Args:
      counts: of ids, by kind, 0 included.
    """

    def __init__(self, counts, **kwargs):
        super().__init__(**kwargs)
        self.counts = tuple(counts)

    def call(self, ids):
        return tf.concat(_ones(ids, self.counts, self.compute_dtype), -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], sum(self.counts) - len(self.counts))

    def get_config(self):
        return {**super().get_config(), "counts": self.counts}


@_register
class TagEmbedding(tf.keras.layers.Layer):
    """Ids (batch, tokens, kinds) to trained vectors of each kind, side by side; id 0 is zeros.

    Args:
      counts: of ids, by kind, 0 included.
      widths: of vectors, by kind.
    """

    def __init__(self, counts, widths, **kwargs):
        super().__init__(**kwargs)
        self.counts, self.widths = tuple(counts), tuple(widths)

    def build(self, input_shape):
        """Makes a table for each kind, which starts normally distributed, as PyTorch's do."""
        self.tables = [
            self.add_weight(
                name=f"table_{kind}",
                shape=(count - 1, width),
                initializer=tf.keras.initializers.RandomNormal(stddev=1.0),
            )
            for kind, (count, width) in enumerate(zip(self.counts, self.widths, strict=True))
        ]
        self.built = True

    def call(self, ids):
        ones = _ones(ids, self.counts, self.compute_dtype)
        tables = [tf.cast(table, self.compute_dtype) for table in self.tables]
        return tf.concat([tf.tensordot(*pair, 1) for pair in zip(ones, tables, strict=True)], -1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], sum(self.widths))

    def get_config(self):
        return {**super().get_config(), "counts": self.counts, "widths": self.widths}


@_register
class LayerNorm(tf.keras.layers.Layer):
    """x to mean 0 and deviation 1 over its width, scaled and shifted (Ba et al. 2016).

    Keras's own is fused by TensorFlow 2.20 in frozen graphs, with another epsilon than its own:
    QANet's logits were off by 6e-4 there.

    Args:
      epsilon: added to the variance.
    """

    supports_masking = True

    def __init__(self, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        """Makes scale and shift."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")
        self.built = True

    def call(self, x):
        wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
        centred = wide - tf.reduce_mean(wide, -1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
        normal = tf.cast(centred * tf.math.rsqrt(variance + self.epsilon), x.dtype)
        return normal * tf.cast(self.gamma, x.dtype) + tf.cast(self.beta, x.dtype)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


@_register
class Highway(tf.keras.layers.Layer):
    """gate * relu(W x + b) + (1 - gate) * x, gate = sigmoid(V x + c). (Srivastava et al. 2015.)"""

    supports_masking, compute_mask = True, no_mask

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
class CharacterMaxPool(tf.keras.layers.Layer):
    """[x (batch, tokens, characters, width), character ids] to each token's largest, (.., width).

    What is padding, id 0, does not count; a token without characters is zeros.
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        x, ids = inputs
        is_character = (ids > 0)[..., None]
        largest = tf.reduce_max(tf.where(is_character, x, tf.cast(NEVER, x.dtype)), 2)
        return tf.where(tf.reduce_any(is_character, 2), largest, tf.zeros_like(largest))

    def compute_output_shape(self, input_shape):
        return (*input_shape[0][:2], input_shape[0][-1])


@_register
class PositionSignal(tf.keras.layers.Layer):
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
class AppendOne(tf.keras.layers.Layer):
    """Appends a channel of ones: (batch, tokens, width) to (batch, tokens, width + 1)."""

    supports_masking, compute_mask = True, no_mask

    def call(self, x):
        return tf.pad(x, [[0, 0], [0, 0], [0, 1]], constant_values=1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], input_shape[-1] + 1)


@_register
class ApplyMask(tf.keras.layers.Layer):
    """[x (batch, tokens, width), mask] to x, zeros where no token is."""

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        x, mask = inputs
        return x * tf.cast(mask, x.dtype)[..., None]

    def compute_output_shape(self, input_shape):
        return input_shape[0]


@_register
class SpanLogits(tf.keras.layers.Layer):
    """Logits of an answer's first and last token, side by side.

    Inputs: [start logits, end logits, both (batch, context, 1), mask]. Output: float32
    (batch, 2, context), -1e30 in padding.
    """

    supports_masking, compute_mask = True, no_mask

    def call(self, inputs):
        start, end, mask = inputs
        both = tf.stack([start[..., 0], end[..., 0]], 1)
        return tf.where(mask[:, None, :], tf.cast(both, tf.float32), NEVER)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], 2, input_shape[0][1])
