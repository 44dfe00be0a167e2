"""Test-time views against the same image, moved and mirrored by NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.models.layers import views

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 6, 5, 2)).astype("f")


def network(data_format):
    """One that tells every pixel from every other."""
    shape = IMAGES.shape[1:] if data_format == "NHWC" else (2, 6, 5)
    inputs = tf.keras.Input(shape)
    logits = tf.keras.layers.Dense(4)(tf.keras.layers.Flatten()(inputs))
    return tf.keras.Model(inputs, tf.keras.layers.Activation("tanh")(logits))


def by_hand(model, kind, data_format):
    """Jordan's `infer_mirror_translate`, image by image."""
    padded = np.pad(IMAGES, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    views = {"as it is": (IMAGES, 0.5), "up": (padded[:, :-2, :-2], 0.25)}
    views["down"] = (padded[:, 2:, 2:], 0.25)
    if kind == "mirror":
        views = {"as it is": (IMAGES, 1.0)}
    total = 0.0
    for images, weight in views.values():
        for view in (images, images[:, :, ::-1]):
            view = view if data_format == "NHWC" else view.transpose(0, 3, 1, 2)
            total = total + weight * 0.5 * model(np.ascontiguousarray(view)).numpy()
    return total


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", ["mirror", "mirror_and_shifts"])
def test_logits_are_the_mean_of_the_views(kind, data_format):
    model = network(data_format)
    seen = views.with_views(model, kind, data_format)
    images = IMAGES if data_format == "NHWC" else IMAGES.transpose(0, 3, 1, 2)
    wanted = by_hand(model, kind, data_format)
    np.testing.assert_allclose(seen(images), wanted, atol=1e-6)
    np.testing.assert_allclose(seen(images[1:2]), wanted[1:2], atol=1e-6)
    assert not np.allclose(wanted, model(images), atol=1e-3)


def test_an_image_seen_as_it_is_needs_no_other_network():
    model = network("NHWC")
    assert views.with_views(model, "image", "NHWC") is model


def test_a_network_with_its_views_comes_back_from_its_file(tmp_path):
    seen = views.with_views(network("NHWC"), "mirror_and_shifts", "NHWC")
    seen.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(IMAGES), seen(IMAGES), atol=1e-6)
