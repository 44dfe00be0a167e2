"""Layers of readers: embeddings, norms, highway, positions, masks, BERT's sequence, span logits.

Masks are boolean, (batch, tokens), true for tokens and false for padding. Masks are inputs of these
layers, not Keras's implicit ones: the layers are `Unmasked`.
"""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from . import broadcast
from .registration import register

NEVER = -1e30  # logit of an impossible choice: its softmax is 0
# Up to this number of vectors an embedding is a matrix product in 16-bit training: a GPU sums a
# gather's gradient by atomic operations on each vector, 10.6 ms for the two segments of a BERT.
_FEW = 8


class Unmasked(tf.keras.layers.Layer):
    """A layer that takes inputs with an implicit mask of Keras, and passes none on."""

    supports_masking = True

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        """Returns None; Keras calls it."""


@register
class PaddingMask(tf.keras.layers.Layer):
    """Mask of token ids (batch, tokens): true where the id is not 0, the padding's id."""

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.not_equal(ids, 0)


@register
class TokenEmbedding(tf.keras.layers.Layer):
    """Embedding of which a part is trained: ids (...) to vectors (..., width).

    Ids below `trained` have trained vectors, the next `fixed` ids have fixed ones.

    Args:
      trained: number of trained vectors.
      fixed: number of fixed vectors; they are zeros until `set_fixed`.
      width: length of a vector.
      initializer: initializer of the trained vectors.
    """

    def __init__(
        self,
        trained: int,
        fixed: int,
        width: int,
        initializer: str | dict[str, Any] | tf.keras.initializers.Initializer = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.trained, self.fixed, self.width = trained, fixed, width
        self.initializer = tf.keras.initializers.get(initializer)

    def build(self, input_shape: Any) -> None:
        # Without autocast: a vector's gradient is summed in the dtype that it is gathered in.
        self.table = self.add_weight(
            name="trained",
            shape=(self.trained, self.width),
            initializer=self.initializer,
            autocast=False,
        )
        if self.fixed:
            self.given = self.add_weight(  # checkpoints contain this attribute's name
                name="fixed",
                shape=(self.fixed, self.width),
                initializer="zeros",
                trainable=False,
                autocast=False,
            )
        self.built = True

    def set_fixed(self, vectors: tf.Tensor) -> None:
        """Sets the fixed vectors to `vectors`, (fixed, width)."""
        if self.fixed:
            self.given.assign(vectors)

    def set_last_trained(self, vectors: tf.Tensor) -> None:
        """Sets the last N trained vectors to `vectors`, (N, width), as initial values."""
        if len(vectors):
            first = self.table[: self.trained - len(vectors)]
            self.table.assign(tf.concat([first, tf.cast(vectors, first.dtype)], 0))

    def call(self, ids: tf.Tensor, training: bool = False) -> tf.Tensor:
        table, narrow = tf.convert_to_tensor(self.table), tf.as_dtype(self.compute_dtype).size < 4
        if training and narrow and self.trained <= _FEW and not self.fixed:
            one_hots = tf.one_hot(ids, self.trained, dtype=self.compute_dtype)
            return tf.tensordot(one_hots, tf.cast(table, self.compute_dtype), 1)
        if training:  # makes the gradient dense: XLA does not support sizes that depend on values
            table = table * 1.0
        # Without fixed vectors an id out of range is TensorFlow's error on a CPU.
        vectors = tf.gather(table, tf.minimum(ids, self.trained - 1) if self.fixed else ids)
        if self.fixed:
            fixed = tf.convert_to_tensor(self.given)
            fixed = tf.gather(fixed, tf.maximum(ids - self.trained, 0))
            vectors = tf.where((ids < self.trained)[..., None], vectors, fixed)
        return tf.cast(vectors, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        own = {"trained": self.trained, "fixed": self.fixed, "width": self.width}
        initializer = tf.keras.initializers.serialize(self.initializer)
        return {**super().get_config(), **own, "initializer": initializer}


@register
class TagVectors(tf.keras.layers.Layer):
    """Vectors of several tags per token, concatenated: trained or one-hot; id 0 is zeros.

    Inputs: ids (batch, tokens, tags). Output: (batch, tokens, sum of widths).

    Args:
      counts: number of ids of each tag, including id 0.
      widths: length of the trained vectors of each tag; (): one-hot vectors, of counts - 1.
    """

    def __init__(self, counts: Sequence[int], widths: Sequence[int] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.counts, self.widths = tuple(counts), tuple(widths)

    def build(self, input_shape: Any) -> None:
        sizes = zip(self.counts, self.widths, strict=True) if self.widths else ()
        self.tables = [
            self.add_weight(
                name=f"table_{tag}",
                shape=(count - 1, width),
                initializer=tf.keras.initializers.RandomNormal(stddev=1.0),
            )
            for tag, (count, width) in enumerate(sizes)
        ]
        self.built = True

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        # The column of id 0 is cut off. Shifting the ids by 1 instead would not do: a one-hot of -1
        # is zeros in TensorFlow, but the last id in ONNX.
        tags, dtype = zip(tf.unstack(ids, axis=-1), self.counts, strict=True), self.compute_dtype
        vectors = [tf.one_hot(tag, count, dtype=dtype)[..., 1:] for tag, count in tags]
        if self.widths:
            pairs = zip(vectors, self.tables, strict=True)
            vectors = [tf.tensordot(one_hot, tf.cast(table, dtype), 1) for one_hot, table in pairs]
        return tf.concat(vectors, -1)


@register
class LayerNorm(tf.keras.layers.Layer):
    """Layer normalization over the last axis, with trained scale and shift (Ba et al. 2016).

    It replaces Keras's layer because TensorFlow 2.20 fuses that one in frozen graphs with another
    epsilon, which changed QANet's logits by 6e-4.

    Args:
      epsilon: added to the variance.
    """

    supports_masking = True

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")
        self.built = True

    def call(self, x: tf.Tensor) -> tf.Tensor:
        wide = broadcast.widen(x)
        centred = wide - tf.reduce_mean(wide, -1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
        normal = tf.cast(centred * tf.math.rsqrt(variance + self.epsilon), x.dtype)
        return broadcast.add(broadcast.multiply(normal, self.gamma), self.beta)


@register
class Highway(Unmasked):
    """Highway (Srivastava et al. 2015): g * relu(W x + b) + (1 - g) * x, g = sigmoid(V x + c)."""

    def build(self, input_shape: Any) -> None:
        width = input_shape[-1]
        for name in ("transform", "gate"):
            kernel = self.add_weight(
                name=f"{name}_kernel", shape=(width, width), initializer="glorot_uniform"
            )
            bias = self.add_weight(name=f"{name}_bias", shape=(width,), initializer="zeros")
            setattr(self, name, [kernel, bias])
        self.built = True

    def call(self, x: tf.Tensor) -> tf.Tensor:
        def linear(weights: list[tf.Variable]) -> tf.Tensor:
            kernel, bias = weights
            return broadcast.add(tf.tensordot(x, tf.cast(kernel, x.dtype), 1), bias)

        gate = tf.sigmoid(linear(self.gate))
        return gate * tf.nn.relu(linear(self.transform)) + (1 - gate) * x


@register
class CharacterMaxPool(Unmasked):
    """Maximum over the characters of each token, without padding.

    Inputs: [x (batch, tokens, characters, width), character ids (batch, tokens, characters)]; id 0
    is padding. Output: (batch, tokens, width); zeros for a token without characters.
    """

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        x, ids = inputs
        is_character = (ids > 0)[..., None]
        largest = tf.reduce_max(tf.where(is_character, x, tf.cast(NEVER, x.dtype)), 2)
        return tf.where(tf.reduce_any(is_character, 2), largest, tf.zeros_like(largest))


@register
class PositionSignal(tf.keras.layers.Layer):
    """Adds sinusoidal position encodings to x (batch, tokens, width).

    (Vaswani et al. 2017, arXiv 1706.03762, in tensor2tensor's layout: sines in the first half of
    the width, cosines in the second, wavelengths from 2 pi to 10,000 x 2 pi.)
    """

    supports_masking = True

    def call(self, x: tf.Tensor) -> tf.Tensor:
        count = x.shape[-1] // 2  # of wavelengths; frequencies fall geometrically from 1 to 1e-4
        dtype = tf.float64 if x.dtype == tf.float64 else tf.float32
        exponents = -tf.range(count, dtype=dtype) * (math.log(1e4) / max(count - 1, 1))
        positions = tf.range(tf.cast(tf.shape(x)[1], dtype), dtype=dtype)[:, None]
        angles = positions * tf.exp(exponents)  # (tokens, wavelengths)
        signal = tf.concat([tf.sin(angles), tf.cos(angles)], 1)
        return x + tf.cast(tf.pad(signal, [[0, 0], [0, x.shape[-1] % 2]]), x.dtype)


@register
class AppendOne(Unmasked):
    """Appends a channel of ones: (batch, tokens, width) to (batch, tokens, width + 1)."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.pad(x, [[0, 0], [0, 0], [0, 1]], constant_values=1)


@register
class ApplyMask(Unmasked):
    """Sets padding to zeros: [x (batch, tokens, width), mask] to (batch, tokens, width)."""

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        x, mask = inputs
        return x * tf.cast(mask, x.dtype)[..., None]


@register
class BertSequence(Unmasked):
    """BERT's input for a question and a passage: [CLS] question [SEP] passage [SEP].

    Inputs: ids [question, context], int32 (batch, tokens); id 0 is padding, at the end of each.
    Output: (ids, segments, positions), int32 (batch, question + context + 3). Padding stays within
    the sequence, with id 0 and position 0; positions count the other tokens.

    Args:
      cls_id: token id of [CLS].
      sep_id: token id of [SEP].
    """

    def __init__(self, cls_id: int, sep_id: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cls_id, self.sep_id = cls_id, sep_id

    def call(self, inputs: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        question, context = inputs
        one = tf.ones([tf.shape(context)[0], 1], context.dtype)
        sep = one * self.sep_id
        ids = tf.concat([one * self.cls_id, question, sep, context, sep], 1)
        # Lengths without padding, (batch, 1).
        question_length, context_length = (
            tf.reduce_sum(tf.cast(x > 0, x.dtype), 1, keepdims=True) for x in inputs
        )
        # A token's position is its index in [CLS] question [SEP] passage [SEP] without padding.
        question_positions = 1 + tf.range(tf.shape(question)[1])[None] * one
        context_positions = question_length + 2 + tf.range(tf.shape(context)[1])[None] * one
        last = question_length + context_length + 2
        first = tf.concat([0 * one, question_positions, question_length + 1], 1)
        second = tf.concat([context_positions, last], 1)
        segments = tf.concat([tf.zeros_like(first), tf.ones_like(second)], 1)
        return ids, segments, tf.concat([first, second], 1) * tf.cast(ids > 0, ids.dtype)


@register
class ContextSlice(Unmasked):
    """Slices the passage's tokens out of a sequence of `BertSequence`.

    Inputs: [x (batch, question + context + 3, width), question ids, context ids]; the ids are the
    inputs of `BertSequence`. Output: (batch, context, width).
    """

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        x, question, context = inputs
        first = tf.shape(question)[1] + 2
        return x[:, first : first + tf.shape(context)[1]]


@register
class SpanLogits(Unmasked):
    """Logits of an answer's first and last token: joins them and masks padding.

    Inputs: [start logits, end logits, mask]; the logits are (batch, context, 1).
    Output: float32, or float64 if `dtype` is, (batch, 2, context); -1e30 at padding.
    """

    def __init__(self, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(dtype=broadcast.widest(dtype), **kwargs)

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        start, end, mask = inputs
        both = tf.stack([start[..., 0], end[..., 0]], 1)
        return tf.where(mask[:, None, :], both, NEVER)
