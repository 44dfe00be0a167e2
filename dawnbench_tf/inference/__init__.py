"""Inference with trained runs or published weights: runtimes, latency, choice of the fastest.

May import: models, recipe, recipes, the shared modules, data, training. Never: submission, ranking.
"""
