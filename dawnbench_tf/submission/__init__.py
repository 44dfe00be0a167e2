"""DAWNBench entries: reading and writing their files, rules, the entry of a run, prices.

May import: recipe, the shared modules. Never: TensorFlow, data, training, inference, ranking.
"""
