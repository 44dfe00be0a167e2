"""DAWNBench entries: reading and writing their files, rules, prices.

May import: recipe, the shared modules. Never: TensorFlow, data, training, inference, ranking.
"""
