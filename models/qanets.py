"""QANet as in its paper: word and character embeddings, seven blocks in the model encoder.

Yu et al. 2018 (arXiv 1804.09541), sections 2.2 and 4.1.2. `tpu_qanets` has the smaller network of
Google's DAWNBench entry. A token's character vector is the maximum over its characters' vectors.
Axis names: batch; context, tokens of the passage; question; width.
"""

from functools import partial
from typing import Any

import tensorflow as tf

from . import checks
from .layers.attention import Coattention
from .layers.broadcast import Dense
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
from .networks import Family
from .tpu_qanets import Operation, attend, convolve, transform

PASSES = 3  # of the model encoder, with shared weights


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
    """Builds QANet from token and character ids to logits of the answer's first and last token.

    Args:
      character_width: width of character vectors.
      hidden: width of the encoders.
      heads: number of attention heads, a divisor of `hidden`.
      depth: blocks of the model encoder.
      dropout: share of word vectors, layers' outputs and attention weights that training drops, in
        [0, 1); half of it for character vectors.
      layer_dropout: probability that training skips an encoder's last operation, in [0, 1); it
        rises linearly from the first operation on (stochastic depth, Huang et al. 2016).
    """
    checks.multiple(hidden=hidden, heads=heads)
    checks.at_least(1, depth=depth, character_width=character_width)
    checks.below_one(dropout=dropout)
    checks.below_one(layer_dropout=layer_dropout)
    keras = tf.keras.layers
    drop = partial(Dropout, dropout, dtype=dtype)
    words = TokenEmbedding(trained_words, fixed_words, vector_width, dtype=dtype, name="words")
    letters = TokenEmbedding(characters, 0, character_width, dtype=dtype, name="characters")
    join, max_pool = keras.Concatenate(dtype=dtype), CharacterMaxPool(dtype=dtype)
    highways = [Highway(dtype=dtype), Highway(dtype=dtype)]
    sizes: dict[str, Any] = {"hidden": hidden, "heads": heads, "dropout": dropout}
    sizes["layer_dropout"] = layer_dropout
    embedding_encoder = _encoder((1, 4, 7), dtype, **sizes)
    model_encoder = _encoder((depth, 2, 5), dtype, **sizes)

    def embed(ids: tf.Tensor, character_ids: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        spelling = Dropout(dropout / 2, dtype=dtype)(letters(character_ids))
        x = join([drop()(words(ids)), max_pool([spelling, character_ids])])
        for highway in highways:
            x = highway(x)
        return embedding_encoder(x, mask)

    masks = [PaddingMask(dtype=dtype)(ids) for ids in inputs[::2]]
    texts = [embed(inputs[0], inputs[1], masks[0]), embed(inputs[2], inputs[3], masks[1])]
    states = [Coattention(dtype=dtype, name="coattention")([*texts, *masks])]
    for _ in range(PASSES):
        states.append(model_encoder(drop()(states[-1]), masks[0]))
    first, *ends = states[1:]  # (batch, context, hidden)
    logits = [Dense(1, dtype=dtype)(join([first, end])) for end in ends]
    return SpanLogits(dtype=dtype, name="logits")([*logits, masks[0]])


def _encoder(
    shape: tuple[int, int, int],
    dtype: str | None,
    *,
    hidden: int,
    heads: int,
    dropout: float,
    layer_dropout: float,
) -> Operation:
    """Returns an encoder: blocks of convolutions, self-attention and dense layers."""
    # All calls share the weights. `layer_dropout` is that of the last operation.
    depth, convolutions, size = shape  # blocks, convolutions per block, their width in tokens
    project, add_positions = Dense(hidden, dtype=dtype), PositionSignal(dtype=dtype)
    drop = partial(Dropout, dropout, dtype=dtype)
    operations = []
    for _ in range(depth):
        operations += [convolve(hidden, size, dtype) for _ in range(convolutions)]
        operations.append(attend(hidden, heads, dtype, dropout))
        operations.append(transform(hidden, hidden, dtype))
    norms = [LayerNorm(dtype=dtype) for _ in operations]
    add, in_block = tf.keras.layers.Add(dtype=dtype), convolutions + 2

    def encode(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        x = x if x.shape[-1] == hidden else project(x)
        for index, (operation, norm) in enumerate(zip(operations, norms, strict=True)):
            x = add_positions(x) if index % in_block == 0 else x
            # One draw for all axes skips the operation for the whole batch.
            skip_rate = layer_dropout * (index + 1) / len(operations)
            skip = Dropout(skip_rate, shared=(0, 1, 2), dtype=dtype)
            x = add([x, skip(drop()(operation(norm(x), mask)))])
        return x

    return encode


FAMILY = Family(
    body, reads=("context_words", "context_characters", "question_words", "question_characters")
)
