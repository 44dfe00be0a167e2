"""ImageNet (ILSVRC 2012, 1,000 classes): archives, unpacked files, TFRecords or TFDS's folder.

`image_files/layouts.py` describes the layouts that are read. Labels are 0 to 999, in the order of
the classes' WordNet ids; only ILSVRC's development kit numbers them differently.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from dawnbench_tf.data.image_files import jpeg_index, layouts, trees
from dawnbench_tf.data.image_files.layouts import DataSet
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse, shown
from dawnbench_tf.tasks import TASKS

HOME = "https://image-net.org/download-images"
ARCHIVES = ("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar")
BLACKLIST = "ILSVRC201?_clsloc_validation_blacklist.txt"
_KITS = ("", "*devkit*/data/", "ILSVRC/*devkit*/data/")  # folders that may hold BLACKLIST
LABELS = "imagenet_2012_validation_synset_labels.txt"  # as TensorFlow's own scripts name it


def classes() -> list[str]:
    """Returns the WordNet ids of the 1,000 classes, in the order of the labels."""
    file = resources.files("dawnbench_tf.data") / "imagenet_classes.txt"
    return file.read_text(encoding="utf-8").split()


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads ImageNet's 1,281,167 training and 50,000 validation JPEGs."""
    if download:
        refuse("download", True, f"ImageNet is given out at {HOME} only; name its --data_dir")
    located = layouts.find(WANTED, data_dir)
    if recipe.skip_blacklisted:
        numbers = _read_blacklist(Path(data_dir).expanduser())
        located = located._replace(test=located.test.without(numbers))
    return located.splits()


def load_test(recipe: Recipe, data_dir: str) -> tuple[Split, Origin]:
    """Loads validation images alone, all or a part of them, in class folders or one folder."""
    root, names = Path(data_dir).expanduser(), classes()
    for folder in (root / "val", root / "validation", root):
        if data_dir and folder.is_dir() and not (root / "train").is_dir():
            if labels := [n for n, name in enumerate(names) if (folder / name).is_dir()]:
                index = trees.read(folder, [names[label] for label in labels])
                index = index._replace(labels=np.array(labels)[index.labels])
            elif trees.is_flat(folder) and trees.list_images(folder):
                index = trees.read_flat(folder, _labels_of)
            else:
                continue
            return jpeg_index.split(index), Origin("JPEG files of validation images")
    splits = load(recipe, data_dir)
    return splits.test, splits.origin


def _read_blacklist(root: Path) -> set[int]:
    """Reads the blacklist of the development kit: numbers of validation images, from 1 on."""
    paths = [path for folder in _KITS for path in sorted(root.glob(f"{folder}{BLACKLIST}"))]
    if not paths:
        refuse("skip_blacklisted", True, f"needs the development kit's {BLACKLIST} in {root}")
    numbers = paths[0].read_text(encoding="utf-8").split()
    wanted = TASKS["imagenet"].blacklisted
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) != wanted:
        raise Refusal(f"{paths[0]}: should hold {wanted} numbers, a line each; fetch it again")
    return {int(number) for number in numbers}


def _labels_of(folder: Path, names: Sequence[str]) -> Sequence[int]:
    """Returns the labels of validation images in a folder, whose names are sorted."""
    # LABELS, in `folder` or the nearest parent that has it, has a label for each name, in their
    # order. Without it an image has the published label of the number in its name.
    candidates = (parent / LABELS for parent in (folder, *folder.parents))
    path = next((path for path in candidates if path.is_file()), None)
    copy = resources.files("tensorflow_datasets") / "datasets/imagenet2012/validation_labels.txt"
    text = (path or copy).read_text(encoding="utf-8")
    labels = {name: label for label, name in enumerate(classes())}
    try:
        stated = [labels[name] for name in text.split()]
    except KeyError as error:
        raise Refusal(f"{path}: {error} is no class of ImageNet's") from None
    if path:
        return stated
    numbers = [jpeg_index.number(name) for name in names]
    for name, number in zip(names, numbers, strict=True):
        if not 0 < number <= len(stated):
            text = f"should be named {jpeg_index.VALIDATION}00000001.JPEG and so on, or {LABELS}"
            raise Refusal(f"{folder}/{shown(name)}: {text} should be beside the images")
    return [stated[number - 1] for number in numbers]


# "[0-9]": TensorFlow Datasets calls the folder of an interrupted download "incomplete...".
WANTED = DataSet("imagenet", classes(), "imagenet2012/[0-9]*", ARCHIVES, _labels_of)
