"""Small data sets of one's own: the images of a class have one colour, with noise."""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data import dataset

CLASSES = ("blue", "green", "red")
SIDE = 16


def loaded(*arguments, **changes):
    """Returns the completed recipe of a data set, and its splits."""
    data = dataset.open(*arguments, **changes)
    return data.recipe, data.splits


def images(count, seed=0):
    """Returns `count` images of each class, uint8 (3 x count, 16, 16, 3), and their labels."""
    labels = np.repeat(np.arange(3), count)
    rng = np.random.default_rng(seed)
    colours = np.eye(3, dtype=np.uint8)[::-1] * 150
    noise = rng.integers(0, 60, (len(labels), SIDE, SIDE, 3), np.uint8)
    return colours[labels][:, None, None] + noise, labels


def write_folder(root, train=4, val=2):
    """Writes train/CLASS/ and val/CLASS/; with `val` 0 CLASS/ alone. The first one is a PNG."""
    for split, count in (("train", train), ("val", val)):
        for number, (image, label) in enumerate(zip(*images(count, count), strict=True)):
            folder = root / split / CLASSES[label] if val else root / CLASSES[label]
            folder.mkdir(parents=True, exist_ok=True)
            encode = tf.io.encode_png if number == 0 else tf.io.encode_jpeg
            name = f"{number:03}.{'png' if number == 0 else 'jpg'}"
            (folder / name).write_bytes(encode(image).numpy())
    return root
