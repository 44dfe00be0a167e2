"""Synthetic images have a task's shapes and counts, and can be learned."""

import numpy as np
from sklearn.neighbors import NearestCentroid

from dawnbench_tf import tasks
from dawnbench_tf.data.images import synthetic

TASK = tasks.TASKS["digits"]


def test_shapes_and_counts_are_the_task_s_and_classes_balanced():
    splits = synthetic.load(TASK, 0)
    images = splits.train.images()
    assert images.shape == (1297, 32, 32, 3) and images.dtype == np.uint8
    assert np.ptp(np.bincount(splits.test.labels)) <= 1 and len(splits.test.images()) == 500


def test_the_seed_decides():
    one, same, other = (synthetic.load(TASK, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.train.images(), same.train.images())
    assert (one.train.images() != other.train.images()).any()


def test_it_can_be_learned_but_one_image_is_no_giveaway():
    splits = synthetic.load(TASK, 0)
    flat = [split.images().reshape(len(split.labels), -1) for split in splits[:2]]
    score = NearestCentroid().fit(flat[0], splits.train.labels).score(flat[1], splits.test.labels)
    assert score > 0.9
