"""Images in tar archives that are read in place, as ImageNet's are given out."""

import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dawnbench_tf import files, terminal
from dawnbench_tf.data import archives
from dawnbench_tf.data.images.jpeg_index import UNKNOWN, JpegIndex, number
from dawnbench_tf.refusals import Refusal, one_line, shown

LARGEST_IMAGE = 2**31 - 1  # bytes: lengths are int32

_Place = tuple[str, int, int]  # name, offset, length


def read(path: Path, classes: Sequence[str]) -> JpegIndex:
    """The images in an archive of archives, CLASS.tar, class by class, in the order of their names.

    Raises:
      Refusal: it can't be read, or a class is missing, empty, or none.
    """
    with _opened(path) as file:
        members = {name.removesuffix(".tar"): (at, size) for name, at, size in _members(path, file)}
        for name in sorted(set(classes) ^ set(members)):
            what = "is missing" if name in classes else f"is none of the {len(classes)} classes"
            raise Refusal(f"{path}:{shown(name)}.tar: {what}; should be the published archive")
        places: list[_Place] = []
        labels = []
        for label, name in enumerate(classes):
            images = sorted(_members(path, file, *members[name]))
            if not images:
                raise Refusal(f"{path}:{name}.tar: holds no images; fetch it again")
            places += images
            labels += [label] * len(images)
            terminal.status(f"reading {path}: class {label + 1} of {len(classes)}", logged=False)
    return _index(path, places, labels)


def read_flat(path: Path, labels: Sequence[int]) -> JpegIndex:
    """The images in an archive, in the order of their names, which is that of the labels.

    Raises:
      Refusal: it can't be read, or there are more or fewer images than labels.
    """
    with _opened(path) as file:
        places = sorted(_members(path, file))
    if len(places) != len(labels):
        raise Refusal(f"{path}: should hold {len(labels)} images, found {len(places)}")
    return _index(path, places, labels)


def _opened(path):
    try:
        if path.exists() and not path.is_file():
            raise OSError("is no regular file")
        return open(path, "rb")
    except OSError as error:
        raise files.cannot_read(path, error) from None


def _members(path, file, offset=0, size=None) -> list[_Place]:
    """Files in the archive, none of them compressed, that lies at an offset of a file."""
    places: dict[str, _Place] = {}
    end = path.stat().st_size if size is None else offset + size
    try:
        file.seek(offset)
        content = archives.Bounded(path, file, end)
        with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                if member.size < 0 or name in places:  # of a size below 0, it would be read forever
                    what = "is there twice" if name in places else "has a size below 0"
                    raise Refusal(f"{path}: {shown(name)} {what}; fetch it again")
                if member.offset_data + member.size > end:
                    raise Refusal(f"{path}: truncated at {shown(name)}; fetch it again")
                if member.isfile():
                    places[name] = (name, member.offset_data, member.size)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise Refusal(f"{path}: damaged ({one_line(error, 80)}); fetch it again") from None
    return list(places.values())


def _index(path, places, labels):
    count = len(places)
    names, offsets, lengths = zip(*places, strict=True)
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
