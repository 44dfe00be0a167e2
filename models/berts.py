"""BERT for question answering: WordPieces of question and passage to logits of the answer's span.

Devlin et al. 2019 (arXiv 1810.04805), with details of google-research/bert; exact GELU. Question
and passage are separate inputs, each padded at its end. They are joined to the published sequence,
[CLS] question [SEP] passage [SEP], in which padding has no position and is not attended to.
Axis names: batch; context, WordPieces of the passage; question; tokens, of the sequence; hidden.
"""

from functools import partial

import tensorflow as tf

from . import checks
from .layers.activations import GELU
from .layers.attention import DotProductAttention
from .layers.broadcast import Dense
from .layers.dropout import Dropout
from .layers.text import (
    BertSequence,
    ContextSlice,
    LayerNorm,
    PaddingMask,
    SpanLogits,
    TokenEmbedding,
)
from .networks import Family

SEGMENTS = 2  # 0: [CLS], question and [SEP]; 1: passage and [SEP]


def body(
    inputs: list[tf.Tensor],
    dtype: str | None,
    *,
    pieces: int = 30_522,
    cls_id: int = 101,
    sep_id: int = 102,
    positions: int = 512,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    dropout: float = 0.1,
) -> tf.Tensor:
    """Builds a BERT from ids of WordPieces to logits of the answer's first and last piece.

    Context and question have at most `positions` - 3 pieces together.

    Args:
      pieces: number of ids, including padding (0).
      cls_id: id of [CLS], which starts the sequence.
      sep_id: id of [SEP], which ends the question and the passage.
      positions: number of position embeddings: longest sequence.
      layers: number of blocks.
      hidden: width of the network; the inner dense layers of blocks are 4 times as wide.
      heads: number of attention heads, a divisor of `hidden`.
      dropout: share of activations and of attention weights that training drops, in [0, 1).
    """
    checks.at_least(1, layers=layers, heads=heads)
    checks.at_least(4, positions=positions)
    checks.below_one(dropout=dropout)
    checks.multiple(hidden=hidden, heads=heads)
    if not (0 < cls_id < pieces and 0 < sep_id < pieces):
        text = f"`cls_id` and `sep_id` should be ids below {pieces}"
        raise ValueError(f"{text}. Received: cls_id={cls_id}, sep_id={sep_id}")
    context, question = inputs
    sequence = BertSequence(cls_id, sep_id, dtype=dtype)([question, context])
    mask = PaddingMask(dtype=dtype)(sequence[0])
    counts = {"words": pieces, "segments": SEGMENTS, "places": positions}  # by layers' names
    embedded = [
        TokenEmbedding(count, 0, hidden, _initializer(), dtype=dtype, name=name)(ids)
        for ids, (name, count) in zip(sequence, counts.items(), strict=True)
    ]  # each (batch, tokens, hidden)
    x = Dropout(dropout, dtype=dtype)(_norm("embedded", embedded, dtype))
    for layer in range(layers):
        x = _block(f"layer_{layer}", x, mask, heads, dropout, dtype)
    x = ContextSlice(dtype=dtype, name="features")([x, question, context])
    ends = [_dense(name, 1, x, dtype) for name in ("first", "last")]
    return SpanLogits(dtype=dtype, name="logits")([*ends, PaddingMask(dtype=dtype)(context)])


def _block(
    name: str, x: tf.Tensor, mask: tf.Tensor, heads: int, dropout: float, dtype: str | None
) -> tf.Tensor:
    """Self-attention and a dense network, each with a residual connection and then a norm."""
    hidden, drop = x.shape[-1], partial(Dropout, dropout, dtype=dtype)
    qkv = [_dense(f"{name}_{part}", hidden, x, dtype) for part in ("query", "key", "value")]
    attended = DotProductAttention(heads, dropout=dropout, dtype=dtype)([*qkv, mask])
    attended = drop()(_dense(f"{name}_attended", hidden, attended, dtype))
    x = _norm(f"{name}_attended", [x, attended], dtype)
    wide = GELU(dtype=dtype)(_dense(f"{name}_wide", 4 * hidden, x, dtype))
    narrow = drop()(_dense(f"{name}_narrow", hidden, wide, dtype))
    return _norm(f"{name}_narrow", [x, narrow], dtype)


def _initializer() -> tf.keras.initializers.Initializer:
    """Returns a new initializer: a shared object would give every layer equal values."""
    return tf.keras.initializers.TruncatedNormal(stddev=0.02)


def _dense(name: str, units: int, x: tf.Tensor, dtype: str | None) -> tf.Tensor:
    return Dense(units, kernel_initializer=_initializer(), dtype=dtype, name=name)(x)


def _norm(name: str, terms: list[tf.Tensor], dtype: str | None) -> tf.Tensor:
    """Normalizes the sum of `terms`."""
    total = tf.keras.layers.Add(dtype=dtype)(terms)
    return LayerNorm(1e-12, dtype=dtype, name=f"{name}_norm")(total)


FAMILY = Family(body, reads=("context_pieces", "question_pieces"))
