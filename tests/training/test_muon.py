"""Muon: orthogonal updates against NumPy's SVD; which weights it trains; two devices, two workers.

test_source_steps.py compares its steps with the authors' code.
"""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.recipe import Optimizer
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.train import train
from dawnbench_tf.training import fitting, muon
from tests.training import interruption
from tests.training.test_strategies import finish, run_workers, same_curve, start

SETTINGS = {
    "optimizer": "muon",
    "learning_rate": 0.02,
    "momentum": 0.6,
    "nesterov": True,
    "sgd_rate": 5,
    "kernel_norm_steps": (2, 5),
    "kernel_decay": 0.1,
    "newton_schulz_steps": 3,
}
FLAGS = ("--held_out=785", "--steps_per_execution=1", "--precision=float64", "--epochs=2") + tuple(
    f"--{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
    for name, value in SETTINGS.items()
)


@pytest.mark.parametrize("shape", [(3, 12, 5), (2, 5, 12), (1, 7, 7), (2, 1, 4)])
def test_singular_values_follow_the_polynomial_and_the_vectors_stay(shape):
    a, b, c = coefficients = Optimizer().newton_schulz
    matrices = np.random.default_rng(shape[1]).normal(size=shape)
    u, values, v = np.linalg.svd(matrices, full_matrices=False)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    for _ in range(4):
        values = a * values + b * values**3 + c * values**5
    expected = u * values[:, None] @ v
    result = muon.orthogonalize(tf.constant(matrices), coefficients, 4, "float64")
    np.testing.assert_allclose(result, expected, atol=1e-12)
    low = muon.orthogonalize(tf.constant(matrices), coefficients, 4, "bfloat16")
    # Each iteration multiplies the rounding of small singular values, by 3.4 at most.
    error = np.linalg.norm(tf.cast(low, "float64") - expected) / np.linalg.norm(expected)
    assert error < 0.15


def test_zeros_stay_zeros():
    assert not muon.orthogonalize(tf.zeros((1, 3, 4)), (3, -4, 2), 3, "float32").numpy().any()


def test_kernels_before_the_head_are_muon_s():
    data = dataset.open(recipes.get("digits/resnet8", synthetic="decoded", **SETTINGS))
    model = fitting.build(data)
    own = muon.kernels(model, data.recipe)
    names = [weight.name for weight in model.trainable_variables if weight.ref() in own]
    assert len(names) == 7  # those of the stem and of six in three units
    others = [weight for weight in model.trainable_variables if weight.ref() not in own]
    assert [w.shape.rank for w in others].count(2) == 1  # the head's
    decay = data.recipe.optimizer.weight_decay
    (head,) = (layer.kernel for layer in model.layers if isinstance(layer, tf.keras.layers.Dense))
    assert float(model.losses[0]) == pytest.approx(decay * float(tf.nn.l2_loss(head)), rel=1e-5)


def test_a_network_whose_head_is_unknown_is_refused():
    inputs = tf.keras.Input((4,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs), name="mine")
    with pytest.raises(Refusal, match="--optimizer=muon: mine has no layer 'features'"):
        muon.kernels(model, recipes.get("digits/resnet8", optimizer="muon"))


@pytest.mark.long
def test_a_run_goes_on_where_it_ended(tmp_path):
    short = {"threshold": 100, "epochs": 3, "train_examples": 256, "precision": "float64"}
    recipe = recipes.get("digits/resnet8", **short).with_values(**SETTINGS)
    interruption.check_continued(train(recipe, output=tmp_path / "whole"), tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return finish(start(tmp_path_factory.mktemp("alone"), *FLAGS))


@pytest.mark.long
def test_two_devices_give_the_curve_of_one(tmp_path, alone):
    flags = (*FLAGS, "--strategy=mirrored", "--logical_cpus=2")
    same_curve(finish(start(tmp_path, *flags)), alone)


@pytest.mark.long
def test_two_workers_give_the_curve_of_one(tmp_path, alone):
    for curve in run_workers(tmp_path, *FLAGS):
        same_curve(curve, alone)
