"""FastFusionNet against plain NumPy, sizes by hand, and the rule that padding changes nothing."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models.layers import recurrent
from tests.models import reader_checks
from tests.models.test_drqas import TAGS, sigmoid, softmax, texts

RNG = np.random.default_rng(0)
HIDDEN = 3


def reader(**overrides):
    tf.keras.utils.set_random_seed(0)
    sizes = {"trained_words": 5, "fixed_words": 45, "vector_width": 10, "hidden": HIDDEN}
    model = models.build("fastfusionnet", **{**sizes, "tags": TAGS, **overrides})
    model.get_layer("words").set_fixed(RNG.normal(size=(45, 10)))
    model.set_weights([w + RNG.normal(0, 0.3, w.shape) for w in model.get_weights()])
    return model


def relu(x):
    return np.maximum(x, 0)


def sru(x, kernel, bias):
    """Lei et al. 2017's equations 3 to 7, token by token, one direction after the other."""
    count = kernel.shape[1] // (2 * HIDDEN)
    parts = kernel.reshape(len(kernel), count, 2, HIDDEN)
    outputs = []
    for way in range(2):
        tokens = x if way == 0 else x[::-1]
        through = (
            parts[:, 3, way] if count == 4 else np.eye(2 * HIDDEN)[:, way * HIDDEN :][:, :HIDDEN]
        )
        c, rows = np.zeros(HIDDEN), []
        for token in tokens:
            f, r = (sigmoid(token @ parts[:, 1 + g, way] + bias[g, way]) for g in range(2))
            c = f * c + (1 - f) * (token @ parts[:, 0, way])
            rows.append(r * np.tanh(c) + (1 - r) * (token @ through))
        outputs.append(np.array(rows if way == 0 else rows[::-1]))
    return np.concatenate(outputs, 1)


def gru(x, h, kernel, recurrent, bias):
    """PyTorch's cell: gates z and r, the candidate's bias on h inside the reset gate."""
    of_x, of_h = x @ kernel + bias[0], h @ recurrent + bias[1]
    (z, r), width = (sigmoid(of_x + of_h)[i * len(h) : (i + 1) * len(h)] for i in range(2)), len(h)
    candidate = np.tanh(of_x[2 * width :] + r * of_h[2 * width :])
    return z * h + (1 - z) * candidate


class Plain:
    """The network of the paper's section 3 and its code, for one example without padding."""

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
        of_c, of_q = relu(c @ key), relu(q @ key) * diagonal
        split = lambda x: np.split(x, levels, 1)  # noqa: E731
        parts = zip(split(of_c), split(of_q), split(values), strict=True)
        return np.concatenate([softmax(a @ b.T) @ value for a, b, value in parts], 1)

    def dense(self, name, x):
        kernel, bias = self.weights[name]
        return x @ kernel + bias

    def logits(self, words, matches, tags, question):
        join = lambda *parts: np.concatenate(parts, 1)  # noqa: E731
        vectors = np.concatenate(self.weights["words"])
        c_words, q_words = vectors[words], vectors[question]
        of_tags = [t[ids - 1] for t, ids in zip(self.weights["tag_vectors"], tags.T, strict=True)]
        of_c, of_q = (relu(self.dense("align", x)) for x in (c_words, q_words))
        c = self.read("context", join(matches, c_words, *of_tags, softmax(of_c @ of_q.T) @ q_words))
        q = self.read("question", q_words)
        q_understood = self.read("question_understood", join(*q))[-1]
        histories = join(c_words, *c), join(q_words, *q)
        fused = self.attend("fusion", 3, *histories, join(*q, q_understood))
        c_understood = self.read("context_understood", join(*c, fused))[-1]
        history = join(histories[0], fused, c_understood)
        boosted = self.attend("self_fusion", 1, history, history, c_understood)
        final = self.read("final", join(c_understood, boosted))[-1]
        asked_for = softmax(self.dense("weigh", q_understood)[:, 0]) @ q_understood
        first = final @ self.dense("first", asked_for)
        then = gru(softmax(first) @ final, asked_for, *self.weights["gru"])
        return np.stack([first, final @ self.dense("last", then)])


def test_logits_equal_plain_numpy():
    model, inputs = reader(), texts()
    outputs = model(inputs, training=False).numpy()
    assert np.abs(outputs).max() > 0.5
    plain = Plain(model)
    for example, output in zip(zip(*inputs, strict=True), outputs, strict=True):
        np.testing.assert_allclose(output, plain.logits(*example), rtol=1e-4, atol=1e-5)


@pytest.mark.one_keras
def test_padding_never_changes_an_answer():
    reader_checks.padding_changes_nothing(reader(), texts())


@pytest.mark.one_keras
def test_parameters_counted_by_hand():
    """Of the entry's sizes: 125 each way, 300-d vectors, 50 parts of speech, 19 entity types."""

    def srus(width):  # two of them; the second reads 250, so that x itself is carried
        return width * 4 * 250 + 4 * 125 + 250 * 3 * 250 + 4 * 125

    tags = 50 * 12 + 19 * 8
    readers = srus(300 + 4 + 20 + 300) + srus(300) + srus(500) + srus(1250) + srus(500)
    attentions = (300 + 500) * 750 + 750 + (300 + 12 * 125) * 250 + 250
    answer = 251 + 2 * 250 * 251 + 2 * 3 * 250 * 251
    counted = 300 * 301 + tags + readers + attentions + answer
    reader_checks.parameters_are("fastfusionnet", counted + 2 * 300)


def test_gradients_reach_every_weight():
    reader_checks.gradients_reach_every_weight(reader(), texts(examples=30))


def test_the_recurrence_s_gradient_is_the_slope():
    decays, inputs = (RNG.random((6, 2, 3)) for _ in range(2))
    with tf.device("CPU"):
        computed, numeric = tf.test.compute_gradient(
            lambda a, b: tf.reduce_sum(tf.sin(recurrent.linear_recurrence(a, b))), [decays, inputs]
        )
    for ours, slope in zip(computed, numeric, strict=True):
        np.testing.assert_allclose(ours, slope, atol=1e-6)


def test_dropout_takes_whole_channels_of_a_text():
    """The same for all of its tokens, of the projections' input and of the states."""
    tf.keras.utils.set_random_seed(0)
    layer = recurrent.SRU(8, dropout=0.5)
    x, mask = tf.ones((1, 20, 5)), tf.ones((1, 20), bool)
    layer([x, mask])
    kernel, bias = np.zeros((5, 4, 16), "f"), np.zeros((2, 2, 8), "f")
    kernel[:, 0], bias[0], bias[1] = 1, -20, 20  # f is 0 and r is 1: h is tanh(W x), or dropped
    layer.set_weights([kernel.reshape(5, 64), bias])
    h = layer([x, mask], training=True).numpy()[0]
    dropped = np.isclose(h, 0, atol=1e-3)
    assert 0 < dropped.mean() < 1 and (dropped == dropped[:1]).all()
    assert np.isclose(h[:, ~dropped[0]], 2, atol=1e-2).all()


def test_it_compiles_under_xla_and_comes_back_from_a_file(tmp_path):
    reader_checks.it_compiles_and_comes_back(reader(), texts(), tmp_path)


@pytest.mark.one_keras
@pytest.mark.parametrize("args", [{"hidden": 0}, {"tags": (0, 1)}, {"dropout": 1.0}])
def test_sizes_out_of_range_are_refused(args):
    with pytest.raises(ValueError, match="should be"):
        models.build("fastfusionnet", **args)
