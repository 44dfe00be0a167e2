"""Questions on texts: SQuAD's JSON, tokens, vocabulary and word vectors, batches, answers.

May import: models, recipe, the shared modules, data. Never: data.images, training, inference,
submission, ranking.
"""
