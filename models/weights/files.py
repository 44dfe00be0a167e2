"""Weights that others published, read from their files; nothing in these is run.

PyTorch's .pth and .th (both its zip files and the older kind), .safetensors, Keras's .h5, and
TensorFlow's checkpoints, by their .index.
"""

import json
import math
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from . import pickles


class Tensor(NamedTuple):
    """An array of a file: known by its shape, read when it is wanted."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]  # as float32


@contextmanager
def tensors_of(file: BinaryIO) -> Iterator[dict[str, Tensor]]:
    """The tensors of an open file of weights by name, in the file's order, to be read inside.

    Raises:
      ValueError: the file is of no kind that is read here.
      Exception: whatever a damaged file brings about.
    """
    start = file.read(16)
    file.seek(0)
    if start.startswith(b"\x89HDF\r\n\x1a\n"):
        with _hdf5(file) as tensors:
            yield tensors
    elif start.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(file) as archive:
            yield _pytorch_zip(archive, file.seek(0, 2))
    elif start[8:9] == b"{":
        yield _safetensors(file)
    elif start.startswith(b"\x80"):
        yield _pytorch_before_zip(file)
    elif str(file.name).endswith(".index"):
        yield _checkpoint(str(file.name).removesuffix(".index"))
    else:
        raise ValueError("it is neither .pth, .safetensors, .h5 nor a checkpoint's .index")


# PyTorch

_TYPES = {  # of a storage, or safetensors' name of it
    **{"Float": "<f4", "Double": "<f8", "Half": "<f2", "BFloat16": "bfloat16"},
    **{"Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?"},
    **{"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "bfloat16"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"},
}
_NAMES = {
    ("collections", "OrderedDict"): "dict",
    ("torch._utils", "_rebuild_tensor"): "tensor",
    ("torch._utils", "_rebuild_tensor_v2"): "tensor",
    ("torch._utils", "_rebuild_parameter"): "parameter",
    **{("torch", f"{name}Storage"): name for name in _TYPES},
}
_MAGIC = 0x1950A86A20F9469CFC6C  # of PyTorch's files before 1.6
_MOST_DIMENSIONS = 32
_BESIDE = ("state_dict", "model")  # where training scripts keep the weights among other things


def _pytorch_zip(archive, size):
    """The tensors of a zip file of `size` bytes: data.pkl says which, a member is a storage."""
    infos = archive.infolist()
    stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not stored or sum(info.file_size for info in infos) > size:
        raise ValueError("its members should not be compressed: PyTorch stores them")
    members = {info.filename.partition("/")[2]: info.filename for info in infos}
    if archive.getinfo(members["data.pkl"]).file_size > 2**26:
        raise ValueError("its data.pkl is larger than weights take")
    if "byteorder" in members and archive.read(members["byteorder"])[:16] != b"little":
        raise ValueError("its numbers are big-endian")

    def storage(key, count):
        info = archive.getinfo(members[f"data/{key}"])
        if info.file_size < count:
            raise ValueError(f"its data/{key} is shorter than it should be")
        return archive.read(info)[:count]

    return _tensors(pickles.follow(archive.read(members["data.pkl"]), _NAMES), storage)


def _pytorch_before_zip(file):
    """The tensors of an older file: pickles in a row, then each storage behind its length."""
    size = file.seek(0, 2)
    file.seek(0)
    magic, _, _, values, keys = (pickles.follow(file, _NAMES) for _ in range(5))
    if magic != _MAGIC:
        raise ValueError("it is a pickle of something else")
    sizes, places = {}, {}
    for tensor in _weights(values).values():
        key, kind, count = _storage_of(tensor)
        sizes[key] = count * _dtype(kind).itemsize
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        if key not in sizes or count < 0:
            raise ValueError(f"its storage {key!r} belongs to no tensor")
        places[key] = file.tell()
        file.seek(sizes[key], 1)

    def storage(key, count):
        if places[key] + count > size:
            raise ValueError(f"its storage {key!r} is shorter than it should be")
        file.seek(places[key])
        return file.read(count)

    return _tensors(values, storage)


def _weights(values):
    """What holds tensors: the pickled dict itself, or its part of that name."""
    for key in _BESIDE:
        if isinstance(values, dict) and isinstance(values.get(key), dict):
            values = values[key]
    if not isinstance(values, dict):
        raise ValueError(f"it holds a {type(values).__name__}, not weights by name")
    tensors = {name: _tensor_of(value) for name, value in values.items()}
    return {name: value for name, value in tensors.items() if value is not None}


def _tensor_of(value):
    if isinstance(value, pickles.Call) and value.function == "parameter":
        value = value.arguments[0]
    return value if isinstance(value, pickles.Call) and value.function == "tensor" else None


def _storage_of(tensor):
    """A tensor's storage: its key, the kind of its numbers, how many."""
    _, kind, key, _, count = tensor.arguments[0].arguments[0][:5]
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"a storage is of {count!r} numbers")
    return key, kind, count


