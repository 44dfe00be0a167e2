"""A data set of images and classes of TensorFlow Datasets, by name."""

import zlib
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from dawnbench_tf.data import tfds
from dawnbench_tf.data.image_files import jpeg_index
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import arrays, division
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

_TRAIN, _TESTS = "train", ("test", "validation")  # names of splits, in order of preference


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads a data set into memory: as encoded images, or as arrays if the recipe takes these."""
    name = recipe.whole_task.reader.partition(":")[2]
    if not data_dir:
        refuse("data_dir", "", f"should be TensorFlow Datasets' folder with {name}, or one to fill")
    builder = tfds.builder(Path(data_dir).expanduser(), name, download)
    info = builder.info
    if not info.splits:
        refuse("data_dir", data_dir, f"holds no {name} (train also takes --download)")
    if not {"image", "label"} <= set(info.features) or not hasattr(info.features["label"], "names"):
        has = ", ".join(sorted(info.features))
        refuse("task", f"tfds:{name}", f"should have an image and a label of classes; has {has}")
    tests = [split for split in _TESTS if split in info.splits]
    share = recipe.validation_share
    if _TRAIN not in info.splits or bool(tests) == bool(share):
        has = ", ".join(sorted(info.splits))
        expected = "no --validation_share" if share else "a test, or --validation_share"
        refuse("task", f"tfds:{name}", f"has splits {has}; should have train, and {expected}")
    encoded = ["image"] if recipe.jpegs else []
    splits = [
        tfds.read(builder, split, partial(_convert, name, split, not recipe.jpegs), encoded)
        for split in [_TRAIN, *tests[:1]]
    ]
    classes = list(info.features["label"].names)
    if share:
        parts = division.divide(splits[0].labels, share, recipe.seed, classes)
        splits = [splits[0].take(part) for part in parts]
    return Splits(splits[0], splits[1], Origin(f"TensorFlow Datasets, {name}"), classes=classes)


def _convert(name: str, split: str, decoded: bool, dataset: tf.data.Dataset) -> Split:
    images, labels, names = [], [], []
    for number, row in enumerate(dataset.as_numpy_iterator()):
        image = row["image"]
        if not decoded and not image.startswith(jpeg_index.JPEG):
            image = jpeg_index.as_jpeg(image, f"{name} {split}, image {number}")
        images.append(image)
        names.append(
            f"{split} {number}" if decoded else f"{split} {number} {zlib.crc32(image):08x}"
        )
        labels.append(row["label"])
    if decoded:
        if len({image.shape for image in images}) > 1:
            text = "takes images of one size, and these have several; name one that takes JPEGs"
            refuse("recipe", "", text)
        return arrays.split(np.stack(images), np.array(labels), name)
    with tf.device("CPU:0"):
        held = tf.constant(np.array(images, object))
    return Split(
        np.array(labels, np.int64), jpegs=lambda indices: tf.gather(held, indices), names=names
    )
