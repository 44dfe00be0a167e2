"""Data sets, and what becomes of them on their way into a model.

Here: a module for each data set, whose `load` reads it. `images/` and `questions/`: the two kinds
of input, each with one value of the same type (`inputs.py`) that training and inference ask for all
they need: batches, examples one by one, references, the network.

May import: models, recipe, the shared modules. Never: training, inference, submission,
ranking.
"""