def _tensors(values, storage):
    """The tensors of a followed pickle; `storage(key, size)` reads so many bytes of a storage."""
    tensors = {}
    for name, tensor in _weights(values).items():
        offset, shape, strides = tensor.arguments[1:4]
        key, kind, count = _storage_of(tensor)
        if not _fits(offset, shape, strides, count):
            raise ValueError(f"its tensor {name} reaches beyond what is stored")

        def read(key=key, kind=kind, count=count, offset=offset, shape=shape, strides=strides):
            numbers = _numbers(storage(key, count * _dtype(kind).itemsize), kind)[offset:]
            steps = [step * numbers.itemsize for step in strides]
            return np.lib.stride_tricks.as_strided(numbers, shape, steps, writeable=False)

        tensors[str(name)] = Tensor(shape, read)
    return tensors


def _fits(offset, shape, strides, count):
    """Whether a view of a storage of `count` numbers stays in it."""
    if not _is_shape(shape) or not _is_shape(strides) or not _is_shape((offset,)):
        return False
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    return math.prod(shape) <= count and (0 in shape or last < count)


def _is_shape(numbers):
    """Whether numbers are few and small enough to be dimensions: their product is quickly had."""
    few = isinstance(numbers, tuple | list) and len(numbers) <= _MOST_DIMENSIONS
    return few and all(isinstance(n, int) and 0 <= n < 2**63 for n in numbers)


def _dtype(kind):
    return np.dtype("<u2" if _TYPES[kind] == "bfloat16" else _TYPES[kind])


def _numbers(content, kind):
    """Bytes of a storage as float32; bfloat16 is its upper half."""
    numbers = np.frombuffer(content, _dtype(kind))
    if _TYPES[kind] == "bfloat16":
        return (numbers.astype("<u4") << 16).view("<f4")
    return numbers.astype("<f4", copy=False)


# safetensors


def _safetensors(file: BinaryIO) -> dict[str, Tensor]:
    """The tensors of a file: the length of a JSON header, the header, the numbers."""
    size = file.seek(0, 2)
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(size, 2**25):
        raise ValueError("its header is longer than the file, or than weights take")
    header: dict[str, Any] = json.loads(file.read(length))
    header.pop("__metadata__", None)
    first, tensors = 8 + length, {}
    for name, facts in header.items():
        kind, shape, (start, end) = facts["dtype"], tuple(facts["shape"]), facts["data_offsets"]
        if not _is_shape(shape):
            raise ValueError(f"its tensor {name} has no dimensions that an array can have")
        needed = math.prod(shape) * _dtype(kind).itemsize
        if not 0 <= start <= end <= size - first or end - start != needed:
            raise ValueError(f"its tensor {name} reaches beyond what is stored")

        def read(start=start, needed=needed, kind=kind, shape=shape):
            file.seek(first + start)
            return _numbers(file.read(needed), kind).reshape(shape)

        tensors[name] = Tensor(shape, read)
    return tensors


# Keras


@contextmanager
def _hdf5(file: BinaryIO) -> Iterator[dict[str, Tensor]]:
    """The data sets of an HDF5 file, by path; nothing outside the file is followed."""
    import h5py  # comes with TensorFlow

    tensors = {}

    def keep(path, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            if not (item.external or item.is_virtual):
                name = _name_in_keras_3(item) or path
                tensors[name] = Tensor(item.shape, lambda: item[()].astype("<f4"))

    with h5py.File(file, "r") as home:
        home.visititems(keep)  # each object once, and no links
        yield tensors


_PARTS_OF_BN = ("gamma", "beta", "moving_mean", "moving_variance")


def _name_in_keras_3(item):
    """A variable's name, layer/part; files of Keras 3 number the variables of a layer."""
    layer = item.parent.attrs.get("name")
    if layer is None:
        return ""
    is_norm = "/batch_normalization" in item.parent.name  # without a scale it has 3
    parts = _PARTS_OF_BN[-len(item.parent) :] if is_norm else ("kernel", "bias")
    return f"{layer}/{parts[int(item.name.rpartition('/')[2])]}"


# TensorFlow


def _checkpoint(prefix: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint by name; only numbers of floating point are weights."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(prefix)
    types = reader.get_variable_to_dtype_map()

    def tensor(name, shape):
        return Tensor(tuple(shape), lambda: reader.get_tensor(name).astype("<f4"))

    return {
        name: tensor(name, shape)
        for name, shape in sorted(reader.get_variable_to_shape_map().items())
        if types[name].is_floating
    }
