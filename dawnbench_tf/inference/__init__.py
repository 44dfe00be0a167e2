"""Inference with trained runs: runtimes, their latency, the choice of the fastest.

May import: models, recipe, the shared modules, data, training. Never: submission, ranking.
"""
