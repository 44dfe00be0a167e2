"""Entries: files as anybody wrote them, the form, its rules, the entry of a run, prices.

May import: recipe, the shared modules. Never: TensorFlow, data, training, inference, ranking.
"""
