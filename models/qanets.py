"""QANet as its paper has it: words and their spelling, seven blocks in the second encoder.

Yu et al. 2018 (arXiv 1804.09541), sections 2.2 and 4.1.2. Google's DAWNBench entry, smaller and
without spelling: tpu_qanets. A spelled word is the largest of its characters' vectors, padding
apart.
Axis names: batch, context (tokens of the passage), question, width.
"""

from functools import partial

import tensorflow as tf

from . import checks
from .layers.attention import Coattention
from .layers.dropout import Dropout
from .layers.text import (
    CharacterMaxPool,
    Highway,
    LayerNorm,
    PaddingMask,
    PositionSignal,
    SpanLogits,
    TokenEmbedding,
)
from .networks import Arguments, Family
from .tpu_qanets import Operation, attend, convolve, transform

PASSES = 3  # of the second encoder, with the same weights


def body(
    inputs: list[tf.Tensor],
    dtype: str | None,
    *,
    trained_words: int = 2,
    fixed_words: int = 0,
    vector_width: int = 300,
    characters: int = 2,
    character_width: int = 200,
    hidden: int = 128,
    heads: int = 8,
    depth: int = 7,
    dropout: float = 0.1,
    layer_dropout: float = 0.1,
) -> tf.Tensor:
    """QANet, token and character ids to logits of the answer's first and last token.

    Id 0 is padding, which must come after all tokens; it never changes an answer.

    Args:
      inputs: int32: token ids of the context (batch, context), character ids (batch, context, 16),
        those of the question (batch, question), (batch, question, 16).
      dtype: precision of the layers as Keras has it; None: Keras's global policy.
      trained_words: token ids whose vectors are trained, padding (0) and unknown (1) included.
      fixed_words: token ids after those, whose vectors are set by
        `model.get_layer("words").set_fixed(vectors)` and stay as they are.
      vector_width: of the words' vectors.
      characters: character ids, padding (0) and unknown (1) included.
      character_width: of the characters' vectors.
      hidden: width of the encoders.
      heads: of their attention; `hidden` is a multiple of it.
      depth: blocks of the second encoder.
      dropout: share that is dropped in training, of words' vectors and between layers, in [0, 1);
        of characters' vectors it is half.
      layer_dropout: probability that training skips an encoder's last operation, in [0, 1); for
        those before it it rises from 0 (Huang et al. 2016).

    Returns:
      float32 logits (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: a number is out of range.
    """
    checks.multiple(hidden=hidden, heads=heads)
    checks.at_least(1, depth=depth, character_width=character_width)
    checks.below_one(dropout=dropout)
    checks.below_one(layer_dropout=layer_dropout)
    keras = tf.keras.layers
    drop = partial(Dropout, dropout, dtype=dtype)
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    spelled = TokenEmbedding(characters, 0, character_width, dtype=dtype, name="characters")
    join, largest = keras.Concatenate(dtype=dtype), CharacterMaxPool(dtype=dtype)
    highways = [Highway(dtype=dtype), Highway(dtype=dtype)]
    sizes = {"hidden": hidden, "heads": heads, "dropout": dropout}
    sizes["layer_dropout"] = layer_dropout
    of_words = _encoder((1, 4, 7), dtype, **sizes)
    of_both = _encoder((depth, 2, 5), dtype, **sizes)

    def embed(ids, character_ids, mask):
        letters = Dropout(dropout / 2, dtype=dtype)(spelled(character_ids))
        x = join([drop()(words(ids)), largest([letters, character_ids])])
        for highway in highways:
            x = highway(x)
        return of_words(x, mask)

    masks = [PaddingMask(dtype=dtype)(ids) for ids in inputs[::2]]
    texts = [embed(inputs[0], inputs[1], masks[0]), embed(inputs[2], inputs[3], masks[1])]
    states = [Coattention(dtype=dtype, name="coattention")([*texts, *masks])]
    for _ in range(PASSES):
        states.append(of_both(drop()(states[-1]), masks[0]))
    first, *ends = states[1:]  # (batch, context, hidden)
    logits = [keras.Dense(1, dtype=dtype)(join([first, end])) for end in ends]
    return SpanLogits(dtype="float32", name="logits")([*logits, masks[0]])


def _encoder(shape, dtype, *, hidden, heads, dropout, layer_dropout) -> Operation:
    """Blocks of convolutions, self-attention and a dense part, whose weights each call shares.

    The shape: how many blocks, convolutions in each, tokens that a convolution sees.
    """
    depth, convolutions, size = shape
    project, timing = tf.keras.layers.Dense(hidden, dtype=dtype), PositionSignal(dtype=dtype)
    drop = partial(Dropout, dropout, dtype=dtype)
    operations = []
    for _ in range(depth):
        operations += [convolve(hidden, size, dtype) for _ in range(convolutions)]
        operations += [attend(hidden, heads, dtype), transform(hidden, hidden, dtype)]
    norms = [LayerNorm(dtype=dtype) for _ in operations]
    add, in_block = tf.keras.layers.Add(dtype=dtype), convolutions + 2

    def encode(x, mask):
        x = x if x.shape[-1] == hidden else project(x)
        for place, (operation, norm) in enumerate(zip(operations, norms, strict=True)):
            x = timing(x) if place % in_block == 0 else x
            skipped = layer_dropout * (place + 1) / len(operations)
            skip = Dropout(skipped, shared=(0, 1, 2), dtype=dtype)
            x = add([x, skip(drop()(operation(norm(x), mask)))])
        return x

    return encode


def _describe(args: Arguments) -> tuple[str, str, str]:
    return f"convolutions, {args.get('heads', 8)} heads", "identity, highway", "ReLU"


FAMILY = Family(
    body,
    smallest=lambda args: {"hidden": 8, "heads": 2, "depth": 2, "character_width": 4},
    describe=_describe,
    reads=("context_words", "context_characters", "question_words", "question_characters"),
)
