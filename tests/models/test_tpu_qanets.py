"""Google's QANet equals plain NumPy; parameters; padding does not change logits."""

import numpy as np
import tensorflow as tf
from scipy.special import softmax

from dawnbench_tf import models
from dawnbench_tf.models.layers import text
from tests.models.conftest import layers_of
from tests.models.graphs import WORDS, random_reader

KERAS = tf.keras.layers
RNG = np.random.default_rng(0)
WIDTH, HEADS = 12, 3


def reader(**overrides):
    return random_reader("qanet_tpu", 0.1, **WORDS, hidden=WIDTH, heads=HEADS, **overrides)


def texts(context=13, question=6, examples=3):
    lengths = (context, question)
    return [RNG.integers(1, 50, (examples, length)).astype(np.int32) for length in lengths]


class Plain:
    """The entry's network, from its code, in NumPy, without padding."""

    def __init__(self, model):
        def weights_of(cls):
            return [layer.get_weights() for layer in layers_of(cls, model)]

        self.convs, self.norms = weights_of(KERAS.SeparableConv1D), weights_of(text.LayerNorm)
        denses = weights_of(KERAS.Dense)
        self.denses = [weights for weights in denses if len(weights) == 2]
        kernels = [kernel for kernel, *bias in denses if not bias]  # four of each attention
        self.attentions = [kernels[i : i + 4] for i in range(0, len(kernels), 4)]
        self.words = np.concatenate(model.get_layer("words").get_weights())
        self.similarity = model.get_layer("coattention").get_weights()[0]

    def encode(self, x, structure, first_conv, first_norm, attention, denses):
        wide, back, project = denses
        if x.shape[-1] != WIDTH:
            x = x @ self.denses[project][0] + self.denses[project][1]
        x = self.located(x)
        for number, part in enumerate(structure):
            normal = self.normal(x, first_norm + number)
            if part == "conv":
                y = self.conv(normal, first_conv + number)
            elif part == "att":
                y = self.attend(normal, attention)
            else:
                hidden = np.maximum(normal @ self.denses[wide][0] + self.denses[wide][1], 0)
                y = hidden @ self.denses[back][0] + self.denses[back][1]
            x = x + y
        return self.normal(x, first_norm + len(structure))

    def located(self, x):
        frequencies = 1e4 ** (-np.arange(WIDTH // 2) / (WIDTH // 2 - 1))
        angles = np.arange(x.shape[1])[:, None] * frequencies
        return x + np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def normal(self, x, number):
        (scale, shift), mean = self.norms[number], x.mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * scale + shift

    def conv(self, x, number):
        depthwise, pointwise, bias = self.convs[number]  # (size, width, 1), (1, width, width)
        size = depthwise.shape[0]  # 7 except in the paper's model encoder
        padded = np.pad(x, [(0, 0), (size // 2, size // 2), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, size, 1)  # (b, t, width, size)
        depth = np.einsum("btck,kc->btc", windows, depthwise[..., 0])
        return np.maximum(depth @ pointwise[0] + bias, 0)

    def attend(self, x, number):
        *projections, output = self.attentions[number]
        size = (*x.shape[:2], HEADS, -1)
        q, k, v = ((x @ kernel).reshape(size).transpose(0, 2, 1, 3) for kernel in projections)
        share = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS), 3)
        return (share @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ output

    def both(self, x, q):
        x_weights, q_weights, product_weights = self.similarity
        s = (x @ x_weights)[:, :, None] + (q @ q_weights)[:, None]
        s = s + np.einsum("bxc,bqc->bxq", x * product_weights, q)
        xq, qx = softmax(s, 2) @ q, softmax(s, 2) @ softmax(s.transpose(0, 2, 1), 2) @ x
        return np.concatenate([x, xq, x * xq, x * qx], 2)

    def logits(self, context, question):
        first = ["conv"] * 4 + ["att", "ffn"], 0, 0, 0, (0, 1, 2)
        x, q = (self.encode(self.words[ids], *first) for ids in (context, question))
        net, outputs = self.both(x, q), []
        for _ in range(4):
            net = self.encode(net, ["conv", "conv", "att", "ffn"], 4, 7, 1, (3, 4, 5))
            outputs.append(net)
        ends = []
        for number, end in ((6, outputs[2]), (7, outputs[3])):
            kernel, bias = self.denses[number]
            ends.append((np.concatenate([outputs[1], end], 2) @ kernel + bias)[..., 0])
        return np.stack(ends, 1)


def test_logits_equal_plain_numpy():
    model, inputs = reader(dtype="float64"), texts()
    expected = Plain(model).logits(*inputs)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(model(inputs, training=False), expected, atol=1e-12)


def test_parameters_equal_a_count_by_hand():
    """Sizes of the entry; each of two trained words adds 300."""
    conv, norm = 7 * 128 + 128 * 128 + 128, 2 * 128
    attention_and_dense = 4 * 128 * 128 + (128 * 256 + 256) + (256 * 128 + 128)
    embedding_encoder = 300 * 128 + 128 + 4 * conv + 7 * norm + attention_and_dense
    model_encoder = 512 * 128 + 128 + 2 * conv + 5 * norm + attention_and_dense
    counted = embedding_encoder + model_encoder + 3 * 128 + 2 * 257
    assert models.get("qanet_tpu").parameters == counted + 2 * 300
