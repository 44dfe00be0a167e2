"""CIFAR-10 from disk: cifar-10-python or cifar-10-binary (.tar.gz or extracted), or TFDS's folder.

HOME describes the formats. An archive holds five training batches and one test batch, 10,000 images
each.
"""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data import archives, tfds
from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.models.weights import pickles
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing

HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
_PER_BATCH, _PIXELS = 10_000, 3 * 32 * 32
_PYTHON = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
_BINARY = [f"{name}.bin" for name in _PYTHON]
# SHA-256, as published by Keras (tf.keras.datasets.cifar10) and TensorFlow Datasets.
PUBLISHED = {
    "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
}
# What a pickled dict of arrays, a batch, may name.
_NAMES: dict[tuple[str, str], str | type] = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): pickles.Bytes,
}
_LOCATIONS = ("", "cifar-10-batches-py", "cifar-10-batches-bin", *PUBLISHED)


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads CIFAR-10's 50,000 training and 10,000 test images, uint8 (examples, 32, 32, 3)."""
    if not data_dir:
        text = "a folder or an archive (train also takes --download, --synthetic=decoded)"
        refuse("data_dir", "", f"cifar10 needs the data: {text}")
    root = Path(data_dir).expanduser()
    if download:
        tfds.check_reachable(HOME, root / "cifar10")
        return _from_tfds(root, download=True)
    if not root.exists():
        text = "does not exist; give the data's folder or archive (train also takes --download)"
        refuse("data_dir", data_dir, text)
    if tfds.is_prepared(root / "cifar10"):
        return _from_tfds(root, download=False)
    for path in (root / name for name in (_LOCATIONS if root.is_dir() else _LOCATIONS[:1])):
        for names, parse in ((_PYTHON, _parse_python), (_BINARY, _parse_binary)):
            if path.is_dir():
                is_there = any((path / name).is_file() for name in (names[0], names[-1]))
            else:
                is_tar = path.is_file() and (".tar" in path.name or path.suffix == ".tgz")
                is_there = is_tar and ("bin" in path.name) == (names is _BINARY)
            if is_there:
                return _from_batches(path, names, parse)
    refuse(
        "data_dir",
        data_dir,
        "holds no CIFAR-10: should be cifar-10-python.tar.gz, cifar-10-binary.tar.gz, the folder "
        "of either, or the folder in which TensorFlow Datasets has prepared cifar10/",
    )


def _from_batches(
    path: Path, names: list[str], parse: Callable[[str, bytes, bool], tuple[np.ndarray, np.ndarray]]
) -> Splits:
    """Reads the six batches from a folder or an archive; `parse` returns pixels and labels."""
    # Checksums are published for archives, not for extracted folders.
    verified = archives.is_published(path, PUBLISHED) if path.is_file() else None
    contents = archives.read_members(path, names)
    train = (len(names) - 1) * _PER_BATCH
    images = np.empty((train + _PER_BATCH, 32, 32, 3), np.uint8)
    labels = np.empty(len(images), np.int64)
    for begin, name in zip(range(0, len(images), _PER_BATCH), names, strict=True):
        part = slice(begin, begin + _PER_BATCH)
        flat, labels[part] = parse(f"{path}/{name}", contents.pop(name), bool(verified))
        for channel in range(3):  # four times as fast as a transposition of all
            images[part, ..., channel] = flat.reshape(_PER_BATCH, 3, 32, 32)[:, channel]
    return Splits(
        in_memory(images[:train], labels[:train]),
        in_memory(images[train:], labels[train:]),
        Origin(path.name, verified),
    )


def _parse_binary(where: str, content: bytes, _: bool) -> tuple[np.ndarray, np.ndarray]:
    """Parses 10,000 records: one label byte, then 3,072 pixel bytes (channel, row, column)."""
    wanted = _PER_BATCH * (1 + _PIXELS)
    if len(content) != wanted:
        text = f"{len(content)} bytes, should be {wanted} (10,000 records)"
        raise Refusal(f"{where}: {text}; fetch it again")
    records = np.frombuffer(content, np.uint8).reshape(_PER_BATCH, 1 + _PIXELS)
    return records[:, 1:], records[:, 0]


def _parse_python(where: str, content: bytes, published: bool) -> tuple[np.ndarray, np.ndarray]:
    """Parses a pickled dict: data uint8 (10000, 3072), labels a list of 10,000 integers."""
    batch = unpickle_arrays(where, content, published)
    data, labels = batch.get("data"), batch.get("labels")
    if data is None or labels is None:
        keys = one_line(", ".join(map(str, batch)))
        raise Refusal(f"{where}: should have data and labels, has {keys}; not CIFAR-10")
    is_data = getattr(data, "shape", None) == (_PER_BATCH, _PIXELS) and data.dtype == np.uint8
    if not is_data or not _are_labels(labels):
        text = "data should be uint8 (10000, 3072), labels as many whole numbers"
        raise Refusal(f"{where}: {text}; damaged or not CIFAR-10")
    return data, np.asarray(labels, np.int64)


def unpickle_arrays(where: str, content: bytes, published: bool = False) -> dict[str, Any]:
    """Reads a pickled dict of arrays and plain values; no code of the pickle is run."""
    problem = "not a pickle of plain arrays"  # damaged pickles raise errors of any type
    with refusing(where, problem, Exception, hint="fetch it again"):
        loaded = pickles.load(BytesIO(content), _NAMES, published=published)
        if not isinstance(loaded, dict):
            raise ValueError(f"it is a {type(loaded).__name__}, should be a dict")
        return {_text(key): _array(value) for key, value in loaded.items()}


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _array(value: Any) -> Any:
    """Returns the array of a recorded call of NumPy's `_reconstruct`, or another value as it is."""
    if not isinstance(value, pickles.Call):
        return value
    _, shape, type_call, by_columns, content = value.state
    if value.function != "array" or not isinstance(content, bytes):
        raise ValueError("an array should be bytes of numbers")
    dtype = np.dtype(_text(type_call.arguments[0]))
    if type_call.function != "dtype" or dtype.kind not in "biuf":
        raise ValueError("an array should be of numbers")
    numbers = np.frombuffer(content, dtype.newbyteorder(_text(type_call.state[1])))
    return numbers.reshape(shape, order="F" if by_columns else "C")


def _are_labels(labels: Any) -> bool:
    if isinstance(labels, np.ndarray):
        return labels.shape == (_PER_BATCH,) and labels.dtype.kind in "iu"
    whole = isinstance(labels, list) and all(type(label) is int for label in labels)
    return whole and len(labels) == _PER_BATCH and max(map(abs, labels)) < 2**31


def _from_tfds(root: Path, download: bool) -> Splits:
    opened = tfds.builder(root, "cifar10", download)
    train, test = (tfds.read(opened, split, _convert_split) for split in ("train", "test"))
    return Splits(train, test, Origin("TensorFlow Datasets"))


def _convert_split(dataset: tf.data.Dataset) -> Split:
    batches = list(dataset.batch(1000).as_numpy_iterator())
    return in_memory(
        np.concatenate([batch["image"] for batch in batches]),
        np.concatenate([batch["label"] for batch in batches]).astype(np.int64),
    )
