"""Images in folders: train/CLASS/ and val/CLASS/, or CLASS/ with a validation share."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from dawnbench_tf import files, machine, terminal
from dawnbench_tf.data.image_files import jpeg_index, shard_writer, trees
from dawnbench_tf.data.image_files.jpeg_index import JpegIndex
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import division
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse, shown

_TRAIN, _TESTS = "train", ("val", "validation", "valid", "test")  # names of folders
_BLOCK = 200  # images between two updates of the status line


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads images of any size and format; the names of the folders are the classes."""
    # Classes are numbered in the order of their names. A line says what is not read.
    share = recipe.validation_share
    root, parts, classes, others = _locate(data_dir, share)
    train = _split(root, trees.read(parts[0], classes))
    if share:
        indices = division.divide(train.labels, share, recipe.seed, classes)
        train, test = (train.take(part) for part in indices)
    else:
        test = _split(root, trees.read(parts[1], classes))
    unread = {part.name: trees.describe_unread(part, classes) for part in parts}
    text = [f"{folder}/: {described}" for folder, described in unread.items() if described]
    if text or others:
        terminal.say(f"not read: {'; '.join([*text, *(f'{name}/' for name in others)])}")
    return Splits(train, test, Origin("image files"), classes=classes)


def _locate(data_dir: str, share: float) -> tuple[Path, list[Path], list[str], list[str]]:
    """Returns the folder, those of its splits, the classes, and names of unread folders."""
    root = Path(data_dir).expanduser()
    if not data_dir or not root.is_dir():
        text = "should be a folder with train/CLASS/ and val/CLASS/, of images"
        refuse("data_dir", data_dir, f"is no folder; {text}" if data_dir else text)
    tests = [name for name in _TESTS if (root / name).is_dir()]
    if share and tests:
        refuse("validation_share", share, f"{root} has {tests[0]}/ for the test; leave this out")
    has_train, folders = (root / _TRAIN).is_dir(), trees.class_names(root)
    is_class = has_train and len(folders) > 2 and not trees.class_names(root / _TRAIN)
    parent = root / _TRAIN if has_train and not is_class else root  # else of vehicles, say
    if not share and (not tests or parent == root):
        text = "should have train/ and val/ with a folder for each class; or add --validation_share"
        refuse("data_dir", data_dir, text)
    classes = trees.class_names(parent)
    if len(classes) < 2:
        number = terminal.counted(len(classes), "class folder")
        refuse("data_dir", parent, f"has {number}; should have one for each class, 2 at least")
    others = sorted({*folders} - {_TRAIN, *tests[:1]} if parent != root else ())
    return root, [parent, *(root / name for name in tests[:1])], classes, others


def _split(root: Path, index: JpegIndex) -> Split:
    return jpeg_index.split(index)._replace(names=_names(root, index))


def _names(root: Path, index: JpegIndex) -> list[str]:
    prefix = "" if index.root == root else f"{Path(index.root).name}/"
    return [f"{prefix}{os.fsdecode(path)}" for path in np.asarray(index.paths)]


def check(recipe: Recipe, data_dir: str) -> None:
    """Decodes each image once, before the clock of a run starts; a cache knows those checked."""
    root, parts, classes, _ = _locate(data_dir, recipe.validation_share)
    indices = [trees.read(part, classes) for part in parts]
    names = [name for index in indices for name in _names(root, index)]
    images = [(index, number) for index in indices for number in range(len(index.labels))]
    keys = [_key(index.path(number)) for index, number in images]
    folder = files.cache_folder()
    digest = hashlib.sha256(bytes(root.absolute())).hexdigest()[:24]
    cache = folder / f"images-{digest}.npz" if folder else None
    checked: dict[int, bool] = {}  # whether an image has an EXIF orientation, by key
    with suppress(OSError, ValueError, KeyError):
        arrays = files.read_npz(cache.read_bytes()) if cache else {}
        checked = dict(zip(arrays["keys"].tolist(), arrays["turned"].tolist(), strict=True))
    bad: dict[str, str] = {}  # reason by name
    left = [position for position, key in enumerate(keys) if key not in checked]

    def problem(position: int) -> str:
        index, number = images[position]
        try:
            unusual = shard_writer.check_image(index.raw(number), names[position])[2]
        except Refusal as refusal:
            return str(refusal).rpartition(": ")[2].partition(";")[0]
        checked[keys[position]] = shard_writer.TURNED in unusual
        return ""

    try:
        with ThreadPoolExecutor(machine.cpus()) as pool:
            for begin in range(0, len(left), _BLOCK):
                terminal.status(f"checking the images: {begin:,} of {len(left):,}")
                block = left[begin : begin + _BLOCK]
                reasons = zip(block, pool.map(problem, block), strict=True)
                bad |= {names[position]: reason for position, reason in reasons if reason}
    finally:  # after Ctrl-C too
        if cache and len(left) > len(bad):  # without it the next run decodes all images again
            turned = np.array([*checked.values()], bool)
            files.cache_npz(cache, {"keys": np.array([*checked], np.uint64), "turned": turned})
    if bad:
        first = ", ".join(f"{shown(name)} ({reason})" for name, reason in list(bad.items())[:10])
        more = f" and {len(bad) - 10:,} more" if len(bad) > 10 else ""
        begun = recipe.whole_task.train_examples
        advice = "replace them: a run goes on with the images it began with"
        advice = advice if begun else "replace or remove them"
        text = f"damaged: {len(bad):,} of {len(names):,} images: {first}{more}; {advice}"
        refuse("data_dir", data_dir, text)
    if count := sum(checked[key] for key in keys):
        images_text = terminal.counted(count, "image")
        terminal.say(f"{images_text} with an EXIF orientation, which is not applied")


def _key(path: str) -> int:
    """Returns a hash of an image's path, size and time; 0 for one that can't be read."""
    try:
        status = os.stat(path)
    except OSError:
        return 0
    text = f"{os.path.abspath(path)} {status.st_size} {status.st_mtime_ns}".encode(
        "utf-8", "surrogateescape"
    )
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
