"""BERT with a span's logits: question and passage, as WordPieces, in one sequence.

Devlin et al. 2019 (arXiv 1810.04805), and google-research/bert where it says more; GELU by erf, as
in the paper's reference for it. Question and passage come apart, each padded at its end; inside
they are the published sequence, [CLS] question [SEP] passage [SEP], in which padding has no place
of its own and is never attended to. Axis names: batch, context (WordPieces of the passage),
question, places (of the sequence), hidden.
"""

from functools import partial

import tensorflow as tf

from . import checks
from .layers.activations import GELU
from .layers.attention import ScaledDotProductAttention
from .layers.dropout import Dropout
from .layers.sequence import BertSequence, ContextSlice
from .layers.text import LayerNorm, PaddingMask, SpanLogits, TokenEmbedding
from .networks import Arguments, Family

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
    """BERT, ids of WordPieces to logits of the answer's first and last piece.

    Id 0 is padding, which must come after all pieces; it never changes an answer.

    Args:
      inputs: int32: ids of the context (batch, context) and of the question (batch, question), of
        at most `positions` - 3 pieces together.
      dtype: precision of the layers as Keras has it; None: Keras's global policy.
      pieces: ids, padding (0) included.
      cls_id: id of [CLS], which begins the sequence.
      sep_id: id of [SEP], which ends the question and the passage.
      positions: places of a sequence that have a vector.
      layers: blocks of attention and dense layers.
      hidden: width of the network; dense layers inside blocks are 4 times as wide.
      heads: of attention; `hidden` is a multiple of it.
      dropout: share that is dropped in training, of activations and of attention, in [0, 1).

    Returns:
      float32 logits (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: a number is out of range.
    """
    checks.at_least(1, layers=layers, heads=heads)
    checks.at_least(4, positions=positions)
    checks.below_one(dropout=dropout)
    _check(pieces, cls_id, sep_id, hidden, heads)
    context, question = inputs
    ids, *others = BertSequence(cls_id, sep_id, dtype=dtype)([question, context])
    mask = PaddingMask(dtype=dtype)(ids)
    embedded = _vectors([ids, *others], (pieces, SEGMENTS, positions), hidden, dtype)
    x = Dropout(dropout, dtype=dtype)(_norm("embedded", embedded, dtype))
    for layer in range(layers):
        x = _block(f"layer_{layer}", x, mask, heads, dropout, dtype)
    x = ContextSlice(dtype=dtype, name="features")([x, question, context])
    ends = [_dense(name, 1, x, dtype) for name in ("first", "last")]
    return SpanLogits(dtype="float32", name="logits")([*ends, PaddingMask(dtype=dtype)(context)])


def _check(pieces, cls_id, sep_id, hidden, heads):
    checks.multiple(hidden=hidden, heads=heads)
    if not (0 < cls_id < pieces and 0 < sep_id < pieces):
        signs = f"cls_id={cls_id}, sep_id={sep_id}"
        raise ValueError(f"`cls_id` and `sep_id` should be ids below {pieces}. Received: {signs}")


def _vectors(inputs, counts, hidden, dtype):
    """A table's vectors for each of the inputs, (batch, places, hidden)."""
    named = zip(("words", "segments", "places"), inputs, counts, strict=True)
    return [
        TokenEmbedding(count, 0, hidden, _start(), dtype=dtype, name=name)(ids)
        for name, ids, count in named
    ]


def _block(name, x, mask, heads, dropout, dtype):
    """Attention and two dense layers, each added to what it reads, then normed."""
    hidden, drop = x.shape[-1], partial(Dropout, dropout, dtype=dtype)
    qkv = [_dense(f"{name}_{part}", hidden, x, dtype) for part in ("query", "key", "value")]
    attended = ScaledDotProductAttention(heads, dropout, dtype=dtype)([*qkv, mask])
    attended = drop()(_dense(f"{name}_attended", hidden, attended, dtype))
    x = _norm(f"{name}_attended", [x, attended], dtype)
    wide = GELU(dtype=dtype)(_dense(f"{name}_wide", 4 * hidden, x, dtype))
    narrow = drop()(_dense(f"{name}_narrow", hidden, wide, dtype))
    return _norm(f"{name}_narrow", [x, narrow], dtype)


def _start():
    """The initializer of tables and kernels; one object gives the same numbers each time."""
    return tf.keras.initializers.TruncatedNormal(stddev=0.02)


def _dense(name, units, x, dtype):
    return tf.keras.layers.Dense(units, kernel_initializer=_start(), dtype=dtype, name=name)(x)


def _norm(name, terms, dtype):
    """Their sum, normed."""
    return LayerNorm(1e-12, dtype=dtype, name=f"{name}_norm")(
        tf.keras.layers.Add(dtype=dtype)(terms)
    )


def _describe(args: Arguments) -> tuple[str, str, str]:
    layers, heads = args.get("layers", 12), args.get("heads", 12)
    return f"{layers} layers of {heads} heads", "identity", "GELU"


FAMILY = Family(
    body,
    smallest=lambda args: {"layers": 2, "hidden": 8, "heads": 2},
    describe=_describe,
    reads=("context_pieces", "question_pieces"),
)
