"""The paper's QANet equals plain NumPy; parameters; padding does not change logits."""

import numpy as np
import pytest
from scipy.special import expit

from dawnbench_tf import models
from dawnbench_tf.models.layers.dropout import Dropout
from tests.models.graphs import WORDS, random_reader
from tests.models.test_tpu_qanets import Plain

RNG = np.random.default_rng(0)
WIDTH, LETTERS, DEPTH = 12, 6, 2


def reader(**overrides):
    sizes = {**WORDS, "characters": 9, "character_width": LETTERS}
    sizes |= {"hidden": WIDTH, "heads": 3, "depth": DEPTH}
    return random_reader("qanet", 0.1, **sizes, **overrides)


def texts(context=13, question=6, examples=3):
    inputs = []
    for length in (context, question):
        inputs.append(RNG.integers(1, 50, (examples, length)).astype(np.int32))
        letters = RNG.integers(1, 9, (examples, length, 16))
        ends = RNG.integers(1, 17, (examples, length, 1))
        inputs.append(np.where(np.arange(16) < ends, letters, 0).astype(np.int32))
    return inputs


class Deep(Plain):
    """The paper's network in NumPy, without padding, with the operations of Google's."""

    def __init__(self, model):
        super().__init__(model)
        self.letters = model.get_layer("characters").get_weights()[0]
        layers = [layer for layer in model.layers if "highway" in layer.name]
        self.highways = [layer.get_weights() for layer in layers]

    def embedded(self, ids, letters):
        vectors = np.where(letters[..., None] > 0, self.letters[letters], -np.inf).max(2)
        x = np.concatenate([self.words[ids], vectors], 2)
        for transform, transform_bias, gate, gate_bias in self.highways:
            share = expit(x @ gate + gate_bias)
            x = share * np.maximum(x @ transform + transform_bias, 0) + (1 - share) * x
        return x

    def blocks(self, x, blocks, convolutions, first):
        conv, norm, attention, dense = first
        for _ in range(blocks):
            x = self.located(x)
            for _ in range(convolutions):
                x, conv, norm = x + self.conv(self.normal(x, norm), conv), conv + 1, norm + 1
            x, attention = x + self.attend(self.normal(x, norm), attention), attention + 1
            (wide, wide_bias), (back, back_bias) = self.denses[dense : dense + 2]
            hidden = np.maximum(self.normal(x, norm + 1) @ wide + wide_bias, 0)
            x, norm, dense = x + hidden @ back + back_bias, norm + 2, dense + 2
        return x

    def logits(self, *inputs):
        # Dense layers in order of creation: an encoder's projection, then those of its blocks.
        encoded = []
        for ids, letters in (inputs[:2], inputs[2:]):
            x = self.embedded(ids, letters)
            x = x @ self.denses[0][0] + self.denses[0][1]
            encoded.append(self.blocks(x, 1, 4, (0, 0, 0, 1)))
        states = [self.both(*encoded) @ self.denses[3][0] + self.denses[3][1]]
        for _ in range(3):
            states.append(self.blocks(states[-1], DEPTH, 2, (4, 6, 1, 4)))
        ends = []
        for state, (kernel, bias) in zip(states[2:], self.denses[-2:], strict=True):
            ends.append((np.concatenate([states[1], state], 2) @ kernel + bias)[..., 0])
        return np.stack(ends, 1)


def test_logits_equal_plain_numpy():
    model, inputs = reader(dtype="float64"), texts()
    expected = Deep(model).logits(*inputs)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(model(inputs, training=False), expected, atol=1e-12)


def test_parameters_equal_a_count_by_hand():
    """Sizes of the paper; each of two trained words adds 300, each of two characters 200."""

    def block(convolutions, size):
        conv, norm = size * 128 + 128 * 128 + 128, 2 * 128
        dense = 2 * (128 * 128 + 128)
        return convolutions * (conv + norm) + (4 * 128 * 128 + norm) + (dense + norm)

    highways = 2 * 2 * (500 * 500 + 500)
    embedding_encoder = 500 * 128 + 128 + block(4, 7)
    model_encoder = 512 * 128 + 128 + 7 * block(2, 5)
    counted = highways + embedding_encoder + model_encoder + 3 * 128 + 2 * 257
    assert models.get("qanet").parameters == counted + 2 * 300 + 2 * 200


def test_later_operations_are_skipped_more_often():
    dropouts = [layer for layer in reader().layers if isinstance(layer, Dropout)]
    skips = [layer.rate for layer in dropouts if layer.shared == (0, 1, 2)]
    one_pass = sorted(skips[-4 * DEPTH :])
    assert one_pass == pytest.approx([0.1 * (n + 1) / (4 * DEPTH) for n in range(4 * DEPTH)])


def test_without_dropout_training_is_no_chance():
    model, inputs = reader(dropout=0, layer_dropout=0), texts()
    first, second = (model(inputs, training=True) for _ in range(2))
    np.testing.assert_array_equal(first, second)
