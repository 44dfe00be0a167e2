"""Data sets, and what becomes of them on their way into a model.

Here: a module for each data set, whose `load` reads it; `dataset`, what training, inference and
users take of it: batches, examples one by one, scores, the network. `images/` and `questions/`: the
two kinds, each with a class of its own for that.

May import: models, recipe, the shared modules. Never: training, inference, submission,
ranking.
"""
