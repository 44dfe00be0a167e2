"""FastFusionNet: a reader of SRUs that fuses every level of the question into the context.

Wu et al. 2019 (arXiv 1902.11291), and its code (felixgwu/FastFusionNet); FusionNet is Huang et al.
2018 (arXiv 1711.07341). In that code padding changes SRUs' states; here it does not.
Axis names: batch; context, tokens of the passage; question; width.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from . import checks
from .drqas import align, bilinear, dense, uniform
from .layers.attention import AttentionPooling, DotProductAttention
from .layers.dropout import Dropout
from .layers.initializers import pytorch_uniform
from .layers.recurrent import SRU
from .layers.text import PaddingMask, SpanLogits, TagVectors, TokenEmbedding
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
    hidden: int = 125,
    dropout: float = 0.2,
) -> tf.Tensor:
    """Builds FastFusionNet from token ids and features to logits of the answer's first, last token.

    Args:
      hidden: width of each direction of each SRU.
      dropout: share of channels that training drops, in [0, 1); word vectors have 0.4.
    """
    checks.at_least(1, hidden=hidden, pos=tags[0], entities=tags[1])
    checks.below_one(dropout=dropout)
    context, matches, context_tags, question = inputs
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    masks = [PaddingMask(dtype=dtype)(ids) for ids in (context, question)]
    word_dropout = partial(Dropout, 0.4, shared=(1,), dtype=dtype)
    c_words, q_words = (word_dropout()(words(ids)) for ids in (context, question))
    make = _Layers(hidden, dropout, dtype)
    aligned = align(make.drop(c_words), make.drop(q_words), masks[1], dtype)
    tagged = TagVectors(tags, (12, 8), dtype=dtype, name="tag_vectors")(context_tags)
    c = make.join(matches, c_words, tagged, aligned)
    c, q = _understand(c, c_words, q_words, masks, make)  # both (batch, tokens, 2 hidden)
    return SpanLogits(dtype=dtype, name="logits")([*_answer(c, q, masks, make), masks[0]])


class _Layers(NamedTuple):
    """Layer factories of one network, which share width, dropout and dtype."""

    hidden: int
    dropout: float
    dtype: str | None

    def drop(self, x: tf.Tensor) -> tf.Tensor:
        """Drops channels of x, (batch, width) or (batch, tokens, width): in all tokens alike."""
        shared = () if len(x.shape) == 2 else (1,)
        return Dropout(self.dropout, shared, dtype=self.dtype)(x)

    def join(self, *parts: tf.Tensor) -> tf.Tensor:
        """Concatenates tensors along the last axis."""
        return tf.keras.layers.Concatenate(axis=-1, dtype=self.dtype)(parts)

    def read(self, name: str, x: tf.Tensor, mask: tf.Tensor) -> list[tf.Tensor]:
        """Applies two stacked bidirectional SRUs; returns the outputs of both."""
        outputs = [x]
        for number in range(2):
            sru = SRU(self.hidden, self.dropout, dtype=self.dtype, name=f"{name}_{number}")
            outputs.append(sru([outputs[-1], mask]))
        return outputs[1:]

    def attend(
        self,
        name: str,
        levels: int,
        histories: Sequence[tf.Tensor],
        values: tf.Tensor,
        mask: tf.Tensor,
    ) -> tf.Tensor:
        """Attends from tokens with the first history to `values`, of tokens with the second."""
        settings = {"kernel_initializer": pytorch_uniform(), "use_bias": False}
        width = values.shape[-1]
        key = tf.keras.layers.Dense(width, "relu", dtype=self.dtype, name=f"{name}_key", **settings)
        keys = [key(self.drop(history)) for history in histories]
        attention = DotProductAttention(levels, "trained", dtype=self.dtype, name=name)
        return attention([*keys, values, mask])


def _understand(
    c: tf.Tensor, c_words: tf.Tensor, q_words: tf.Tensor, masks: list[tf.Tensor], make: _Layers
) -> tuple[tf.Tensor, tf.Tensor]:
    """Encodes both texts: fuses the question into the context, then the context into itself."""
    c_levels, q_levels = make.read("context", c, masks[0]), make.read("question", q_words, masks[1])
    q = make.read("question_understood", make.join(*q_levels), masks[1])[-1]
    # Keys are computed from a token's history: the concatenation of all its levels so far.
    histories = make.join(c_words, *c_levels), make.join(q_words, *q_levels)
    fused = make.attend("fusion", 3, histories, make.join(*q_levels, q), masks[1])
    c = make.read("context_understood", make.join(*c_levels, fused), masks[0])[-1]
    history = make.join(histories[0], fused, c)
    boosted = make.attend("self_fusion", 1, [history, history], c, masks[0])
    return make.read("final", make.join(c, boosted), masks[0])[-1], q


def _answer(
    c: tf.Tensor, q: tf.Tensor, masks: list[tf.Tensor], make: _Layers
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns logits of the first and last token, (batch, context, 1) each."""
    # The question vector for the last token is updated by a GRU that reads the likely first token.
    dtype, width = make.dtype, 2 * make.hidden
    weights = dense("weigh", width, 1, dtype)(make.drop(q))
    q = AttentionPooling(dtype=dtype)([weights, q, masks[1]])  # (batch, 2 hidden)
    first = bilinear("first", make.drop(c), make.drop(q), dtype)
    start = AttentionPooling(dtype=dtype)([first, c, masks[0]])
    names = ("kernel_initializer", "recurrent_initializer", "bias_initializer")
    initializers = {name: uniform(width) for name in names}
    update = tf.keras.layers.GRUCell(width, dtype=dtype, name="gru", **initializers)
    q, _ = update(make.drop(start), [make.drop(q)])
    return first, bilinear("last", make.drop(c), make.drop(q), dtype)


FAMILY = Family(body, reads=("context_words", "context_matches", "context_tags", "question_words"))
