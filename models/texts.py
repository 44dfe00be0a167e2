"""What readers are given of contexts and questions: their inputs by name. No TensorFlow here."""

from typing import NamedTuple

CHARACTERS = 16  # of a token, its first; further ones are cut off, as in BiDAF's seed
TAGS = 51, 20  # ids of parts of speech and of entity types: OntoNotes', 0 being unknown or padding


class TextInput(NamedTuple):
    """An input of readers, (batch, tokens, *axes)."""

    axes: tuple[int, ...] = ()
    dtype: str = "int32"  # ids, 0 being padding; or numbers, 0 in padding


INPUTS = {
    "context_words": TextInput(),
    "context_characters": TextInput((CHARACTERS,)),
    "question_words": TextInput(),
    "question_characters": TextInput((CHARACTERS,)),
    "context_pieces": TextInput(),  # WordPieces, by their lines in the vocabulary
    "question_pieces": TextInput(),
    # Whether the question has the token as written, in lower case, or its lemma: 0 or 1 each; the
    # share of the context's tokens that are this one, in lower case.
    "context_matches": TextInput((4,), "float32"),
    "context_tags": TextInput((2,)),  # ids of part of speech and of entity type
}
