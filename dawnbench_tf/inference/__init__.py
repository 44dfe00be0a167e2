"""From a trained run to answers: the runtimes, how long each takes, which is the best.

May import: models, recipe, the shared modules, data, training. Never: submission, ranking.
"""
