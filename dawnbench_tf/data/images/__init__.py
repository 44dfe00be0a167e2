"""Images and the classes they belong to: splits that are fetched by index, augmentation, batches.

May import: models, recipe, the shared modules, data. Never: data.questions, training, inference,
submission, ranking.
"""
