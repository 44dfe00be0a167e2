"""Results of entries, the published ones among them: tables, plots, pages.

May import: the shared modules, submission. Never: TensorFlow, data, training, inference.
"""
