"""FastFusionNet equals plain NumPy; parameters; padding does not change logits."""

import numpy as np
import tensorflow as tf
from scipy.special import expit, softmax

from dawnbench_tf import models
from dawnbench_tf.models.layers import recurrent
from tests.models.graphs import WORDS, random_reader
from tests.models.test_drqas import TAGS, texts

RNG = np.random.default_rng(0)
HIDDEN = 3


def reader(**overrides):
    sizes = {**WORDS, "hidden": HIDDEN, "tags": TAGS}
    return random_reader("fastfusionnet", 0.3, **sizes, **overrides)


def relu(x):
    return np.maximum(x, 0)


def sru(x, kernel, bias):
    """Computes equations 3 to 7 of Lei et al. 2017, token by token, each direction by itself."""
    count = kernel.shape[1] // (2 * HIDDEN)
    parts = kernel.reshape(len(kernel), count, 2, HIDDEN)
    outputs = []
    for way in range(2):
        tokens = x if way == 0 else x[::-1]
        own = slice(way * HIDDEN, (way + 1) * HIDDEN)
        through = parts[:, 3, way] if count == 4 else np.eye(2 * HIDDEN)[:, own]
        c, rows = np.zeros(HIDDEN), []
        for token in tokens:
            f, r = (expit(token @ parts[:, 1 + g, way] + bias[g, way]) for g in range(2))
            c = f * c + (1 - f) * (token @ parts[:, 0, way])
            rows.append(r * np.tanh(c) + (1 - r) * (token @ through))
        outputs.append(np.array(rows if way == 0 else rows[::-1]))
    return np.concatenate(outputs, 1)


def gru(x, h, kernel, recurrent, bias):
    """PyTorch's GRU cell: the reset gate multiplies the candidate's bias on h."""
    x_gates, h_gates = x @ kernel + bias[0], h @ recurrent + bias[1]
    width = len(h)
    z, r = (expit(x_gates + h_gates)[i * width : (i + 1) * width] for i in range(2))
    candidate = np.tanh(x_gates[2 * width :] + r * h_gates[2 * width :])
    return z * h + (1 - z) * candidate


class Plain:
    """FastFusionNet from section 3 of the paper and its code, for one example, no padding."""

    def __init__(self, model):
        self.weights = {layer.name: layer.get_weights() for layer in model.layers}

    def read(self, name, x):
        outputs = []
        for number in range(2):
            x = sru(x, *self.weights[f"{name}_{number}"])
            outputs.append(x)
        return outputs

    def attend(self, name, levels, c, q, values):
        (key,), (diagonal,) = self.weights[f"{name}_key"], self.weights[name]
        c_keys, q_keys = relu(c @ key), relu(q @ key) * diagonal
        split = lambda x: np.split(x, levels, 1)  # noqa: E731
        parts = zip(split(c_keys), split(q_keys), split(values), strict=True)
        return np.concatenate([softmax(a @ b.T, 1) @ value for a, b, value in parts], 1)

    def dense(self, name, x):
        kernel, bias = self.weights[name]
        return x @ kernel + bias

    def logits(self, words, matches, tags, question):
        join = lambda *parts: np.concatenate(parts, 1)  # noqa: E731
        vectors = np.concatenate(self.weights["words"])
        c_words, q_words = vectors[words], vectors[question]
        tables = zip(self.weights["tag_vectors"], tags.T, strict=True)
        tag_vectors = [table[ids - 1] for table, ids in tables]
        c_keys, q_keys = (relu(self.dense("align", x)) for x in (c_words, q_words))
        aligned = softmax(c_keys @ q_keys.T, 1) @ q_words
        c = self.read("context", join(matches, c_words, *tag_vectors, aligned))
        q = self.read("question", q_words)
        q_understood = self.read("question_understood", join(*q))[-1]
        histories = join(c_words, *c), join(q_words, *q)
        fused = self.attend("fusion", 3, *histories, join(*q, q_understood))
        c_understood = self.read("context_understood", join(*c, fused))[-1]
        history = join(histories[0], fused, c_understood)
        boosted = self.attend("self_fusion", 1, history, history, c_understood)
        final = self.read("final", join(c_understood, boosted))[-1]
        pooled_question = softmax(self.dense("weigh", q_understood)[:, 0]) @ q_understood
        first = final @ self.dense("first", pooled_question)
        then = gru(softmax(first) @ final, pooled_question, *self.weights["gru"])
        return np.stack([first, final @ self.dense("last", then)])


def test_logits_equal_plain_numpy():
    model, inputs = reader(dtype="float64"), texts()
    outputs = model(inputs, training=False).numpy()
    assert np.abs(outputs).max() > 0.5
    expected = [Plain(model).logits(*example) for example in zip(*inputs, strict=True)]
    np.testing.assert_allclose(outputs, expected, atol=1e-12)


def test_parameters_equal_a_count_by_hand():
    """Sizes of the entry: 125 per direction, 300-d vectors, 50 parts of speech, 19 entity types."""

    def srus(width):  # the second SRU reads 250 channels and has no fourth projection
        return width * 4 * 250 + 4 * 125 + 250 * 3 * 250 + 4 * 125

    tags = 50 * 12 + 19 * 8
    readers = srus(300 + 4 + 20 + 300) + srus(300) + srus(500) + srus(1250) + srus(500)
    attentions = (300 + 500) * 750 + 750 + (300 + 12 * 125) * 250 + 250
    answer = 251 + 2 * 250 * 251 + 2 * 3 * 250 * 251
    counted = 300 * 301 + tags + readers + attentions + answer
    assert models.get("fastfusionnet").parameters == counted + 2 * 300


def test_the_recurrence_s_gradient_equals_finite_differences():
    decays, inputs = (RNG.random((6, 2, 3)) for _ in range(2))
    with tf.device("CPU"):
        computed, numeric = tf.test.compute_gradient(
            lambda a, b: tf.reduce_sum(tf.sin(recurrent.linear_recurrence(a, b))), [decays, inputs]
        )
    for ours, slope in zip(computed, numeric, strict=True):
        np.testing.assert_allclose(ours, slope, atol=1e-6)


def test_dropout_drops_a_channel_in_all_tokens_of_a_text():
    """In the projections' input and in the states."""
    tf.keras.utils.set_random_seed(0)
    layer = recurrent.SRU(8, dropout=0.5)
    x, mask = tf.ones((1, 20, 5)), tf.ones((1, 20), bool)
    layer([x, mask])
    kernel, bias = np.zeros((5, 4, 16), "f"), np.zeros((2, 2, 8), "f")
    # f = 0 and r = 1: h is tanh(W x), or 0 where dropped.
    kernel[:, 0], bias[0], bias[1] = 1, -20, 20
    layer.set_weights([kernel.reshape(5, 64), bias])
    h = layer([x, mask], training=True).numpy()[0]
    dropped = np.isclose(h, 0, atol=1e-3)
    assert 0 < dropped.mean() < 1 and (dropped == dropped[:1]).all()
    assert np.isclose(h[:, ~dropped[0]], 2, atol=1e-2).all()
