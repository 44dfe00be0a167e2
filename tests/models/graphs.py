"""Readers with random weights, and as graphs."""

import numpy as np
import tensorflow as tf

from dawnbench_tf import models

WORDS = {"trained_words": 5, "fixed_words": 45, "vector_width": 10}


def random_reader(name, scale, **arguments):
    """Builds a reader; equal arguments give equal weights, initial ones with noise."""
    tf.keras.utils.set_random_seed(0)
    model, random = models.build(name, **arguments), np.random.default_rng(0)
    if fixed := arguments.get("fixed_words"):
        vectors = random.normal(size=(fixed, arguments["vector_width"]))
        model.get_layer("words").set_fixed(vectors)
    model.set_weights([w + random.normal(0, scale, w.shape) for w in model.get_weights()])
    return model


def as_graph(model):
    """Returns the model as one graph for all lengths: eager tf-keras would trace each LSTM anew."""
    shapes = [tf.TensorSpec(x.shape, x.dtype) for x in model.inputs]
    graph = tf.function(lambda *inputs: model([*inputs], training=False), input_signature=shapes)
    return lambda inputs: graph(*map(tf.constant, inputs)).numpy()
