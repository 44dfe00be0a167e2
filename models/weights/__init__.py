"""Published weights: `resnets` and `berts` load files that `files` and `pickles` read.

May import: nothing of dawnbench_tf.
"""
