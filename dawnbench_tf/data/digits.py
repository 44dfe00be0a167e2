"""The embedded data set: scikit-learn's 1,797 real handwritten digits (UCI, 8x8, grey)."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.images.splits import Splits, in_memory
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.recipe import Recipe

# Indices of the training and of the test images: sklearn.model_selection.train_test_split(
# np.arange(1797), test_size=500, stratify=labels, random_state=0).
SPLIT = Path(__file__).with_name("digits_split.txt")


def load(recipe: Recipe, data_dir: str = "", download: bool = False) -> Splits:
    """Returns the digits as 32x32x3 images: 1,297 training, 500 test; a fixed, stratified split."""
    package = find_spec("sklearn")  # to import it would take a second, on the clock
    if package is None or package.origin is None:
        raise ModuleNotFoundError("scikit-learn is not installed", name="sklearn")
    file = Path(package.origin).with_name("datasets") / "data/digits.csv.gz"
    table = np.loadtxt(file, np.int64, delimiter=",")  # 64 pixels, 0 to 16, and the label
    grey = table[:, :64].reshape(-1, 8, 8, 1).astype(np.float32) * (255 / 16)
    resized = tf.image.resize(grey, (32, 32)).numpy().round().astype(np.uint8)
    images, labels = np.repeat(resized, 3, axis=3), table[:, 64]
    train, test = (np.array(line.split(), int) for line in SPLIT.read_text().splitlines())
    return Splits(
        in_memory(images[train], labels[train]),
        in_memory(images[test], labels[test]),
        Origin("scikit-learn's digits"),
    )
