import numpy as np
from sklearn.neighbors import NearestCentroid

from dawnbench_tf import tasks
from dawnbench_tf.data import synthetic

TASK = tasks.TASKS["digits"]


def test_shapes_and_counts_are_the_task_s_and_classes_balanced():
    splits = synthetic.make(TASK, 0)
    assert splits.train_images.shape == (1297, 32, 32, 3) and splits.train_images.dtype == np.uint8
    assert np.ptp(np.bincount(splits.test_labels)) <= 1 and len(splits.test_images) == 500


def test_the_seed_decides():
    one, same, other = (synthetic.make(TASK, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.train_images, same.train_images)
    assert (one.train_images != other.train_images).any()


def test_it_can_be_learned_but_one_image_is_no_giveaway():
    splits = synthetic.make(TASK, 0)
    flat = [images.reshape(len(images), -1) for images in (splits.train_images, splits.test_images)]
    score = NearestCentroid().fit(flat[0], splits.train_labels).score(flat[1], splits.test_labels)
    assert score > 0.9
