"""Published weights: `loading` loads a file into a model; `resnets`, `berts` match its tensors.

`files` and `pickles` read the formats, `downloads` fetches a file by its name.

May import: nothing of dawnbench_tf.
"""
