"""Finds an image data set's JPEGs in a folder, in any of these layouts.

train-00000-of-01024 ..., validation-00000-of-00128 ...     TFRecord shards, perhaps an index
NAME/.../NAME-train.tfrecord-00000-of-...                   TensorFlow Datasets' folder
train/CLASS/*.JPEG, val/CLASS/*.JPEG                        the unpacked archives
train/CLASS/*.JPEG, val/*.JPEG                              validation images in one folder
ILSVRC2012_img_train.tar, ILSVRC2012_img_val.tar            ImageNet's archives
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf.data.image_files import jpeg_index, shards, tars, trees
from dawnbench_tf.data.image_files.jpeg_index import JpegIndex, LabelsOf
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.refusals import refuse

TRAIN, VALIDATION = "train", "validation"
_VALIDATIONS = ("val", "validation")  # folders of the validation images
_KAGGLE = "ILSVRC/Data/CLS-LOC"


class DataSet(NamedTuple):
    """Names of an image data set's classes, folders and archives."""

    name: str
    classes: Sequence[str]  # names of class folders, in the order of the labels
    tfds: str  # glob pattern of TensorFlow Datasets' folder
    archives: tuple[str, str] | None = None  # tar files of training and validation images
    labels_of: LabelsOf | None = None  # of validation images in one folder


class Located(NamedTuple):
    """The indices of a data set that was found in a folder."""

    train: JpegIndex
    test: JpegIndex
    source: str  # the layout, e.g. "tar archives"

    def splits(self) -> Splits:
        """Returns the splits that training and inference read."""
        return Splits(
            jpeg_index.split(self.train), jpeg_index.split(self.test), Origin(self.source)
        )


def find(wanted: DataSet, data_dir: str, flag: str = "data_dir") -> Located:
    """Finds the JPEGs of a data set in a folder."""
    if not data_dir:
        refuse(flag, "", f"{wanted.name} needs the folder of the data (train: or --synthetic=jpeg)")
    root = Path(data_dir).expanduser()
    if not root.is_dir():
        refuse(flag, data_dir, "is no folder; give that of the data")
    for folder in (root, *sorted(root.glob(wanted.tfds), reverse=True)):
        if shards.list_shards(folder, TRAIN):
            train, test = (shards.read(folder, split) for split in (TRAIN, VALIDATION))
            return Located(train, test, "TFRecord shards")
    for folder in (root, root / _KAGGLE):
        if (folder / TRAIN).is_dir():
            train = trees.read(folder / TRAIN, wanted.classes)
            validation = next((p for name in _VALIDATIONS if (p := folder / name).is_dir()), None)
            if validation is None:
                refuse(flag, folder, "has train/ and no val/; unpack the validation images there")
            if wanted.labels_of and trees.is_flat(validation):
                test = trees.read_flat(validation, wanted.labels_of)
            else:
                test = trees.read(validation, wanted.classes)
            return Located(train, test, "JPEG files")
    labels_of = wanted.labels_of
    if labels_of and wanted.archives and (root / wanted.archives[0]).is_file():
        train = tars.read(root / wanted.archives[0], wanted.classes)
        test = tars.read_flat(root / wanted.archives[1], labels_of)
        return Located(train, test, "tar archives")
    tars_too = f", {' and '.join(wanted.archives)}" if wanted.archives else ""
    refuse(
        flag,
        data_dir,
        f"holds no {wanted.name}: should have train-00000-of-... shards, TensorFlow Datasets' "
        f"{wanted.tfds.partition('/')[0]}/, train/ and val/ with a folder for each class{tars_too}",
    )
