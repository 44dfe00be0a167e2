"""Splits: what every data set's `load` returns."""

from typing import NamedTuple

import numpy as np


class Splits(NamedTuple):
    """A data set: images uint8 (examples, height, width, channels), labels int64 (examples,)."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
