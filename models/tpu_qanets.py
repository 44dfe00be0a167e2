"""QANet of Google's DAWNBench entry: convolutions and self-attention in place of recurrence.

Yu et al. 2018 (arXiv 1804.09541), as in tensorflow/tpu, models/experimental/qanet: no character
embeddings, one block where the paper has seven; `qanets` has the paper's network. In Google's code
padding changes convolutions and attention; here it does not.
Axis names: batch; context, tokens of the passage; question; width.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import checks
from .layers.attention import Coattention, DotProductAttention
from .layers.broadcast import Dense, SeparableConv1D
from .layers.dropout import Dropout
from .layers.text import (
    ApplyMask,
    LayerNorm,
    PaddingMask,
    PositionSignal,
    SpanLogits,
    TokenEmbedding,
)
from .networks import Family

Operation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # x (batch, tokens, width), its mask -> y
PASSES = 4  # of the model encoder, with shared weights


def body(
    inputs: list[tf.Tensor],
    dtype: str | None,
    *,
    trained_words: int = 2,
    fixed_words: int = 0,
    vector_width: int = 300,
    hidden: int = 128,
    heads: int = 4,
) -> tf.Tensor:
    """Builds QANet from token ids to logits of the answer's first and last token.

    Args:
      hidden: width of the encoders.
      heads: number of attention heads, a divisor of `hidden`.
    """
    checks.multiple(hidden=hidden, heads=heads)
    drop = partial(Dropout, 0.15, dtype=dtype)
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    masks = [PaddingMask(dtype=dtype)(ids) for ids in inputs]
    embedding_encoder = _encoder(4, hidden, heads, dtype)
    model_encoder = _encoder(2, hidden, heads, dtype)

    def embed(ids: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return drop()(embedding_encoder(drop()(words(ids)), mask))

    texts = [embed(ids, mask) for ids, mask in zip(inputs, masks, strict=True)]
    states = [Coattention(dtype=dtype, name="coattention")([*texts, *masks])]
    for _ in range(PASSES):
        states.append(Dropout(0.3, dtype=dtype)(model_encoder(states[-1], masks[0])))
    first, *ends = states[-3:]  # each (batch, context, hidden)
    join = tf.keras.layers.Concatenate(dtype=dtype)
    logits = [Dense(1, dtype=dtype)(join([first, end])) for end in ends]
    return SpanLogits(dtype=dtype, name="logits")([*logits, masks[0]])


def _encoder(convolutions: int, hidden: int, heads: int, dtype: str | None) -> Operation:
    """Returns an encoder of one block: convolutions, self-attention and dense layers."""
    # All calls share the weights.
    keras = tf.keras.layers
    operations = [convolve(hidden, 7, dtype) for _ in range(convolutions)]
    operations += [attend(hidden, heads, dtype), transform(hidden, 2 * hidden, dtype)]
    norms = [LayerNorm(dtype=dtype) for _ in (*operations, "last")]
    project, add_positions = Dense(hidden, dtype=dtype), PositionSignal(dtype=dtype)
    add = keras.Add(dtype=dtype)

    def encode(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        x = add_positions(x if x.shape[-1] == hidden else project(x))
        for operation, norm in zip(operations, norms, strict=False):
            x = add([x, Dropout(0.25, dtype=dtype)(operation(norm(x), mask))])
        return norms[-1](x)

    return encode


def convolve(hidden: int, size: int, dtype: str | None) -> Operation:
    """Returns a depthwise separable convolution over `size` tokens, with ReLU."""
    last = {"data_format": "channels_last", "dtype": dtype}  # whatever the user's Keras is set to
    layer = SeparableConv1D(hidden, size, padding="same", activation="relu", **last)
    apply_mask = ApplyMask(dtype=dtype)  # a convolution at the end of a text reads padding
    return lambda x, mask: layer(apply_mask([x, mask]))


def attend(hidden: int, heads: int, dtype: str | None, dropout: float = 0.1) -> Operation:
    """Returns multi-head self-attention over the tokens of a text."""
    dense = partial(tf.keras.layers.Dense, hidden, use_bias=False, dtype=dtype)
    *projections, output = (dense() for _ in range(4))
    attention = DotProductAttention(heads, dropout=dropout, dtype=dtype)
    return lambda x, mask: output(attention([*(project(x) for project in projections), mask]))


def transform(hidden: int, between: int, dtype: str | None) -> Operation:
    """Returns two dense layers, of widths `between` and `hidden`, with ReLU between them."""
    wide = Dense(between, "relu", dtype=dtype)
    back = Dense(hidden, dtype=dtype)
    return lambda x, mask: back(wide(x))


FAMILY = Family(body, reads=("context_words", "question_words"))
