"""Data sets of the user's own: a module for each form, whose `load` reads it.

May import: data, recipe, the shared modules. Never: training, inference,
submission, ranking.
"""
