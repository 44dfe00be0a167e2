"""DrQA equals plain NumPy; parameters; padding does not change logits."""

import numpy as np
import tensorflow as tf
from scipy.special import expit, softmax

from dawnbench_tf import models
from dawnbench_tf.models.layers import text
from tests.models.graphs import WORDS, as_graph, random_reader

RNG = np.random.default_rng(0)
TAGS = (5, 4)


def reader(**overrides):
    sizes = {**WORDS, "hidden": 4, "layers": 2, "tags": TAGS}
    return random_reader("drqa", 0.3, **sizes, **overrides)


def texts(context=9, question=5, examples=3):
    words = RNG.integers(1, 50, (examples, context)).astype(np.int32)
    matches = RNG.random((examples, context, 4)).astype(np.float32)
    tags = RNG.integers(1, TAGS, (examples, context, 2)).astype(np.int32)
    return [words, matches, tags, RNG.integers(1, 50, (examples, question)).astype(np.int32)]


def lstm(x, kernel, recurrent, bias):
    """LSTM (Gers et al. 2000), gates i, f, candidate, o: (tokens, width) to (tokens, hidden)."""
    h = c = np.zeros(recurrent.shape[0])
    outputs = []
    for token in x:
        i, f, candidate, o = np.split(token @ kernel + h @ recurrent + bias, 4)
        c = expit(f) * c + expit(i) * np.tanh(candidate)
        h = expit(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def plain(model, words, matches, tags, question):
    """Computes section 3.2 of the paper as in the entries' code, for one example, no padding."""
    vectors = np.concatenate(model.get_layer("words").get_weights())
    c, q = vectors[words], vectors[question]
    weights = {layer.name: layer.get_weights() for layer in model.layers}
    kernel, bias = weights["align"]
    c_keys, q_keys = (np.maximum(x @ kernel + bias, 0) for x in (c, q))
    aligned = softmax(c_keys @ q_keys.T, 1) @ q
    ones = [np.eye(count)[column][:, 1:] for count, column in zip(TAGS, tags.T, strict=True)]
    c = np.concatenate([c, matches, aligned, *ones], 1)

    def stack(x, name):
        outputs = []
        for number in range(2):
            forward, back = np.split(np.array(weights[f"{name}_{number}"], object), 2)
            x = np.concatenate([x, np.ones((len(x), 1))], 1)
            x = np.concatenate([lstm(x, *forward), lstm(x[::-1], *back)[::-1]], 1)
            outputs.append(x)
        return np.concatenate(outputs, 1)

    c, q = stack(c, "context"), stack(q, "question")
    kernel, bias = weights["weigh"]
    q = softmax((q @ kernel + bias)[:, 0]) @ q
    ends = weights["first"], weights["last"]
    return np.stack([c @ (q @ kernel + bias) for kernel, bias in ends])


def test_logits_equal_plain_numpy():
    model, inputs = reader(dtype="float64"), texts()
    outputs = as_graph(model)(inputs)
    assert np.abs(outputs).max() > 0.5
    expected = [plain(model, *example) for example in zip(*inputs, strict=True)]
    np.testing.assert_allclose(outputs, expected, atol=1e-12)


def test_parameters_equal_a_count_by_hand():
    """Sizes of the entries; their spaCy has 50 parts of speech and 19 entity types."""

    def lstms(width):
        return 2 * 4 * 128 * (width + 128 + 2)  # PyTorch's two biases

    context_lstms = lstms(300 + 4 + 300 + 50 + 19) + 2 * lstms(256)
    question_lstms = lstms(300) + 2 * lstms(256)
    counted = 300 * 301 + context_lstms + question_lstms + 768 + 1 + 2 * 768 * 769
    assert models.get("drqa").parameters == counted + 2 * 300


def test_the_last_trained_vectors_can_be_set():
    layer = text.TokenEmbedding(5, 45, 10)
    layer(np.zeros((1, 2), "int32"))
    before = layer.get_weights()[0]
    layer.set_last_trained(np.full((2, 10), 7.0))
    np.testing.assert_array_equal(layer.get_weights()[0], [*before[:3], *np.full((2, 10), 7)])


def test_a_reader_of_one_layer_comes_back_from_its_config():
    model = models.build("drqa", layers=1, hidden=3)  # tf-keras joins no single output
    again = tf.keras.Model.from_config(model.get_config())
    assert again.count_params() == model.count_params()
