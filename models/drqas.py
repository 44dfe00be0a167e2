"""DrQA's document reader: LSTMs over words and what is known of them, a bilinear answer.

Chen et al. 2017 (arXiv 1704.00051, section 3.2), in the form of DAWNBench's entries
(hitvoice/DrQA at d9081fe), without the padding that its LSTMs read in training. An LSTM has two
biases, as PyTorch's: each is trained, and counts in the gradient's norm.
Axis names: batch, context (tokens of the passage), question, width.
"""

from functools import partial

import tensorflow as tf

from . import checks
from .layers import recurrent
from .layers.attention import AttentionPooling
from .layers.dropout import Dropout
from .layers.text import AppendOne, OneHot, PaddingMask, SpanLogits, TokenEmbedding
from .networks import Arguments, Family
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
    """DrQA, token ids and what is known of tokens to logits of the answer's first and last token.

    Id 0 is padding, which must come after all tokens; it never changes an answer.

    Args:
      inputs: int32 token ids of the context (batch, context); float32 matches of its tokens
        (batch, context, 4); int32 ids of their parts of speech and entity types (batch, context,
        2); int32 token ids of the question (batch, question).
      dtype: precision of the layers as Keras has it; None: Keras's global policy.
      trained_words: token ids whose vectors are trained, padding (0) and unknown (1) included.
      fixed_words: token ids after those, whose vectors are set by
        `model.get_layer("words").set_fixed(vectors)` and stay as they are.
      vector_width: of the words' vectors.
      tags: ids of parts of speech, and of entity types, padding (0) included.
      hidden: width of each direction of each LSTM.
      layers: LSTMs of context and of question, each over the one below; their outputs are joined.
      dropout: share of words' vectors and of LSTMs' inputs and outputs dropped in training, in
        [0, 1).

    Returns:
      float32 logits (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: a number is out of range.
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
    return SpanLogits(dtype="float32", name="logits")([*ends, masks[0]])


def _stack(name, x, mask, widths, drop):
    """LSTMs both ways, each over the one below: all of their outputs, side by side."""
    outputs, dtype = [x], drop.keywords["dtype"]
    for number, hidden in enumerate(widths):
        starts = uniform(hidden), uniform(hidden), uniform(hidden)
        lstm = recurrent.bilstm(hidden, starts, dtype, f"{name}_{number}")
        # PyTorch's LSTM has a second bias: the kernel's row for an input that is always 1.
        outputs.append(lstm(AppendOne(dtype=dtype)(drop()(outputs[-1])), mask=mask))
    return drop()(tf.keras.layers.Concatenate(axis=-1, dtype=dtype)(outputs[1:]))


def _describe(args: Arguments) -> tuple[str, str, str]:
    return (
        f"{args.get('layers', 3)} LSTMs both ways, {args.get('hidden', 128)} wide",
        "none",
        "tanh",
    )


FAMILY = Family(
    body,
    smallest=lambda args: {"hidden": 3, "layers": 2},
    describe=_describe,
    reads=("context_words", "context_matches", "context_tags", "question_words"),
)
