"""Test-time views equal an average over images that NumPy shifts and flips."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import views

pytestmark = pytest.mark.both_kerases

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 6, 5, 2)).astype("f")


def network(data_format):
    """Returns a model whose logits depend on every pixel."""
    shape = IMAGES.shape[1:] if data_format == "NHWC" else (2, 6, 5)
    inputs = tf.keras.Input(shape)
    logits = tf.keras.layers.Dense(4)(tf.keras.layers.Flatten()(inputs))
    return tf.keras.Model(inputs, tf.keras.layers.Activation("tanh")(logits))


def expected_logits(model, kind, data_format):
    """Computes the mean logits as Jordan's `infer_mirror_translate` does, view by view.

    With even shifts as Hiverge's `_get_tta_logits`.
    """
    padded = np.pad(IMAGES, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    first, shifted = (1 / 3, 1 / 3) if kind == "mirror_and_even_shifts" else (0.5, 0.25)
    views = {"unshifted": (IMAGES, first), "up": (padded[:, :-2, :-2], shifted)}
    views["down"] = (padded[:, 2:, 2:], shifted)
    if kind == "mirror":
        views = {"unshifted": (IMAGES, 1.0)}
    total = 0.0
    for images, weight in views.values():
        for view in (images, images[:, :, ::-1]):
            view = view if data_format == "NHWC" else view.transpose(0, 3, 1, 2)
            total = total + weight * 0.5 * model(np.ascontiguousarray(view)).numpy()
    return total


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", ["mirror", "mirror_and_shifts", "mirror_and_even_shifts"])
def test_logits_are_the_mean_of_the_views(kind, data_format):
    model = network(data_format)
    with_views = views.with_views(model, kind, data_format)
    images = IMAGES if data_format == "NHWC" else IMAGES.transpose(0, 3, 1, 2)
    expected = expected_logits(model, kind, data_format)
    np.testing.assert_allclose(with_views(images), expected, atol=1e-6)
    np.testing.assert_allclose(with_views(images[1:2]), expected[1:2], atol=1e-6)
    assert not np.allclose(expected, model(images), atol=1e-3)


def test_a_single_view_returns_the_model_itself():
    model = network("NHWC")
    assert views.with_views(model, "image", "NHWC") is model


def test_a_model_with_views_is_saved_and_loaded(tmp_path):
    with_views = views.with_views(network("NHWC"), "mirror_and_shifts", "NHWC")
    with_views.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(IMAGES), with_views(IMAGES), atol=1e-6)
