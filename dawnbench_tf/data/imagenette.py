"""Imagenette (fast.ai): ten easily distinguished classes of ImageNet, 13,394 JPEGs.

Small enough to run the whole ImageNet pipeline on a laptop: https://github.com/fastai/imagenette.
`image_files/layouts.py` describes the layouts that are read.
"""

from pathlib import Path

from dawnbench_tf.data import tfds
from dawnbench_tf.data.image_files import layouts
from dawnbench_tf.data.image_files.layouts import DataSet
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.recipe import Recipe

HOME = "https://github.com/fastai/imagenette"
# In the order of `tasks.CLASSES["imagenette"]`, which has their names.
CLASSES = """n01440764 n02102040 n02979186 n03000684 n03028079 n03394916 n03417042 n03425413
    n03445777 n03888257""".split()


WANTED = DataSet("imagenette", CLASSES, "imagenette/*-v2/[0-9]*")


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads Imagenette's 9,469 training and 3,925 validation JPEGs (version 2, 2019-12)."""
    if download:
        root, name = Path(data_dir).expanduser(), "imagenette/full-size-v2"
        tfds.check_reachable(HOME, root / name)
        tfds.builder(root, name, download=True)
    return layouts.find(WANTED, data_dir).splits()
