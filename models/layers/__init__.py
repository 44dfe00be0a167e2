"""Layers and initializers that Keras has not, or has slower; importing this registers them all.

`image`, for feature maps; `text`, for single tokens; `attention`, `recurrent`, `sequence`, for
texts; `views`, of images in the test; `activations`, `convolution` and `dropout`, which train
faster on CPUs than Keras's own of the same names; `initializers`.

May import: nothing of dawnbench_tf.
"""

from . import (  # noqa: F401
    activations,
    attention,
    convolution,
    dropout,
    image,
    initializers,
    recurrent,
    sequence,
    text,
    views,
)
