"""From a recipe to a trained model: strategies, optimizers, losses, evaluation, checkpoints.

May import: models, recipe, recipes, the shared modules, data. Never: inference, submission,
ranking.
"""
