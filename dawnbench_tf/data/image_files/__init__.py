"""Image files: class folders, TFRecord shards and tar archives, indexed and read by index.

May import: recipe, the shared modules, data, data.images. Never: data.questions, training,
inference, submission, ranking.
"""
