"""TFRecord shards of images, `train-00000-of-01024`, and the index of the images in them.

Two record formats are read: that of TensorFlow's ImageNet scripts and of `prepare` (image/encoded;
image/class/label from 1 on), and that of TensorFlow Datasets (image, label).
"""

import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, machine, terminal
from dawnbench_tf.data.image_files import jpeg_index
from dawnbench_tf.data.image_files.jpeg_index import JpegIndex
from dawnbench_tf.refusals import Refusal, one_line, refusing

HEADER, FOOTER = 12, 4  # bytes around a record: length and its checksum, checksum of the data
_NAME = re.compile(r"(?:.*[-.])?(train|validation)(?:\.tfrecord)?-(\d{5})-of-(\d{5})")
INDEX = "{split}.index.npz"
BUFFER = 8 << 20  # bytes a read
_PREFIX = 64  # first bytes of an image, by which its offset in the record is found
LARGEST_INDEX = 1 << 30  # bytes; the index of ImageNet's 1,281,167 images has 46 million
_COLUMNS: dict[str, type] = dict.fromkeys(jpeg_index.EXAMPLE_COLUMNS, np.int64)
_COLUMNS |= dict.fromkeys(("files", "lengths", "numbers"), np.int32)
# Features of a record format: image, label, the original file's name, if it has one; first label.
_FORMS = (
    ("image/encoded", "image/class/label", "image/filename", 1),
    ("image", "label", "file_name", 0),
)


def list_shards(root: Path, split: str) -> list[str]:
    """Returns the names of a split's shards in a folder, in order; [] if it has none."""
    names = list_present(root, split)
    count = int(names[0].rpartition("-")[2]) if names else 0
    numbers = {int(name.rsplit("-", 3)[1]) for name in names}
    for number in range(count):
        if number not in numbers:
            raise Refusal(f"{root}: shard {number} of {count} of {split} is missing; copy it again")
    for name in names:
        if not (root / name).is_file():  # opening a pipe would wait forever
            raise Refusal(f"{root / name}: is no regular file; copy the shard again")
    return names


def list_present(root: Path, split: str) -> list[str]:
    """Returns the names of a split's shards in a folder, in order, even if some are missing."""
    matches = [_NAME.fullmatch(name) for name in sorted(os.listdir(root))]
    return [match[0] for match in matches if match and match[1] == split]


def read(root: Path, split: str) -> JpegIndex:
    """Reads the index of a split's shards; without an index file it scans all shards."""
    names = list_shards(root, split)
    if not names:
        raise Refusal(f"{root}: has no {split}-00000-of-... shards; copy them there")
    path = root / INDEX.format(split=split)
    if not path.exists():
        return scan(root, names)
    again = "run `prepare` with the same --out again, which keeps the shards; or remove it"
    with refusing(path, "can't be read", OSError, ValueError, hint=again):
        if not path.is_file() or path.stat().st_size > LARGEST_INDEX:
            raise ValueError(f"is no file of at most {LARGEST_INDEX} bytes")
        index, sizes = unpack(root, path.read_bytes())
    if not _describes(index, sizes, names):
        raise Refusal(f"{path}: is not of the shards beside it; remove it, or prepare them again")
    return index


def unpack(root: Path, content: bytes) -> tuple[JpegIndex, np.ndarray]:
    """Parses an index file; returns the index, and the sizes of its shards in bytes."""
    arrays = files.read_npz(content)  # which has a checksum of each
    try:
        return JpegIndex(root, *[arrays[name] for name in JpegIndex._fields[1:]]), arrays["sizes"]
    except KeyError as error:
        raise ValueError(f"an earlier version wrote it: it holds no {error}") from None


def _describes(index: JpegIndex, sizes: np.ndarray, names: list[str]) -> bool:
    """Whether an index fits the shards of these names: names, sizes, dtypes and offsets."""
    if index.paths.tolist() != [name.encode() for name in names]:
        return False
    if sizes.tolist() != [os.path.getsize(index.full_path(name)) for name in index.paths]:
        return False
    columns = {name: getattr(index, name) for name in _COLUMNS}
    if {column.shape for column in columns.values()} != {(index.labels.size,)}:
        return False
    if any(own.dtype != _COLUMNS[name] or (own < 0).any() for name, own in columns.items()):
        return False
    # Every image has to lie inside its shard. File numbers out of range look up shard 0 here.
    inside = index.files < len(names)
    ends = sizes[index.files * inside]
    return bool(inside.all() and (index.offsets <= ends - index.lengths).all())


