"""BiDAF, the reader of DAWNBench's SQuAD entries: passage and question to the answer's ends.

Seo et al. 2016 (arXiv 1611.01603), and the code of DAWNBench's TensorFlow seed where it differs.
Axis names: batch, context (words of the passage), question, characters, width.
"""

import tensorflow as tf

from .attention import BidirectionalAttention, Highway, IsWord, SpanLogits, Vectors, Weighted

CHARACTERS = 16  # of a word
_KERAS = tf.keras.layers


def build(
    *,
    trained_words=2,
    fixed_words=0,
    characters=2,
    hidden=100,
    character_filters=100,
    dropout=0.2,
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """BiDAF, numbers of words and characters to logits of the answer's first and last word.

    Number 0 is padding, which must come after all words; it never changes an answer.

    Args:
      trained_words: words whose vectors are trained, padding (0) and unknown (1) included.
      fixed_words: words with given vectors, numbered after those; set by
        `model.get_layer("words").set_fixed(vectors)`.
      characters: different characters, padding (0) and unknown (1) included.
      hidden: width of each direction of each LSTM.
      character_filters: width of a word as its characters spell it.
      dropout: share of inputs dropped in training, in [0, 1).
      dtype: precision of the layers, e.g. "mixed_bfloat16"; default: Keras's global policy.
      name: of the Keras model.

    Returns:
      A `tf.keras.Model` of four inputs, int32: words of the passage (batch, context), their
      characters (batch, context, 16), words of the question (batch, question), their characters;
      to float32 logits (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: a number is out of range.
    """
    _check(trained_words, fixed_words, characters, hidden, character_filters, dropout)
    inputs = [_inputs("context"), _inputs("question")]
    normal = tf.keras.initializers.RandomNormal(stddev=1.0)
    words = Vectors(trained_words, fixed_words, 100, normal, dtype=dtype, name="words")
    spelling = _spelling(characters, character_filters, dropout, dtype)
    join = _KERAS.Concatenate(dtype=dtype)
    highways = [Highway(dtype=dtype), Highway(dtype=dtype)]

    def embed(word, letters):
        x = join([spelling(letters), words(word)])
        for highway in highways:
            x = highway(x)
        return x

    def drop(x):
        return _KERAS.Dropout(dropout, dtype=dtype)(x)

    masks = [IsWord(dtype=dtype)(word) for word, _ in inputs]
    phrase = _bilstm(hidden, dtype)  # shared; dropout in front of it on the question's side only
    h = phrase(embed(*inputs[0]), mask=masks[0])  # (batch, context, 2 hidden)
    u = phrase(drop(embed(*inputs[1])), mask=masks[1])  # (batch, question, 2 hidden)
    g = BidirectionalAttention(dtype=dtype)([h, u, *masks])  # (batch, context, 8 hidden)
    m = _bilstm(hidden, dtype)(drop(g), mask=masks[0])
    m = _bilstm(hidden, dtype)(drop(m), mask=masks[0])
    start = _KERAS.Dense(1, dtype=dtype)(drop(join([m, g])))  # (batch, context, 1)
    soft = Weighted(dtype=dtype)([start, m, masks[0]])  # where the answer may start: (.., 4 hidden)
    m = _bilstm(hidden, dtype)(drop(join([g, m, soft])), mask=masks[0])
    end = _KERAS.Dense(1, dtype=dtype)(drop(join([m, g])))
    logits = SpanLogits(dtype="float32", name="logits")([start, end, masks[0]])
    return tf.keras.Model([x for pair in inputs for x in pair], logits, name=name)


def _check(trained_words, fixed_words, characters, hidden, character_filters, dropout):
    for argument, value, least in (
        ("trained_words", trained_words, 2),
        ("fixed_words", fixed_words, 0),
        ("characters", characters, 2),
        ("hidden", hidden, 1),
        ("character_filters", character_filters, 1),
    ):
        if value < least:
            raise ValueError(f"`{argument}` should be at least {least}. Received: {value}")
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` should be in [0, 1). Received: dropout={dropout}")


def _inputs(name):
    word = tf.keras.Input((None,), dtype="int32", name=f"{name}_words")
    return word, tf.keras.Input((None, CHARACTERS), dtype="int32", name=f"{name}_characters")


def _spelling(characters, filters, dropout, dtype):
    """A word's vector from its characters: convolution of width 5, ReLU, maximum over places."""
    letters = tf.keras.Input((None, CHARACTERS), dtype="int32")
    x = _KERAS.Dropout(dropout, dtype=dtype)(Vectors(characters, 0, 8, dtype=dtype)(letters))
    x = _KERAS.Conv2D(filters, (1, 5), activation="relu", dtype=dtype)(x)
    x = _KERAS.MaxPooling2D((1, CHARACTERS - 4), dtype=dtype)(x)
    x = _KERAS.Reshape((-1, filters), dtype=dtype)(x)
    return tf.keras.Model(letters, x, name="spelling")


def _bilstm(hidden, dtype):
    """Keras's own, in the form that cuDNN takes; measured as fast as anything else on CPUs."""
    lstm = _KERAS.LSTM(
        hidden, return_sequences=True, recurrent_initializer="glorot_uniform", dtype=dtype
    )
    return _KERAS.Bidirectional(lstm, dtype=dtype)
