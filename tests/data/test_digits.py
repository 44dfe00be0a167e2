"""The embedded digits: a fixed split, complete and without overlap."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dawnbench_tf import recipes
from dawnbench_tf.data import digits


def test_the_split_is_fixed_stratified_and_complete():
    splits = digits.load(recipes.get("digits/resnet8"))
    assert len(splits.train.labels) == 1297 and len(splits.test.labels) == 500
    assert splits.test.labels[:10].tolist() == [4, 8, 8, 3, 9, 0, 6, 3, 9, 8]  # the same for ever
    target = load_digits().target
    parts = train_test_split(target, test_size=500, stratify=target, random_state=0)
    for split, labels in zip((splits.train, splits.test), parts, strict=True):
        np.testing.assert_array_equal(split.labels, labels)
    counts = np.bincount(target)
    shares = np.bincount(splits.test.labels) / counts
    assert shares.min() > 0.27 and shares.max() < 0.29  # 500 of 1,797 is 0.278
    together = np.concatenate([splits.train.labels, splits.test.labels])
    np.testing.assert_array_equal(np.bincount(together), counts)


def test_images_are_the_scans_resized():
    splits = digits.load(recipes.get("digits/resnet8"))
    images = np.concatenate([splits.train.images(), splits.test.images()])
    assert images.shape == (1797, 32, 32, 3) and images.dtype == np.uint8
    np.testing.assert_array_equal(images[..., 0], images[..., 2])
    shrunk = images[..., 0].reshape(-1, 8, 4, 8, 4).mean((2, 4))
    scans = load_digits().images * 255 / 16
    assert abs(shrunk.mean() - scans.mean()) < 1
    assert np.corrcoef(np.sort(shrunk.mean((1, 2))), np.sort(scans.mean((1, 2))))[0, 1] > 0.999


def test_no_test_image_is_in_training():
    splits = digits.load(recipes.get("digits/resnet8"))
    trained = {image.tobytes() for image in splits.train.images()}
    assert not any(image.tobytes() in trained for image in splits.test.images())
