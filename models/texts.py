"""Inputs of readers, by name: shapes and dtypes. This module does not import TensorFlow.

Readers' `body` functions take a list of tensors, of the inputs that their FAMILY `reads`. Id 0 is
padding, after all tokens of a text, of one at least; the amount of padding does not change the
logits. Arguments:

    dtype          Keras dtype or policy of the layers; None: Keras's global policy
    trained_words  number of trained word vectors, including padding (0) and unknown (1)
    fixed_words    number of fixed word vectors, whose ids follow; they are zeros until
                   model.get_layer("words").set_fixed(vectors)
    vector_width   width of word vectors
    characters     number of character ids, including padding (0) and unknown (1)
    tags           numbers of ids of parts of speech and of entity types, including padding (0)

They return float32 logits of the answer's first and last token, (batch, 2, context), -1e30 at
padding, and raise ValueError for an argument out of range.
"""

CHARACTERS = 16  # of each token the first 16 characters are used, as in BiDAF's seed
TAGS = 51, 20  # numbers of ids of OntoNotes' parts of speech, entity types; 0: unknown or padding
INPUTS: dict[str, tuple[tuple[int, ...], str]] = {  # axes after (batch, tokens); dtype
    "context_words": ((), "int32"),  # token ids
    "context_characters": ((CHARACTERS,), "int32"),  # character ids
    "question_words": ((), "int32"),
    "question_characters": ((CHARACTERS,), "int32"),
    "context_pieces": ((), "int32"),  # ids of WordPieces: line numbers in BERT's vocabulary
    "question_pieces": ((), "int32"),
    # Whether the question contains the context token as written, in lower case, as lemma (0 or 1
    # each); term frequency: share of the context's tokens that equal it in lower case.
    "context_matches": ((4,), "float32"),
    "context_tags": ((2,), "int32"),  # ids of part of speech and entity type
}
