"""Training a recipe: strategies, optimizers, losses, evaluation, checkpoints, progress.

May import: models, recipe, recipes, the shared modules, data. Never: inference, submission,
runs, ranking.
"""
