"""Rectangular test images: each once, sorted by ratio, with the mean ratio of their batch."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.images import jpegs, tested
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.data.images.splits import Split, Splits
from tests.data.images.test_pipeline import Shared

SHAPES = [(60, 120), (90, 90), (120, 60), (50, 100), (100, 100), (300, 60), (70, 70)]
RECTANGULAR = {"rectangular_test": True, "test_image_size": 64, "precision": "float32"}
RECIPE = recipes.get("imagenette/resnet18", **RECTANGULAR)


@pytest.fixture
def splits():
    """Returns flat images whose pixels are 30 times their label."""
    pixels = (np.full((*shape, 3), 30 * label, np.uint8) for label, shape in enumerate(SHAPES))
    files = tf.stack([tf.io.encode_jpeg(image) for image in pixels])
    split = Split(np.arange(len(SHAPES)), jpegs=lambda indices: tf.gather(files, indices))
    return Splits(split, split)


def test_ratios_are_those_of_the_pixels(splits):
    assert jpegs.aspect_ratios(splits.train.jpegs, 3).tolist() == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(("workers", "batch_size"), [(2, 2), (3, 3)])
def test_each_image_comes_once_in_its_batch_s_shape(splits, workers, batch_size, monkeypatch):
    monkeypatch.setattr(tested, "RECTANGLES", 2)  # a third image completes the batch of three
    by_worker = []
    for index in range(workers):
        data = ImageData(RECIPE, splits, Placement(Shared(workers, workers, index)))
        by_worker.append([batch.numpy() for batch in data.test_batches(batch_size)])
    steps = [np.concatenate(parts) for parts in zip(*by_worker, strict=True)]
    shapes = [step.shape[1:3] for step in steps]
    # Means of the pairs' ratios: 0.35, which is cut to 0.5; 1; 1.5; and 2, of the last image alone.
    assert shapes == [(128, 64), (64, 64), (64, 96), (64, 128)]
    shown = [np.round(step.mean((1, 2, 3)) / 30) for step in steps]
    outputs = ImageData(RECIPE, splits, None).collect(shown, batch_size)
    assert outputs.tolist() == splits.test.labels.tolist() == list(range(7))


def test_a_network_for_them_takes_any_size_and_answers_square_ones():
    data = ImageData(RECIPE, None, Placement(tf.distribute.get_strategy()))
    assert data.network().input_shape == (None, None, None, 3)
    assert data.network("float32").input_shape == (None, 64, 64, 3)
