"""Rankings of entries, published and your own: results, tables, plots, HTML pages.

May import: the shared modules, recipe, recipes, submission. Never: TensorFlow, data, training,
inference.
"""
