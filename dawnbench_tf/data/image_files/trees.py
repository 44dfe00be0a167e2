"""Images as files in one folder for each class, the layout of the unpacked ImageNet."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dawnbench_tf.data.image_files.jpeg_index import JpegIndex, LabelsOf, index_files
from dawnbench_tf.refusals import Refusal, refusing

SUFFIXES = (".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".webp")


def read(root: Path, classes: Sequence[str]) -> JpegIndex:
    """Indexes images in class folders: by class, then by file name."""
    for name in sorted(set(classes) ^ set(class_names(root))):
        reason = "is missing" if name in classes else f"is none of the {len(classes)} classes"
        raise Refusal(f"{root / name}: {reason}; should be a folder for each class")
    paths: list[str] = []
    counts = []
    for name in classes:
        images = some_images(root / name)
        paths += [f"{name}/{image}" for image in images]
        counts.append(len(images))
    return index_files(root, paths, np.repeat(np.arange(len(classes)), counts))


def read_flat(root: Path, labels_of: LabelsOf) -> JpegIndex:
    """Indexes images in one folder, sorted by name."""
    images = list_images(root)
    labels = labels_of(root, images)
    if len(images) != len(labels):
        raise Refusal(f"{root}: should hold {len(labels)} images, found {len(images)}")
    return index_files(root, images, np.asarray(labels))


def is_flat(root: Path) -> bool:
    """Whether a folder has entries, and no folder among them."""
    entries = _list_entries(root)
    return bool(entries) and not any(entry.is_dir() for entry in entries)


def class_names(root: Path) -> list[str]:
    """Returns the names of the folders in a folder, sorted. Raises Refusal if it can't be read."""
    return sorted(entry.name for entry in _list_entries(root) if entry.is_dir())


def describe_unread(root: Path, classes: Sequence[str]) -> str:
    """Returns what of a folder of class folders is not read, e.g. "12 .tif, 2 folders"; or ""."""
    # Without classes the folder itself has the images.
    counts = Counter[str]()
    for folder in (root, *(root / name for name in classes)):
        has_images = folder != root or not classes
        for entry in _list_entries(folder):
            if entry.is_dir():
                counts[f"folders in {folder.name}"] += has_images
            elif not entry.is_file():
                counts["links or other entries that are no files"] += 1
            elif not (has_images and entry.name.lower().endswith(SUFFIXES)):
                counts[os.path.splitext(entry.name)[1] or "without a suffix"] += 1
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()) if count)


def some_images(folder: Path) -> list[str]:
    """Returns the names of the images in a folder, sorted. Raises Refusal if it has none."""
    if not (names := list_images(folder)):
        raise Refusal(f"{folder}: holds no image; should have {', '.join(SUFFIXES)} files")
    return names


def list_images(folder: Path) -> list[str]:
    """Returns the names of the images in a folder, sorted."""
    names = (entry.name for entry in _list_entries(folder) if entry.is_file())
    return sorted(name for name in names if name.lower().endswith(SUFFIXES))


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    with refusing(folder, "can't be read", OSError), os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]
