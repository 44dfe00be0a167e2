"""Estimates of a recipe's time and cost to its threshold on this machine, before a run.

`sample` (the timed steps of a recipe), `sampling` (times them, with TensorFlow, in a process of its
own), `process` (starts that process), `prediction` (hours and dollars from a sample and the
recipe's evidence), `layout` (tables for people), `comparison` (several machines side by side).

May import: training, data, models (the catalogue), recipe, recipes, the shared modules. Never:
inference, submission, ranking, studies.
"""
