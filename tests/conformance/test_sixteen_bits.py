"""In 16 bits the gradient of each weight is the sum of its terms, in every kind of network."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import machine, models, recipes
from dawnbench_tf.data import dataset
from tests.conformance.test_recipes import FEW, KERNELS, NAMES, SPLITS, build_smallest, covering

pytestmark = pytest.mark.usefixtures("forgets_models")
SIXTEEN = runpy.run_path(str(Path(__file__).parents[2] / "scripts/sixteen_bits.py"))
# A part of the recipe's batch: its images in full size, of questions the first 110 tokens. The
# error of a sum grows with its terms: 64 images have 60,000 terms for whitening's bias.
IMAGES, LARGE_IMAGES, QUESTIONS = 64, 4, 16
# Keras's LSTM and GRU: the bias's gradient of one token is a sum over the batch; a loop adds up the
# tokens. A whole LSTM's gradients are 2.6 % off for 400 tokens and 60 questions.
LSTM = {"BiasAddGrad", "While", "StatelessWhile"}
ALLOWED = {"bidafs": LSTM, "drqas": LSTM, "fastfusionnets": {"BiasAddGrad"}}
# One rounding to bfloat16 is at most 0.004 off, in one element. In float16 a CPU's convolutions are
# up to 0.03 off; other sums in 16 bits are found by their names.
CONVOLUTION = re.compile("^Conv2D|^gradient .*(conv|shortcut|downsample)", re.I)
# The smallest AmoebaNet has kernels of one input channel before BN. Their exact gradient is 0.
CANCELLING = {"imagenet/amoebanet_d"}
ROUNDED = {"mixed_bfloat16": 0.01, "mixed_float16": 0.05}


def family(name):
    return {models.get(recipes.get(name).model).family}


# In the default suite: whitening and convolutions, embeddings and attention, in bfloat16. In
# float16 a CPU's convolutions are slow, and sum in 16 bits, which a GPU's don't.
FAMILIES = covering(NAMES, family)
DEFAULT = {"cifar10/airbench94", "squad/bert_tiny"}
CASES = [
    pytest.param(name, precision, marks=() if name in default else pytest.mark.long)
    for precision, default in (("mixed_bfloat16", DEFAULT), ("mixed_float16", ()))
    for name in sorted({*covering(NAMES), *FAMILIES})
]


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_each_weight_s_gradient_is_the_sum_of_its_terms(name, precision, monkeypatch):
    recipe = recipes.get(name, precision=precision)
    build_smallest(recipe, monkeypatch)
    errors, counts = SIXTEEN["audit"](SIXTEEN["training_step"](batch_of(recipe)))
    allowed = ALLOWED.get(models.get(recipe.model).family, set())
    assert {name.partition(" ")[0] for name in counts} <= allowed
    assert any(key.startswith("gradient 0, of ") for key in errors)
    off = {key: e for key, e in errors.items() if not e < ROUNDED[precision]}
    is_narrow = precision == "mixed_bfloat16" and not machine.has_bfloat16()
    if is_narrow or (recipe.name in CANCELLING and precision == "mixed_float16"):
        # TensorFlow then sums convolutions in 16 bits: their gradients are 1 to 32 % off.
        off = {key: e for key, e in off.items() if not CONVOLUTION.search(key)}
    assert off == {}


def batch_of(recipe):
    """Returns a recipe's data, a few generated examples, in batches of a part of its own."""
    if models.get(recipe.model).inputs == "images":
        most = IMAGES if recipe.task_row.image_size < 64 else LARGE_IMAGES
        if recipe.precision == "mixed_float16":
            most //= 4  # a CPU's convolutions in float16 take minutes; sums are found by name
        recipe = recipe.with_values(batch_size=min(recipe.batch_size, most))
        return KERNELS["opened"](recipe, "NHWC")
    recipe = recipe.with_values(batch_size=QUESTIONS, bucket_boundaries=(110,))
    splits = FEW if models.get(recipe.model).wordpieces else SPLITS["questions"]
    return dataset.from_splits(recipe, splits)


TERMS = tf.cast(np.random.default_rng(0).normal(size=(64, 31, 31, 24)), tf.bfloat16)


def test_a_sum_in_16_bits_is_found():
    """The library's own operations, without `broadcast`: both ways of finding them do."""
    bias, table = tf.Variable(tf.zeros(24)), tf.Variable(tf.zeros([2, 24]))
    ids = tf.constant(np.arange(64 * 31 * 31).reshape(64, 31, 31) % 2)

    def step():
        with tf.GradientTape() as tape:
            vectors = tf.gather(tf.cast(table, tf.bfloat16) * 1.0, ids)
            outputs = tf.nn.bias_add(vectors, tf.cast(bias, tf.bfloat16))
        return zip(tape.gradient(outputs, [bias, table], TERMS), [bias, table], strict=True)

    errors, counts = SIXTEEN["audit"](step)
    assert counts == {"BiasAddGrad bfloat16": 1, "UnsortedSegmentSum bfloat16": 1}
    assert errors[f"gradient 0, of {bias.name}"] > 0.05 < errors[f"gradient 1, of {table.name}"]


def test_a_sum_in_a_loop_is_found():
    """A recurrence's weight gets the sum over tokens, a loop's variable."""
    kernel = tf.Variable(tf.eye(3))

    def step():
        with tf.GradientTape() as tape:
            own = tf.cast(kernel, tf.bfloat16)
            tokens = tf.ones([9, 4, 3], "bfloat16")
            states = tf.scan(lambda state, x: tf.matmul(state + x, own), tokens)
        return [(tape.gradient(states, kernel), kernel)]

    assert set(SIXTEEN["audit"](step)[1]) == {"StatelessWhile bfloat16"}
