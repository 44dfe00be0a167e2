"""The embedded data set: scikit-learn's 1,797 real handwritten digits (UCI, 8x8, grey)."""

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dawnbench_tf.data.images.splits import Splits, in_memory
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.recipe import Recipe


def load(recipe: Recipe, data_dir: str = "", download: bool = False) -> Splits:
    """Returns the digits as 32x32x3 images: 1,297 training, 500 test; a fixed, stratified split."""
    bunch = load_digits()
    grey = np.asarray(bunch.images, np.float32)[..., None] * (255 / 16)  # stored as 0..16
    resized = tf.image.resize(grey, (32, 32)).numpy().round().astype(np.uint8)
    images = np.repeat(resized, 3, axis=3)
    train, test = train_test_split(
        np.arange(len(images)), test_size=500, stratify=bunch.target, random_state=0
    )
    labels = bunch.target.astype(np.int64)
    return Splits(
        in_memory(images[train], labels[train]),
        in_memory(images[test], labels[test]),
        Origin("scikit-learn's digits"),
    )
