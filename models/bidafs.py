"""BiDAF, the reader of DAWNBench's SQuAD seed: context and question to logits of the answer's span.

Seo et al. 2016 (arXiv 1611.01603); where the code of DAWNBench's TensorFlow seed differs, the code.
Axis names: batch; context, tokens of the passage; question; characters, of a token; width.
"""

import tensorflow as tf

from . import checks
from .layers import recurrent
from .layers.attention import BidirectionalAttention, StartAttention
from .layers.broadcast import Dense
from .layers.convolution import Conv2D
from .layers.dropout import Dropout
from .layers.text import Highway, PaddingMask, SpanLogits, TokenEmbedding
from .networks import Family
from .texts import CHARACTERS


def body(
    inputs: list[tf.Tensor],
    dtype: str | None,
    *,
    trained_words: int = 2,
    fixed_words: int = 0,
    vector_width: int = 100,
    characters: int = 2,
    hidden: int = 100,
    character_filters: int = 100,
    dropout: float = 0.2,
) -> tf.Tensor:
    """Builds BiDAF from token and character ids to logits of the answer's first and last token.

    Args:
      hidden: width of each direction of each LSTM.
      character_filters: width of a token's vector that is computed from its characters.
      dropout: share of layers' inputs that training drops, in [0, 1).
    """
    checks.at_least(2, trained_words=trained_words, characters=characters)
    checks.at_least(0, fixed_words=fixed_words)
    checks.at_least(1, hidden=hidden, character_filters=character_filters)
    checks.below_one(dropout=dropout)
    keras = tf.keras.layers
    context, context_characters, question, question_characters = inputs
    normal = tf.keras.initializers.RandomNormal(stddev=1.0)
    words = TokenEmbedding(
        trained_words, fixed_words, vector_width, normal, dtype=dtype, name="words"
    )
    spelling = _spelling(characters, character_filters, dropout, dtype)
    join = keras.Concatenate(dtype=dtype)
    highways = [Highway(dtype=dtype), Highway(dtype=dtype)]

    def embed(token_ids: tf.Tensor, character_ids: tf.Tensor) -> tf.Tensor:
        x = join([spelling(character_ids), words(token_ids)])
        for highway in highways:
            x = highway(x)
        return x

    def drop(x: tf.Tensor) -> tf.Tensor:
        return Dropout(dropout, dtype=dtype)(x)

    masks = [PaddingMask(dtype=dtype)(ids) for ids in (context, question)]
    # Contextual embedding: context and question share the LSTM; only the question has dropout.
    phrase = _bilstm(hidden, character_filters + vector_width, dtype)
    h = phrase(embed(context, context_characters), mask=masks[0])  # (batch, context, 2 hidden)
    u = phrase(drop(embed(question, question_characters)), mask=masks[1])  # (.., question, ..)
    g = BidirectionalAttention(dtype=dtype)([h, u, *masks])  # (batch, context, 8 hidden)
    m = _bilstm(hidden, 8 * hidden, dtype)(drop(g), mask=masks[0])
    m = _bilstm(hidden, 2 * hidden, dtype)(drop(m), mask=masks[0])
    start = Dense(1, dtype=dtype)(drop(join([m, g])))  # (batch, context, 1)
    soft = StartAttention(dtype=dtype)([start, m, masks[0]])  # (batch, context, 4 hidden)
    m = _bilstm(hidden, 14 * hidden, dtype)(drop(join([g, m, soft])), mask=masks[0])
    end = Dense(1, dtype=dtype)(drop(join([m, g])))
    return SpanLogits(dtype=dtype, name="logits")([start, end, masks[0]])


def _spelling(characters: int, filters: int, dropout: float, dtype: str | None) -> tf.keras.Model:
    """Returns a model from a token's characters to a vector: convolution, ReLU, maximum."""
    keras = tf.keras.layers
    ids = tf.keras.Input((None, CHARACTERS), dtype="int32")
    x = TokenEmbedding(characters, 0, 8, dtype=dtype, name="vectors")(ids)
    x = Dropout(dropout, dtype=dtype)(x)
    bias = _uniform(filters, filters)  # TensorFlow 1's default initializer, also for biases
    last = {"data_format": "channels_last", "dtype": dtype}  # whatever the user's Keras is set to
    x = Conv2D(filters, (1, 5), activation="relu", bias_initializer=bias, **last)(x)
    x = keras.MaxPooling2D((1, CHARACTERS - 4), **last)(x)
    x = keras.Reshape((-1, filters), dtype=dtype)(x)
    return tf.keras.Model(ids, x, name="spelling")


def _bilstm(hidden: int, width: int, dtype: str | None) -> tf.keras.layers.Layer:
    """Returns a bidirectional LSTM for inputs of a width."""
    # It is initialized like TensorFlow 1's BasicLSTMCell, which has one matrix for inputs and
    # states, Glorot-uniform. Both directions have the same dropout mask, as Keras's layer has one
    # input; the seed drew one mask for each.
    inputs, states = (_uniform(width + hidden, 4 * hidden) for _ in range(2))
    return recurrent.bilstm(hidden, (inputs, states, "zeros"), dtype)


def _uniform(fan_in: int, fan_out: int) -> tf.keras.initializers.Initializer:
    """Returns Glorot's uniform initializer for given fans, whatever the weight's own shape is."""
    limit = (6 / (fan_in + fan_out)) ** 0.5
    return tf.keras.initializers.RandomUniform(-limit, limit)


FAMILY = Family(
    body, reads=("context_words", "context_characters", "question_words", "question_characters")
)
