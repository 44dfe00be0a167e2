"""Image classification data: splits that are read by index, augmentation, batches, scores.

May import: models, recipe, the shared modules, data. Never: data.questions, training, inference,
submission, ranking.
"""
