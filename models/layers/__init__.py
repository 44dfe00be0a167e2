"""Custom Keras layers and initializers; importing this package registers all of them with Keras.

    broadcast                           biases and scales with exact gradients in 16 bits
    image                               feature maps: whitening, batch norms, stochastic depth
    activations, convolution, dropout   as in Keras, but faster in training on CPUs
    text                                token-wise: embeddings, masks, span logits; BERT's input
    attention, recurrent                across tokens: attention, LSTM and SRU
    views                               test-time augmentation
    registration                        names and configs of layers in files
    initializers                        He's, PyTorch's, partial identity

May import: nothing of dawnbench_tf.
"""

from . import (  # noqa: F401
    activations,
    attention,
    broadcast,
    convolution,
    dropout,
    image,
    initializers,
    recurrent,
    text,
    views,
)
