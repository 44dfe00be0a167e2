"""QANet: convolutions and self-attention in place of recurrence.

Yu et al. 2018 (arXiv 1804.09541), in the form of Google's DAWNBench entry (tensorflow/tpu,
models/experimental/qanet), which has words without characters and one block where the paper has
seven; the paper's own: qanets. There padding leaks into convolutions and attention; here it
never changes an answer.
Axis names: batch, context (tokens of the passage), question, width.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from . import checks
from .layers.attention import Coattention, ScaledDotProductAttention
from .layers.dropout import Dropout
from .layers.text import (
    ApplyMask,
    LayerNorm,
    PaddingMask,
    PositionSignal,
    SpanLogits,
    TokenEmbedding,
)
from .networks import Arguments, Family

Operation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # of (batch, tokens, width) and its mask
PASSES = 4  # of the second encoder, with the same weights


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
    """QANet, token ids to logits of the answer's first and last token.

    Id 0 is padding, which must come after all tokens; it never changes an answer.

    Args:
      inputs: int32: token ids of the context (batch, context) and of the question (batch,
        question).
      dtype: precision of the layers as Keras has it; None: Keras's global policy.
      trained_words: token ids whose vectors are trained, padding (0) and unknown (1) included.
      fixed_words: token ids after those, whose vectors are set by
        `model.get_layer("words").set_fixed(vectors)` and stay as they are.
      vector_width: of the words' vectors.
      hidden: width of the encoders.
      heads: of their attention; `hidden` is a multiple of it.

    Returns:
      float32 logits (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: a number is out of range.
    """
    checks.multiple(hidden=hidden, heads=heads)
    drop = partial(Dropout, 0.15, dtype=dtype)
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    masks = [PaddingMask(dtype=dtype)(ids) for ids in inputs]
    of_words = _encoder(4, hidden, heads, dtype)
    of_both = _encoder(2, hidden, heads, dtype)

    def embed(ids, mask):
        return drop()(of_words(drop()(words(ids)), mask))

    texts = [embed(ids, mask) for ids, mask in zip(inputs, masks, strict=True)]
    return _span(
        Coattention(dtype=dtype, name="coattention")([*texts, *masks]), masks[0], of_both, dtype
    )


def _span(x, mask, encode, dtype):
    """Logits of the answer's ends, from passes of an encoder over x, (batch, context, width)."""
    keras, states = tf.keras.layers, [x]
    for _ in range(PASSES):
        states.append(Dropout(0.3, dtype=dtype)(encode(states[-1], mask)))
    first, *ends = states[-3:]  # (batch, context, hidden)
    join = keras.Concatenate(dtype=dtype)
    logits = [keras.Dense(1, dtype=dtype)(join([first, end])) for end in ends]
    return SpanLogits(dtype="float32", name="logits")([*logits, mask])


def _encoder(convolutions: int, hidden: int, heads: int, dtype: str | None) -> Operation:
    """A block of convolutions, self-attention and a dense part, whose weights each call shares."""
    keras = tf.keras.layers
    operations = [convolve(hidden, 7, dtype) for _ in range(convolutions)]
    operations += [attend(hidden, heads, dtype), transform(hidden, 2 * hidden, dtype)]
    norms = [LayerNorm(dtype=dtype) for _ in (*operations, "last")]
    project, timing = keras.Dense(hidden, dtype=dtype), PositionSignal(dtype=dtype)
    add = keras.Add(dtype=dtype)

    def encode(x, mask):
        x = timing(x if x.shape[-1] == hidden else project(x))
        for operation, norm in zip(operations, norms, strict=False):
            x = add([x, Dropout(0.25, dtype=dtype)(operation(norm(x), mask))])
        return norms[-1](x)

    return encode


def convolve(hidden: int, size: int, dtype: str | None) -> Operation:
    """A convolution over so many tokens, of each channel, then of all of them; ReLU."""
    layer = tf.keras.layers.SeparableConv1D(
        hidden, size, padding="same", activation="relu", dtype=dtype
    )
    only_words = ApplyMask(dtype=dtype)
    return lambda x, mask: layer(only_words([x, mask]))


def attend(hidden: int, heads: int, dtype: str | None) -> Operation:
    """Attention of tokens to all of their text."""
    dense = partial(tf.keras.layers.Dense, hidden, use_bias=False, dtype=dtype)
    *projections, output = (dense() for _ in range(4))
    attention = ScaledDotProductAttention(heads, dropout=0.1, dtype=dtype)
    return lambda x, mask: output(attention([*(project(x) for project in projections), mask]))


def transform(hidden: int, between: int, dtype: str | None) -> Operation:
    """Two dense layers, ReLU between them."""
    wide = tf.keras.layers.Dense(between, "relu", dtype=dtype)
    back = tf.keras.layers.Dense(hidden, dtype=dtype)
    return lambda x, mask: back(wide(x))


def _describe(args: Arguments) -> tuple[str, str, str]:
    return f"convolutions, {args.get('heads', 4)} heads", "identity", "ReLU"


FAMILY = Family(
    body,
    smallest=lambda args: {"hidden": 8, "heads": 2},
    describe=_describe,
    reads=("context_words", "question_words"),
)
