"""An index of the JPEGs of a split: file, offset and length of each, for any layout on disk.

A split is read by index, so an epoch's order is a permutation of the whole split.
"""

import contextlib
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from PIL import Image

from dawnbench_tf.data.images.splits import Split
from dawnbench_tf.refusals import Refusal, refusing

JPEG = b"\xff\xd8\xff"  # first bytes of a JPEG
VALIDATION = "ILSVRC2012_val_"  # prefix of a validation image's file; eight digits follow
LARGEST = 64 << 20  # bytes; ILSVRC's largest image has 15 million
RE_ENCODED = 100  # JPEG quality of images that were in another format
UNKNOWN = -1  # stands for a missing checksum


class JpegIndex(NamedTuple):
    """Location and class of each JPEG of a split."""

    root: Path  # folder
    paths: np.ndarray  # bytes (files,), below root
    files: np.ndarray  # int32 (examples,), index into paths
    offsets: np.ndarray  # int64 (examples,), bytes
    lengths: np.ndarray  # int32 (examples,), bytes; LARGEST: to the file's end
    labels: np.ndarray  # int64 (examples,)
    numbers: np.ndarray  # int32 (examples,), number of a validation image, from 1 on; 0: not known
    checksums: np.ndarray  # int64 (examples,), CRC-32 of an image's bytes, or UNKNOWN

    def read(self, example: int) -> bytes:
        """Returns an image as JPEG; another format (ILSVRC has a PNG) is re-encoded."""
        content = self.raw(example)
        return content if content.startswith(JPEG) else as_jpeg(content, self.path(example))

    def raw(self, example: int) -> bytes:
        """Returns the bytes of an image as stored, in any format."""
        path, checksum = self.path(example), self.checksums[example]
        with refusing(path, "can't be read", OSError), open(path, "rb", buffering=0) as file:
            file.seek(self.offsets[example])
            content = file.read(self.lengths[example])
        if len(content) == LARGEST:
            raise Refusal(f"{path}: holds more than an image can; fetch it again")
        if checksum not in (UNKNOWN, zlib.crc32(content)):
            where = f"the image at byte {self.offsets[example]}"
            raise Refusal(f"{path}: damaged, {where} has another checksum; copy it again")
        return content

    def without(self, numbers: Collection[int]) -> "JpegIndex":
        """Returns the index without the validation images of the given numbers."""
        kept = ~np.isin(self.numbers, list(numbers))
        if np.sum(~kept) != len(numbers):
            reason = f"of {len(numbers)} numbers {np.sum(~kept)} are an image's"
            raise Refusal(f"{self.root}: {reason}; validation images should have their own names")
        return self._replace(**{name: getattr(self, name)[kept] for name in EXAMPLE_COLUMNS})

    def path(self, example: int) -> str:
        """Returns the path of the file that holds an example."""
        return self.full_path(self.paths[self.files[example]])

    def full_path(self, name: bytes) -> str:
        """Returns the full path of one of `paths`."""
        return f"{self.root}/{os.fsdecode(name)}"


# Returns the labels of images by their folder and their sorted names.
LabelsOf = Callable[[Path, Sequence[str]], Sequence[int]]
EXAMPLE_COLUMNS = ("files", "offsets", "lengths", "labels", "numbers", "checksums")


def index_files(root: Path, paths: Sequence[str], labels: np.ndarray) -> JpegIndex:
    """Returns the index of files that hold one image each."""
    count = len(paths)
    return JpegIndex(
        root,
        np.array([os.fsencode(path) for path in paths], np.bytes_),
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int64),
        np.full(count, LARGEST, np.int32),
        np.asarray(labels, np.int64),
        np.array([number(path) for path in paths], np.int32),
        np.full(count, UNKNOWN),
    )


def number(name: str) -> int:
    """Returns the number of an ILSVRC validation image by its file name; 0 for another file.

    >>> number("val/ILSVRC2012_val_00000293.JPEG"), number("n01440764_10026.JPEG")
    (293, 0)
    >>> number("ILSVRC2012_val_00000293_n01440764.JPEG")  # Hugging Face's
    293
    """
    _, is_named, rest = name.rpartition(VALIDATION)
    digits = re.split("[._]", rest)[0]
    return int(digits) if is_named and digits.isascii() and digits.isdigit() else 0


def as_jpeg(content: bytes, where: Any) -> bytes:
    """Re-encodes an image of another format as JPEG."""
    try:
        with tf.device("CPU:0"):
            pixels = decode(content)
            return tf.io.encode_jpeg(pixels, quality=RE_ENCODED, chroma_downsampling=False).numpy()
    except (OSError, ValueError, SyntaxError):
        reason = "is empty" if not content else "holds no image that can be decoded"
        raise Refusal(f"{where}: {reason}; fetch it again") from None


def decode(content: bytes) -> Any:
    """Decodes an image; by Pillow what TensorFlow can't, and BMPs: it takes palettes for grey."""
    if not content.startswith(b"BM"):
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            return tf.io.decode_image(content, channels=3, expand_animations=False)
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


def split(index: JpegIndex) -> Split:
    """Returns the split of an index: labels, and a function that reads JPEGs by index."""

    def read(examples: np.ndarray) -> np.ndarray:
        return np.array([index.read(example) for example in examples], object)

    def jpegs(examples: tf.Tensor) -> tf.Tensor:
        contents = tf.numpy_function(read, [examples], tf.string, stateful=False)
        return tf.ensure_shape(contents, [None])

    return Split(index.labels, jpegs=jpegs)
