"""Data sets: loading, input pipelines, augmentation and scores.

One module for each data set, whose `load` reads its files. `dataset` has the interface that
training, inference and users call: batches, single examples, scores, the network. `images/` and
`questions/` implement that interface, one class each.

May import: models, recipe, the shared modules. Never: training, inference, submission,
ranking.
"""
