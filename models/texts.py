"""Inputs of readers, by name: shapes and dtypes. This module does not import TensorFlow."""

from typing import NamedTuple

CHARACTERS = 16  # of each token the first 16 characters are used, as in BiDAF's seed
TAGS = 51, 20  # numbers of ids of OntoNotes' parts of speech, entity types; 0: unknown or padding


class TextInput(NamedTuple):
    """Shape and dtype of an input of readers: (batch, tokens, *axes); padding is 0."""

    axes: tuple[int, ...] = ()
    dtype: str = "int32"  # of ids; "float32" for features


INPUTS = {
    "context_words": TextInput(),  # token ids
    "context_characters": TextInput((CHARACTERS,)),  # character ids
    "question_words": TextInput(),
    "question_characters": TextInput((CHARACTERS,)),
    "context_pieces": TextInput(),  # ids of WordPieces: line numbers in BERT's vocabulary
    "question_pieces": TextInput(),
    # Whether the question contains the context token as written, in lower case, as lemma (0 or 1
    # each); term frequency: share of the context's tokens that equal it in lower case.
    "context_matches": TextInput((4,), "float32"),
    "context_tags": TextInput((2,)),  # ids of part of speech and entity type
}
