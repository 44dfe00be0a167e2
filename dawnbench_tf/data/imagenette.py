"""Imagenette (fast.ai): ten classes of ImageNet that are easily told apart, 13,394 JPEGs.

Small enough to try all of ImageNet's path on a laptop: https://github.com/fastai/imagenette. The
layouts are told in `images/layouts.py`.
"""

from pathlib import Path

from dawnbench_tf.data import tfds
from dawnbench_tf.data.images import layouts
from dawnbench_tf.data.images.layouts import DataSet, Located
from dawnbench_tf.data.images.splits import Splits

HOME = "https://github.com/fastai/imagenette"
CLASSES = (
    "n01440764",  # tench
    "n02102040",  # English springer
    "n02979186",  # cassette player
    "n03000684",  # chain saw
    "n03028079",  # church
    "n03394916",  # French horn
    "n03417042",  # garbage truck
    "n03425413",  # gas pump
    "n03445777",  # golf ball
    "n03888257",  # parachute
)


_WANTED = DataSet("imagenette", CLASSES, "imagenette/*-v2/*")


def find(data_dir: str, flag: str = "data_dir") -> Located:
    """Where Imagenette's JPEGs are in a folder that `flag` named. Raises Refusal."""
    return layouts.find(_WANTED, data_dir, flag)


def load(data_dir: str, download: bool = False) -> Splits:
    """Imagenette's 9,469 training and 3,925 validation JPEGs (version 2, of 2019-12).

    Args:
      data_dir: a folder in one of the layouts of `images/layouts.py`.
      download: let TensorFlow Datasets download and prepare the data in `data_dir`.

    Raises:
      Refusal: nothing is found there, or what is found is not Imagenette.
    """
    if download:
        tfds.check_reachable(HOME)
        tfds.prepare(Path(data_dir).expanduser(), "imagenette/full-size-v2")
    return layouts.load(_WANTED, data_dir)
