"""Images in folders: train/CLASS/ and val/CLASS/, or CLASS/ with a validation share."""

import os
from pathlib import Path

import numpy as np

from dawnbench_tf.data.images import jpeg_index, trees
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import division
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

_TRAIN, _TESTS = "train", ("val", "validation", "test")  # names of folders


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads JPEGs and PNGs of any size; the names of the folders are the classes.

    Classes are numbered in the order of their names.

    Args:
      recipe: its `validation_share` and `seed` divide the images, if there is no folder for the
        test.
      data_dir: folder with train/CLASS/ and val/CLASS/ (or validation/, test/); with a validation
        share train/CLASS/ or CLASS/ alone.
      download: refused.

    Returns:
      Images that are read and decoded when they are used.

    Raises:
      Refusal: folders are missing or empty, or the test has other classes.
    """
    if download:
        refuse("download", True, "is for TensorFlow Datasets; name the folder as --data_dir")
    root = Path(data_dir).expanduser()
    if not data_dir or not root.is_dir():
        text = "should be a folder with train/CLASS/ and val/CLASS/, of JPEGs or PNGs"
        refuse("data_dir", data_dir, f"is no folder; {text}" if data_dir else text)
    tests = [name for name in _TESTS if (root / name).is_dir()]
    share = recipe.validation_share
    if share and tests:
        refuse("validation_share", share, f"{root} has {tests[0]}/ for the test; leave this out")
    parent = root / _TRAIN if (root / _TRAIN).is_dir() else root
    if not share and (not tests or parent == root):
        text = "should have train/ and val/ with a folder for each class; or add --validation_share"
        refuse("data_dir", data_dir, text)
    classes = trees.class_names(parent)
    if len(classes) < 2:
        number = f"{len(classes)} class folder{'s' * (len(classes) != 1)}"
        refuse("data_dir", parent, f"has {number}; should have one for each class, 2 at least")
    train = _read(root, parent, classes)
    if share:
        train_indices, test_indices = division.divide(train.labels, share, recipe.seed)
        test = train.take(test_indices)
        train = train.take(train_indices)
    else:
        test = _read(root, root / tests[0], classes)
    return Splits(train, test, Origin("image files"), classes=classes)


def _read(root: Path, folder: Path, classes: list[str]) -> Split:
    index = trees.read(folder, classes)
    prefix = "" if folder == root else f"{folder.name}/"
    names = [f"{prefix}{os.fsdecode(path)}" for path in np.asarray(index.paths)]
    return jpeg_index.split(index)._replace(names=names)
