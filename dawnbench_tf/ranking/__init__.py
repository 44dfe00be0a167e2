"""Rankings of entries, published and your own: results, tables, plots, HTML pages.

May import: the shared modules, submission. Never: TensorFlow, data, training, inference.
"""
