"""Properties of every reader, in small sizes: padding, gradients, files, XLA."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import networks
from dawnbench_tf.models.layers import text
from tests.models import (
    test_berts,
    test_bidafs,
    test_drqas,
    test_fastfusionnets,
    test_qanets,
    test_tpu_qanets,
)
from tests.models.graphs import as_graph

FAMILIES = {
    "berts": test_berts,
    "bidafs": test_bidafs,
    "drqas": test_drqas,
    "fastfusionnets": test_fastfusionnets,
    "qanets": test_qanets,
    "tpu_qanets": test_tpu_qanets,
}
BOTH = pytest.mark.both_kerases


def readers(**marks):
    """Parametrizes over the readers; those without marks run in the long mode only."""
    long = pytest.mark.long
    rows = [pytest.param(FAMILIES[n], marks=marks.get(n, long), id=n) for n in FAMILIES]
    return pytest.mark.parametrize("family", rows)


@readers(berts=(), drqas=(), fastfusionnets=())
def test_padding_of_contexts_and_questions_does_not_change_logits(family):
    model, inputs = family.reader(), family.texts()
    outputs = as_graph(model)
    expected = outputs(inputs)
    length, reads = expected.shape[-1], networks.family_of(models.get(model.name)).reads
    for context, question in ((1, 0), (0, 3), (9, 5)):
        padded = []
        for name, x in zip(reads, inputs, strict=True):
            tokens = (0, context if name.startswith("context") else question)
            padded.append(np.pad(x, [(0, 0), tokens, *[(0, 0)] * (x.ndim - 2)]))
        logits = outputs(padded)
        np.testing.assert_allclose(logits[:, :, :length], expected, atol=1e-5)
        assert (logits[:, :, length:] <= text.NEVER).all()


def test_an_id_out_of_range_is_an_error_on_a_cpu():
    for layer in (text.TokenEmbedding(5, 0, 3), text.TokenEmbedding(5, 2, 3)):
        assert layer(tf.constant([[4]])).shape == (1, 1, 3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            layer(tf.constant([[5 + layer.fixed]]))


@readers(berts=BOTH, drqas=BOTH, fastfusionnets=BOTH)
def test_every_trained_weight_has_a_gradient(family):
    model = family.reader()

    @tf.function  # eager tf-keras would trace each LSTM anew
    def differentiate(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(inputs, training=False)))
        return tape.gradient(loss, model.trainable_weights)

    gradients = differentiate([*map(tf.constant, family.texts(examples=30))])
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        # A softmax ignores what a scalar (BiDAF's bias) adds to all its scores: 0 but for rounding.
        assert np.any(tf.convert_to_tensor(gradient)) or not weight.shape.rank, weight.name
    assert "fixed" not in " ".join(weight.name for weight in model.trainable_weights)


@readers(berts=())
def test_it_runs_in_mixed_bfloat16(family):
    exact, mixed = family.reader(), family.reader(dtype="mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    inputs = family.texts()
    expected, outputs = (as_graph(model)(inputs) for model in (exact, mixed))
    assert outputs.dtype == np.float32
    assert 0 < np.abs(outputs - expected).max() < 0.05 * np.abs(expected).max()


@readers(berts=BOTH, fastfusionnets=BOTH)
def test_it_is_saved_and_loaded(family, tmp_path):
    model, inputs = family.reader(), family.texts()
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(as_graph(loaded)(inputs), as_graph(model)(inputs))


@pytest.mark.skipif(not test_berts.LEGACY, reason="tf-keras's, which commands use")
@readers()
def test_xla_gives_the_same_logits(family):
    model, inputs = family.reader(), [tf.constant(x) for x in family.texts()]
    compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
    np.testing.assert_allclose(compiled(inputs), as_graph(model)(inputs), atol=1e-4)
