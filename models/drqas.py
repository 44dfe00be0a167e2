"""DrQA's document reader: stacked LSTMs over word vectors and features, bilinear span logits.

Chen et al. 2017 (arXiv 1704.00051, section 3.2), in the form of DAWNBench's entries
(hitvoice/DrQA at d9081fe). There LSTMs process padding in training, here they do not. LSTMs have
two trained biases, as in PyTorch; both count in the gradient's norm.
Axis names: batch; context, tokens of the passage; question; width.
"""

from collections.abc import Sequence
from functools import partial

import tensorflow as tf

from . import checks
from .layers import recurrent
from .layers.attention import AttentionPooling, DotProductAttention
from .layers.broadcast import Dense
from .layers.dropout import Dropout
from .layers.initializers import pytorch_uniform
from .layers.text import AppendOne, PaddingMask, SpanLogits, TagVectors, TokenEmbedding
from .networks import Family
from .texts import TAGS


def body(
    inputs: list[tf.Tensor],
    dtype: str | None,
    *,
    trained_words: int = 2,
    fixed_words: int = 0,
    vector_width: int = 300,
    tags: tuple[int, int] = TAGS,
    hidden: int = 128,
    layers: int = 3,
    dropout: float = 0.4,
) -> tf.Tensor:
    """Builds DrQA from token ids and token features to logits of the answer's first and last token.

    Args:
      hidden: width of each direction of each LSTM.
      layers: stacked LSTMs of context and of question; the outputs of all are concatenated.
      dropout: share of word vectors and of LSTMs' inputs and outputs that training drops, in
        [0, 1).
    """
    checks.at_least(1, hidden=hidden, layers=layers, pos=tags[0], entities=tags[1])
    checks.below_one(dropout=dropout)
    context, matches, context_tags, question = inputs
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    drop = partial(Dropout, dropout, dtype=dtype)
    masks = [PaddingMask(dtype=dtype)(ids) for ids in (context, question)]
    c, q = (drop()(words(ids)) for ids in (context, question))
    extras = [matches, align(c, q, masks[1], dtype), TagVectors(tags, dtype=dtype)(context_tags)]
    c = tf.keras.layers.Concatenate(dtype=dtype)([c, *extras])
    c = _stack("context", c, masks[0], [hidden] * layers, drop)  # (.., layers x 2 hidden)
    q = _stack("question", q, masks[1], [hidden] * layers, drop)
    weights = dense("weigh", q.shape[-1], 1, dtype)(q)
    q = AttentionPooling(dtype=dtype)([weights, q, masks[1]])  # (batch, width)
    ends = [bilinear(end, c, q, dtype) for end in ("first", "last")]
    return SpanLogits(dtype=dtype, name="logits")([*ends, masks[0]])


def _stack(
    name: str, x: tf.Tensor, mask: tf.Tensor, widths: Sequence[int], drop: partial[Dropout]
) -> tf.Tensor:
    """Applies stacked bidirectional LSTMs; returns the concatenated outputs of all."""
    outputs, dtype = [x], drop.keywords["dtype"]
    for number, hidden in enumerate(widths):
        initializers = uniform(hidden), uniform(hidden), uniform(hidden)
        lstm = recurrent.bilstm(hidden, initializers, dtype, f"{name}_{number}")
        # PyTorch's second bias is the kernel's row for an appended input that is always 1.
        outputs.append(lstm(AppendOne(dtype=dtype)(drop()(outputs[-1])), mask=mask))
    joined = tf.keras.layers.Concatenate(axis=-1, dtype=dtype)  # of several: Keras's own rule
    return drop()(joined(outputs[1:]) if len(widths) > 1 else outputs[1])


def uniform(width: int) -> tf.keras.initializers.Initializer:
    """Returns PyTorch's default initializer of biases and recurrent weights: +-1 / sqrt(width)."""
    return tf.keras.initializers.RandomUniform(-(width**-0.5), width**-0.5)


def dense(
    name: str, width: int, units: int, dtype: str | None, activation: str | None = None
) -> tf.keras.layers.Layer:
    """Returns a dense layer for inputs of a width, initialized as in PyTorch."""
    initializers = {"kernel_initializer": pytorch_uniform(), "bias_initializer": uniform(width)}
    return Dense(units, activation, dtype=dtype, name=name, **initializers)


def align(c: tf.Tensor, q: tf.Tensor, q_mask: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """Returns the aligned question embedding of each context token, (batch, context, width of q).

    c and q are word vectors, (batch, context or question, width).
    """
    project = dense("align", c.shape[-1], c.shape[-1], dtype, "relu")
    attention = DotProductAttention(scale="one", dtype=dtype)
    return attention([project(c), project(q), q, q_mask])


def bilinear(name: str, c: tf.Tensor, q: tf.Tensor, dtype: str | None) -> tf.Tensor:
    """Returns the bilinear score c W q of each token, (batch, context, 1); q is (batch, width)."""
    q = dense(name, q.shape[-1], c.shape[-1], dtype)(q)
    row = tf.keras.layers.Reshape((1, c.shape[-1]), dtype=dtype)(q)
    return tf.keras.layers.Dot(2, dtype=dtype)([c, row])


FAMILY = Family(body, reads=("context_words", "context_matches", "context_tags", "question_words"))
