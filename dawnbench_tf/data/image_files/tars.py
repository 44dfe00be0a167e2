"""Images in tar archives, ImageNet's published form, which are read without extraction."""

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dawnbench_tf import terminal
from dawnbench_tf.data.image_files.jpeg_index import UNKNOWN, JpegIndex, number
from dawnbench_tf.refusals import Refusal, refusing, shown

LARGEST_IMAGE = 2**31 - 1  # bytes: lengths are int32

_Member = tuple[str, int, int]  # name, offset in the file, length; both in bytes


def read(path: Path, classes: Sequence[str]) -> JpegIndex:
    """Indexes an archive of archives CLASS.tar: by class, then by image name."""
    with _open(path) as file:
        tar_files = {name.removesuffix(".tar"): extent for name, *extent in _members(path, file)}
        for name in sorted(set(classes) ^ set(tar_files)):
            reason = "is missing" if name in classes else f"is none of the {len(classes)} classes"
            raise Refusal(f"{path}:{shown(name)}.tar: {reason}; should be the published archive")
        images: list[_Member] = []
        labels = []
        for label, name in enumerate(classes):
            members = sorted(_members(path, file, *tar_files[name]))
            if not members:
                raise Refusal(f"{path}:{name}.tar: holds no images; fetch it again")
            images += members
            labels += [label] * len(members)
            terminal.status(f"reading {path}: class {label + 1} of {len(classes)}", logged=False)
    return _index(path, images, labels)


def read_flat(path: Path, labels: Sequence[int]) -> JpegIndex:
    """Indexes an archive of images, sorted by name; `labels` are in the same order."""
    with _open(path) as file:
        images = sorted(_members(path, file))
    if len(images) != len(labels):
        raise Refusal(f"{path}: should hold {len(labels)} images, found {len(images)}")
    return _index(path, images, labels)


def _open(path: Path) -> BinaryIO:
    with refusing(path, "can't be read", OSError):
        if path.exists() and not path.is_file():
            raise OSError("is no regular file")
        return open(path, "rb")


def _members(path: Path, file: BinaryIO, offset: int = 0, size: int | None = None) -> list[_Member]:
    """Returns the regular files of the uncompressed archive at an offset of an open file."""
    members: dict[str, _Member] = {}
    end = path.stat().st_size if size is None else offset + size
    kinds = tarfile.TarError, OSError, EOFError, MemoryError
    with refusing(path, "damaged", *kinds, hint="fetch it again"):
        file.seek(offset)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                if member.size < 0 or name in members:  # tarfile loops forever on a negative size
                    reason = "is there twice" if name in members else "has a size below 0"
                    raise Refusal(f"{path}: {shown(name)} {reason}; fetch it again")
                if member.offset_data + member.size > end:
                    raise Refusal(f"{path}: truncated at {shown(name)}; fetch it again")
                if member.isfile():
                    members[name] = (name, member.offset_data, member.size)
    return list(members.values())


def _index(path: Path, images: list[_Member], labels: Sequence[int]) -> JpegIndex:
    count = len(images)
    names, offsets, lengths = zip(*images, strict=True)
    if max(lengths) > LARGEST_IMAGE:
        name = shown(names[lengths.index(max(lengths))])
        raise Refusal(f"{path}: {name} has {max(lengths):,} bytes; should be an image")
    return JpegIndex(
        path.parent,
        np.array([path.name], np.bytes_),
        np.zeros(count, np.int32),
        np.array(offsets, np.int64),
        np.array(lengths, np.int32),
        np.array(labels, np.int64),
        np.array([number(name) for name in names], np.int32),
        np.full(count, UNKNOWN),
    )
