"""Synthetic images have a task's shapes and counts, and can be learned."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.neighbors import NearestCentroid

from dawnbench_tf import recipes
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.images import synthetic, tested
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.refusals import Refusal


def generated(name="digits/resnet8", form="decoded", **changes):
    recipe = recipes.get(name, synthetic=form, **changes)
    return synthetic.load(recipe), recipe


def test_shapes_and_counts_are_the_task_s_and_classes_balanced():
    splits, _ = generated()
    images = splits.train.images()
    assert images.shape == (1297, 32, 32, 3) and images.dtype == np.uint8
    assert np.ptp(np.bincount(splits.test.labels)) <= 1 and len(splits.test.images()) == 500


def test_the_seed_decides():
    one, same, other = (generated(seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.train.images(), same.train.images())
    assert (one.train.images() != other.train.images()).any()


def test_it_can_be_learned_but_one_image_is_no_giveaway():
    splits, _ = generated()
    flat = [split.images().reshape(len(split.labels), -1) for split in splits[:2]]
    score = NearestCentroid().fit(flat[0], splits.train.labels).score(flat[1], splits.test.labels)
    assert score > 0.9


SIZES = {"image_sizes": (64,), "image_size_epochs": (), "test_image_size": 64}


@pytest.mark.parametrize("form", ["decoded", "jpeg"])
def test_a_few_images_stand_for_a_set_that_is_larger_than_memory(form, monkeypatch):
    monkeypatch.setitem(synthetic.POOL, form, 100)
    splits, recipe = generated("imagenette/resnet18", form, **SIZES, batch_size=8)
    assert len(splits.train.labels) == 9469 and len(splits.test.labels) == 3925
    data = ImageData(recipe, splits, Placement(tf.distribute.get_strategy()))
    images, labels = next(iter(data.train()))
    assert images.shape == (8, 64, 64, 3) and labels.shape == (8,)
    batch = next(iter(data.test_batches(16)))
    assert batch.shape == (16, 64, 64, 3) and batch.dtype == tf.uint8
    sides = [np.full(16, 64, np.int32)] * (2 if form == "jpeg" else 0)
    again = next(iter(tested._test_images(splits.test, [np.arange(100, 116), *sides], 16)))
    np.testing.assert_array_equal(batch, again)
    np.testing.assert_array_equal(splits.test.labels[:16], splits.test.labels[100:116])


def test_jpegs_are_as_large_as_imagenet_s(monkeypatch):
    monkeypatch.setitem(synthetic.POOL, "jpeg", 20)
    splits, _ = generated("imagenette/resnet18", "jpeg")
    contents = splits.train.jpegs(tf.range(20)).numpy()
    assert 100_000 < np.mean([len(content) for content in contents]) < 120_000
    assert tf.io.decode_jpeg(contents[0]).shape == (400, 472, 3)


def test_forms_that_a_task_has_not_are_refused():
    with pytest.raises(Refusal, match="^--synthetic=jpeg: digits has no JPEGs; decoded would run"):
        generated(form="jpeg")
    with pytest.raises(Refusal, match="^--synthetic=decoded: takes one size of images, not"):
        generated("imagenette/resnet18")
