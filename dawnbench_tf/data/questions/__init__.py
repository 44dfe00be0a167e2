"""Question answering data: SQuAD's JSON, tokens, vocabulary, word vectors, batches, answers.

May import: models, recipe, the shared modules, data. Never: data.images, training, inference,
submission, ranking.
"""
