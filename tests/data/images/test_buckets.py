"""Shards in a bucket: an epoch has every image, and is reproducible; workers split the files."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.images import buckets, pipeline, shards
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.refusals import Refusal

RECIPE = recipes.get(
    "imagenette/resnet18",
    batch_size=4,
    epochs=2,
    image_sizes=(16,),
    image_size_epochs=(),
    test_image_size=16,
    drop_remainder=False,
)


@pytest.fixture
def url(small, tmp_path):
    small.write_shards(tmp_path)
    for split in ("train", "validation"):
        shards.write_index(shards.read(tmp_path, split), split)
    return f"file://{tmp_path}"


@pytest.fixture(autouse=True)
def seeded():
    """Sets TensorFlow's own seed, as `fitting.build` does."""
    tf.keras.utils.set_random_seed(1)


def labels_and_greys(splits, workers=1, index=0, first_epoch=0):
    context = SimpleNamespace(num_input_pipelines=workers, input_pipeline_id=index)
    shared = SimpleNamespace(
        num_replicas_in_sync=workers, distribute_datasets_from_function=lambda make: make(context)
    )
    dataset = pipeline.training_batches(ImageData(RECIPE, splits, Placement(shared)), first_epoch)
    return [
        (label, round(image.mean() / 20))
        for labels, images in dataset
        for label, image in zip(labels.numpy(), images.numpy(), strict=True)
    ]


def test_an_epoch_has_every_image_with_its_label_in_another_order(url, small):
    examples = labels_and_greys(buckets.find(url))
    assert len(examples) == 2 * 12  # three batches of four for nine images
    for epoch in (examples[:12], examples[12:]):
        assert sorted(grey for _, grey in epoch[:9]) == list(range(9))
        assert all(label == small.train_labels[grey] for label, grey in epoch)
    assert examples[:9] != examples[12:21]


def test_a_restart_sees_what_the_whole_run_saw(url):
    splits = buckets.find(url)
    assert labels_and_greys(splits, first_epoch=1) == labels_and_greys(splits)[12:]


def test_workers_read_files_of_their_own_and_together_all(url):
    splits = buckets.find(url)
    one, other = ({grey for _, grey in labels_and_greys(splits, 2, i)[:6]} for i in range(2))
    assert not one & other and one | other <= set(range(9))
    assert {0, 1, 2, 3} in (one, other)  # the first file's four; the other has five


def test_the_test_is_read_by_index_and_the_source_says_how_training_is(url, small):
    splits = buckets.find(url)
    assert small.greys(splits.test) == list(range(5))
    assert splits.test.labels.tolist() == small.test_labels
    assert "in the order of files and 10,000 images at a time" in splits.origin.source
    np.testing.assert_array_equal(splits.train.labels, small.train_labels)
    assert isinstance(
        splits.train.in_sequence(tf.constant([1, 2], tf.int64), 0, 1), tf.data.Dataset
    )


def test_single_training_images_are_read_by_index_for_calibration(url, small):
    placement = Placement(tf.distribute.get_strategy())
    calibration = ImageData(RECIPE, buckets.find(url), placement).training_as_test(3)
    assert small.greys(calibration.splits.test) == [0, 3, 6]
    assert [image.shape for (image,) in calibration.examples()] == [(1, 16, 16, 3)] * 3


def test_what_prepare_has_not_written_is_refused(tmp_path):
    with pytest.raises(Refusal, match="--data_dir=file://.*train.index.npz can't be read there"):
        buckets.find(f"file://{tmp_path}")
