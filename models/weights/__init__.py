"""Loaders of published weights: `files` and `pickles` read files, `resnets` and `berts` load them.

May import: nothing of dawnbench_tf.
"""
