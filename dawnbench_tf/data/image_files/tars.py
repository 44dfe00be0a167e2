"""Images in tar archives, ImageNet's published form, which are read without extraction."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dawnbench_tf import terminal
from dawnbench_tf.data.archives import Member, members
from dawnbench_tf.data.image_files.jpeg_index import JpegIndex, LabelsOf, index_files
from dawnbench_tf.refusals import Refusal, refusing, shown

LARGEST_IMAGE = 2**31 - 1  # bytes: lengths are int32


def read(path: Path, classes: Sequence[str]) -> JpegIndex:
    """Indexes an archive of archives CLASS.tar: by class, then by image name."""
    with _open(path) as file:
        tar_files = {
            name.removesuffix(".tar"): (offset, size) for name, offset, size in members(path, file)
        }
        for name in sorted(set(classes) ^ set(tar_files)):
            reason = "is missing" if name in classes else f"is none of the {len(classes)} classes"
            raise Refusal(f"{path}:{shown(name)}.tar: {reason}; should be the published archive")
        images: list[Member] = []
        labels = []
        for label, name in enumerate(classes):
            own = sorted(members(path, file, *tar_files[name]))
            if not own:
                raise Refusal(f"{path}:{name}.tar: holds no images; fetch it again")
            images += own
            labels += [label] * len(own)
            terminal.status(f"reading {path}: class {label + 1} of {len(classes)}", logged=False)
    return _index(path, images, labels)


def read_flat(path: Path, labels_of: LabelsOf) -> JpegIndex:
    """Indexes an archive of images, sorted by name."""
    with _open(path) as file:
        images = sorted(members(path, file))
    labels = labels_of(path.parent, [name for name, _, _ in images])
    if len(images) != len(labels):
        raise Refusal(f"{path}: should hold {len(labels)} images, found {len(images)}")
    return _index(path, images, labels)


def _open(path: Path) -> BinaryIO:
    with refusing(path, "can't be read", OSError):
        if path.exists() and not path.is_file():
            raise OSError("is no regular file")
        return open(path, "rb")


def _index(path: Path, images: list[Member], labels: Sequence[int]) -> JpegIndex:
    names, offsets, lengths = zip(*images, strict=True)
    if max(lengths) > LARGEST_IMAGE:
        name = shown(names[lengths.index(max(lengths))])
        raise Refusal(f"{path}: {name} has {max(lengths):,} bytes; should be an image")
    return index_files(path.parent, names, np.array(labels))._replace(
        paths=np.array([path.name], np.bytes_),
        files=np.zeros(len(names), np.int32),
        offsets=np.array(offsets, np.int64),
        lengths=np.array(lengths, np.int32),
    )
