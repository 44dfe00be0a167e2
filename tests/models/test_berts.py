"""BERT equals plain NumPy and tf-models-official; parameters; padding does not change logits."""

import re

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf, softmax

from dawnbench_tf import models
from tests.models.graphs import random_reader

LEGACY = tf.keras.layers.Layer.__module__.startswith("tf_keras")
RNG = np.random.default_rng(0)
CLS, SEP = 2, 3
SMALL = {"pieces": 40, "cls_id": CLS, "sep_id": SEP, "positions": 48, "layers": 2}
SMALL |= {"hidden": 12, "heads": 3}
OF_A_LAYER = ("query", "key", "value", "attended", "attended_norm", "wide", "narrow", "narrow_norm")
IN_THEIR_ORDER = ["words", "places", "segments", "embedded_norm"]
IN_THEIR_ORDER += [f"layer_{number}_{part}" for number in range(2) for part in OF_A_LAYER]


def reader(**overrides):
    return random_reader("bert_tiny_span", 0.2, **SMALL, **overrides)


def texts(context=13, question=6, examples=3):
    lengths = (context, question)
    return [RNG.integers(4, 40, (examples, length)).astype(np.int32) for length in lengths]


class Plain:
    """BERT for one sequence without padding, in NumPy, from the paper."""

    def __init__(self, model, heads):
        self.heads, self.model = heads, model
        self.weights = {layer.name: layer.get_weights() for layer in model.layers}
        self.layers = len([name for name in self.weights if re.fullmatch(r"layer_\d+_query", name)])

    def dense(self, name, x):
        kernel, bias = self.weights[name]
        return x @ kernel + bias

    def norm(self, name, x):
        scale, shift = self.weights[f"{name}_norm"]
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * scale + shift

    def attended(self, name, x):
        q, k, v = (self.dense(f"{name}_{part}", x) for part in ("query", "key", "value"))
        size, parts = x.shape[1] // self.heads, []
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            shares = softmax(q[:, own] @ k[:, own].T / np.sqrt(size), -1)
            parts.append(shares @ v[:, own])
        return self.dense(f"{name}_attended", np.concatenate(parts, 1))

    def hidden(self, ids, segments):
        names = "words", "places", "segments"
        (words,), (positions,), (kinds,) = (self.weights[name] for name in names)
        x = self.norm("embedded", words[ids] + positions[: len(ids)] + kinds[segments])
        for number in range(self.layers):
            name = f"layer_{number}"
            x = self.norm(f"{name}_attended", x + self.attended(name, x))
            wide = self.dense(f"{name}_wide", x)
            wide = wide * (1 + erf(wide / np.sqrt(2))) / 2
            x = self.norm(f"{name}_narrow", x + self.dense(f"{name}_narrow", wide))
        return x

    def logits(self, context, question):
        ids = [CLS, *question, SEP, *context, SEP]
        first = len(question) + 2
        segments = np.arange(len(ids)) >= first
        x = self.hidden(ids, segments.astype(int))[first:-1]
        return np.concatenate([self.dense("first", x), self.dense("last", x)], 1).T


def test_logits_equal_plain_numpy():
    model, (contexts, questions) = reader(), texts()
    plain, outputs = Plain(model, 3), model([contexts, questions], training=False)
    expected = np.stack([plain.logits(*pair) for pair in zip(contexts, questions, strict=True)])
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not LEGACY, reason="tf-models-official's layers are tf-keras's")
def test_hidden_states_equal_tf_models_official_s():
    from official.nlp.modeling.networks import BertEncoderV2

    model, (context, question) = reader(), texts(examples=1)
    theirs = BertEncoderV2(
        40,
        hidden_size=12,
        num_layers=2,
        num_attention_heads=3,
        max_sequence_length=48,
        type_vocab_size=2,
        inner_dim=48,
        inner_activation=lambda x: tf.nn.gelu(x, approximate=False),
    )
    ids = np.concatenate([[[CLS]], question, [[SEP]], context, [[SEP]]], 1).astype(np.int32)
    segments = (np.arange(ids.shape[1]) >= question.shape[1] + 2).astype(np.int32)[None]
    inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": segments}
    theirs(inputs)
    values = [w for name in IN_THEIR_ORDER for w in model.get_layer(name).get_weights()]
    for weight, value in zip(theirs.weights, values, strict=False):  # theirs also has a pooler
        weight.assign(value.reshape(weight.shape))
    outputs = theirs(inputs)["sequence_output"][:, question.shape[1] + 2 : -1]
    features = tf.keras.Model(model.inputs, model.get_layer("features").output)
    np.testing.assert_allclose(features([context, question]), outputs, rtol=1e-4, atol=1e-5)


def test_a_batch_of_different_lengths_equals_single_texts():
    model, (contexts, questions) = reader(), texts()
    contexts[1, 9:], questions[2, 2:] = 0, 0
    together = model([contexts, questions], training=False).numpy()
    for row, (context, question) in enumerate(zip(contexts, questions, strict=True)):
        alone = [ids[ids > 0][None] for ids in (context, question)]
        expected = model(alone, training=False)[0]
        np.testing.assert_allclose(together[row, :, : expected.shape[1]], expected, atol=1e-5)


def test_parameters_equal_a_count_by_hand():
    """bert_base's encoder has 109,482,240 published parameters, 590,592 of them in the pooler."""
    for name in [name for name in models.names() if models.get(name).family == "berts"]:
        args = {"layers": 12, "hidden": 768, **models.get(name).args}
        layers, width = args["layers"], args["hidden"]
        tables = (30_522 + 512 + 2) * width + 2 * width
        attention = 4 * (width * width + width) + 2 * width
        dense = (width * 4 * width + 4 * width) + (4 * width * width + width) + 2 * width
        counted = tables + layers * (attention + dense)
        assert name != "bert_base_span" or counted == 109_482_240 - 590_592
        assert models.get(name).parameters == counted + 2 * (width + 1), name
    assert models.get("bert_tiny_span").parameters == 4_369_666


def test_each_kernel_is_initialized_with_a_draw_of_its_own():
    tf.keras.utils.set_random_seed(0)
    model = models.build("bert_tiny_span", **SMALL)
    kernels = [layer.kernel for layer in model.layers if hasattr(layer, "kernel")]
    kernels_of_one_shape = [np.asarray(k) for k in kernels if tuple(k.shape) == (12, 12)]
    assert len(kernels_of_one_shape) == 8
    assert len({kernel.tobytes() for kernel in kernels_of_one_shape}) == 8
    truncated = 0.02 * 0.88  # truncated at two standard deviations
    assert np.std(kernels_of_one_shape) == pytest.approx(truncated, rel=0.1)
