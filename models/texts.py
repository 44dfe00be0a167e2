"""What readers are given of contexts and questions: their inputs by name. No TensorFlow here."""

CHARACTERS = 16  # of a token, its first; further ones are cut off, as in BiDAF's seed
AXES = {  # of an input of ids, int32: those behind (batch, tokens)
    "context_words": (),
    "context_characters": (CHARACTERS,),
    "question_words": (),
    "question_characters": (CHARACTERS,),
}
