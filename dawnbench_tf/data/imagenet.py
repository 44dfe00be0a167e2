"""ImageNet (ILSVRC 2012, 1,000 classes) from disk: archives, unpacked, TFRecords, TFDS's folder.

The layouts are told in `images/layouts.py`. Labels are 0 to 999, in the order of the classes'
WordNet ids, as everywhere but in the contest's own kit.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from dawnbench_tf.data.images import layouts
from dawnbench_tf.data.images.layouts import DataSet, Located
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import TASKS

HOME = "https://image-net.org/download-images"
ARCHIVES = ("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar")
BLACKLIST = "ILSVRC201?_clsloc_validation_blacklist.txt"
_KITS = ("", "*devkit*/data/", "ILSVRC/*devkit*/data/")  # where it may lie
LABELS = "imagenet_2012_validation_synset_labels.txt"  # as TensorFlow's own scripts name it


def classes() -> list[str]:
    """The WordNet ids of the 1,000 classes, in the order of the labels."""
    file = resources.files("dawnbench_tf.data") / "imagenet_classes.txt"
    return file.read_text(encoding="utf-8").split()


def find(data_dir: str, flag: str = "data_dir") -> Located:
    """Where ImageNet's JPEGs are in a folder that `flag` named. Raises Refusal."""
    return layouts.find(_wanted(), data_dir, flag)


def _wanted():
    return DataSet("imagenet", classes(), "imagenet2012/*", ARCHIVES, _labels_in_order)


def load(data_dir: str, download: bool = False, skip_blacklisted: bool = False) -> Splits:
    """ImageNet's 1,281,167 training and 50,000 validation JPEGs.

    Args:
      data_dir: a folder in one of the layouts of `images/layouts.py`.
      download: is refused: the archives are given out at HOME, to people who sign up.
      skip_blacklisted: leave out the validation images that the development kit lists.

    Raises:
      Refusal: nothing is found there, or what is found is not ImageNet.
    """
    if download:
        refuse("download", True, f"ImageNet is given out at {HOME} only; name its --data_dir")
    if not skip_blacklisted:
        return layouts.load(_wanted(), data_dir)
    located = find(data_dir)
    numbers = _blacklisted(Path(data_dir).expanduser())
    return located._replace(test=located.test.without(numbers)).splits()


def _blacklisted(root: Path) -> set[int]:
    """Numbers of the validation images that the development kit lists, as it lies beside them."""
    paths = [path for place in _KITS for path in sorted(root.glob(f"{place}{BLACKLIST}"))]
    if not paths:
        right = f"needs the development kit's {BLACKLIST} in {root}"
        refuse("skip_blacklisted", True, right)
    numbers = paths[0].read_text(encoding="utf-8").split()
    wanted = TASKS["imagenet"].blacklisted
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) != wanted:
        raise Refusal(f"{paths[0]}: should hold {wanted} numbers, a line each; fetch it again")
    return {int(number) for number in numbers}


def _labels_in_order(folder: Path) -> Sequence[int]:
    """Labels of the validation images in the order of their names."""
    path = next(
        (place / LABELS for place in (folder, *folder.parents) if (place / LABELS).is_file()), None
    )
    text = path.read_text(encoding="utf-8") if path else _published_labels()
    place = {name: label for label, name in enumerate(classes())}
    try:
        return [place[name] for name in text.split()]
    except KeyError as error:
        raise Refusal(f"{path}: {error} is no class of ImageNet's") from None


def _published_labels() -> str:
    """The validation's classes, a line each, as TensorFlow Datasets brings them."""
    folder = resources.files("tensorflow_datasets") / "datasets" / "imagenet2012"
    return (folder / "validation_labels.txt").read_text(encoding="utf-8")