def write_index(index: JpegIndex, split: str) -> None:
    """Writes a split's index beside its shards, atomically. Raises Refusal if that fails."""
    path = Path(index.root, INDEX.format(split=split))
    sizes = [os.path.getsize(index.full_path(name)) for name in index.paths]
    columns = {name: getattr(index, name) for name in JpegIndex._fields[1:]}
    arrays = {**columns, "sizes": np.array(sizes, np.int64)}
    with files.renamed_to(path) as temporary:
        np.savez(temporary, **arrays)


def scan(root: Path, names: Sequence[str]) -> JpegIndex:
    """Indexes shards by reading them completely, verifying the records' checksums."""

    def rows(name: str) -> np.ndarray:  # int64 (images, columns of _SCANNED)
        return np.array(list(_scan_records(str(root / name))), np.int64).reshape(-1, len(_SCANNED))

    parts = []
    with ThreadPoolExecutor(machine.cpus()) as pool:
        for done, part in enumerate(pool.map(rows, names), 1):
            parts.append(part)
            terminal.status(f"reading shards of {root}: {done} of {len(names)}", logged=False)
    numbers = np.repeat(np.arange(len(names)), [len(part) for part in parts])
    columns = {"files": numbers, **dict(zip(_SCANNED, np.concatenate(parts).T, strict=True))}
    typed = {name: column.astype(_COLUMNS[name]) for name, column in columns.items()}
    return JpegIndex(root, np.array(names, np.bytes_), **typed)


_SCANNED = ("offsets", "lengths", "labels", "numbers", "checksums")


def _scan_records(path: str) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields the columns _SCANNED of each image of a shard."""
    position = 0  # offset of the record's header in the file
    damaged = refusing(path, "damaged", tf.errors.OpError, hint="copy it again")
    with refusing(path, "can't be read", OSError), damaged:
        _check_lengths(path)
        for record in tf.data.TFRecordDataset(path, buffer_size=BUFFER).as_numpy_iterator():
            image, label, number = _read_record(record, path)
            # Protobuf stores the image's bytes unchanged inside the record.
            offset = position + HEADER + record.find(image[:_PREFIX])
            yield offset, len(image), label, number, zlib.crc32(image)
            position += HEADER + len(record) + FOOTER


def _check_lengths(path: str) -> None:
    """Raises Refusal for a record longer than its shard or an image."""
    # TensorFlow would allocate the memory that the record's header asks for.
    size, position = os.path.getsize(path), 0
    with open(path, "rb", buffering=0) as file:
        while len(header := file.read(8)) == 8:
            (length,) = struct.unpack("<Q", header)
            if length > min(jpeg_index.LARGEST, size - position - HEADER - FOOTER):
                reason = f"the record at byte {position} says it has {length} bytes"
                raise Refusal(f"{path}: damaged ({reason}); copy it again")
            position += HEADER + length + FOOTER
            file.seek(position)


def _read_record(record: bytes, path: str) -> tuple[bytes, int, int]:
    """Returns a record's image as stored, its label from 0 on, and its validation number or 0."""
    # Exception: protobuf's DecodeError; importing it would add a dependency.
    with refusing(path, "holds no tf.train.Example", Exception):
        features = tf.train.Example.FromString(record).features.feature
    for image_name, label_name, file_name, first_label in _FORMS:
        if image_name in features and label_name in features:
            image = features[image_name].bytes_list.value
            label = features[label_name].int64_list.value
            if len(image) == len(label) == 1:
                name = features[file_name].bytes_list.value if file_name in features else []
                text = name[0].decode(errors="replace") if name else ""
                return image[0], label[0] - first_label, jpeg_index.number(text)
    wanted = " or ".join(f"{image} and {label}" for image, label, *_ in _FORMS)
    keys = one_line(", ".join(sorted(features)), 80)
    raise Refusal(f"{path}: records should hold {wanted}, found {keys}")
