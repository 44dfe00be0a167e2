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
from .layers.attention import AttentionPooling
from .layers.dropout import Dropout
from .layers.text import AppendOne, OneHot, PaddingMask, SpanLogits, TokenEmbedding
from .networks import Family
from .reader_blocks import align, bilinear, dense, uniform
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
    extras = [matches, align(c, q, masks[1], dtype), OneHot(tags, dtype=dtype)(context_tags)]
    c = tf.keras.layers.Concatenate(dtype=dtype)([c, *extras])
    c = _stack("context", c, masks[0], [hidden] * layers, drop)  # (.., layers x 2 hidden)
    q = _stack("question", q, masks[1], [hidden] * layers, drop)
    q = AttentionPooling(dtype=dtype)(
        [dense("weigh", q.shape[-1], 1, dtype)(q), q, masks[1]]
    )  # (batch, width)
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


FAMILY = Family(body, reads=("context_words", "context_matches", "context_tags", "question_words"))
