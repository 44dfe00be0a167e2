"""Reads weight files without running code in them.

Formats: PyTorch's .pth and .th (zip files, and the format before 1.6), .safetensors, Keras's .h5,
TensorFlow checkpoints (by their .index).
"""

import json
import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

import h5py  # comes with TensorFlow
import numpy as np
import tensorflow as tf

from . import pickles


class Tensor(NamedTuple):
    """An array of a file: its shape, and a function that reads its values."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]  # as float32


@contextmanager
def open_tensors(file: BinaryIO) -> Iterator[dict[str, Tensor]]:
    """Returns a context manager with the tensors of a weight file by name, in the file's order.

    Read the values within the context. A damaged file raises exceptions of any type.
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
        yield _pytorch_legacy(file)
    elif str(file.name).endswith(".index"):
        yield _checkpoint(str(file.name).removesuffix(".index"))
    else:
        raise ValueError("it is neither .pth, .safetensors, .h5 nor a checkpoint's .index")


# PyTorch

_ReadStorage = Callable[[str, int], bytes]  # (key of a storage, number of its first bytes)
_TYPES = {  # dtype of PyTorch's storage types and of safetensors' dtypes; TensorFlow adds bfloat16
    **{"Float": "<f4", "Double": "<f8", "Half": "<f2", "BFloat16": "bfloat16"},
    **{"Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?"},
    **{"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "bfloat16"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"},
}
# The functions of a pickle that have a meaning here, and our words for them.
_NAMES: dict[tuple[str, str], str | type] = {
    ("collections", "OrderedDict"): pickles.Dict,
    ("collections", "defaultdict"): pickles.Dict,
    ("torch._utils", "_rebuild_tensor"): "tensor",
    ("torch._utils", "_rebuild_tensor_v2"): "tensor",
    ("torch._utils", "_rebuild_parameter"): "parameter",
    **{("torch", f"{name}Storage"): name for name in _TYPES},
}
_MAGIC = 0x1950A86A20F9469CFC6C  # first value of PyTorch's files before 1.6
_MAX_DIMENSIONS = 32
# Keys of the weights, where training scripts save several dicts of tensors; the first wins.
_WEIGHT_KEYS = ("state_dict", "model", "model_state_dict", "net", "weights")
_DEEPEST = 5  # dicts in dicts


def _pytorch_zip(archive: zipfile.ZipFile, size: int) -> dict[str, Tensor]:
    """Returns the tensors of a zip file of `size` bytes."""
    # data.pkl describes the tensors; each storage, the numbers of one or more tensors, is a member.
    # Without compression the members cannot be larger than the file.
    infos = archive.infolist()
    stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not stored or sum(info.file_size for info in infos) > size:
        raise ValueError("its members should not be compressed: PyTorch stores them")
    members = {info.filename.partition("/")[2]: info.filename for info in infos}
    if "data.pkl" not in members:  # .keras and .npz are zip files too
        raise ValueError("it is a zip file, but none of PyTorch; .pth, .safetensors, .h5 are read")
    if archive.getinfo(members["data.pkl"]).file_size > 2**26:
        raise ValueError("its data.pkl is larger than that of any weights")
    if "byteorder" in members and archive.read(members["byteorder"])[:16] != b"little":
        raise ValueError("its numbers are big-endian")

    def storage(key: str, count: int) -> bytes:
        info = archive.getinfo(members[f"data/{key}"])
        if info.file_size < count:
            raise ValueError(f"its data/{key} is shorter than it should be")
        return archive.read(info)[:count]

    content = BytesIO(archive.read(members["data.pkl"]))
    return _tensors(pickles.load(content, _NAMES, others=True), storage)


def _pytorch_legacy(file: BinaryIO) -> dict[str, Tensor]:
    """Returns the tensors of a file before PyTorch 1.6: five pickles, then (length, storage)s."""
    size = file.seek(0, 2)
    file.seek(0)
    ids: list[Any] = []  # of the storages of all tensors, of an optimizer's too
    load = partial(pickles.load, file, _NAMES, others=True)
    magic, _, _, values = (load(outside=ids) for _ in range(4))
    _weights(values)  # refuses a file without
    keys = load()
    if magic != _MAGIC:
        raise ValueError("it is a pickle of something else")
    sizes, offsets = {}, {}  # of storages, in bytes, by key
    for storage_id in ids:
        key, dtype, count = _storage(storage_id)
        sizes[key] = count * dtype.itemsize
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        if key not in sizes or count < 0:
            raise ValueError(f"its storage {key!r} belongs to no tensor")
        offsets[key] = file.tell()
        file.seek(sizes[key], 1)

    def storage(key: str, count: int) -> bytes:
        if offsets[key] + count > size:
            raise ValueError(f"its storage {key!r} is shorter than it should be")
        file.seek(offsets[key])
        return file.read(count)

    return _tensors(values, storage)


def _weights(values: Any) -> dict[str, pickles.Call]:
    """Returns the tensors' calls by name: of the pickled dict, or of the one in it that has them.

    What is no tensor is left out: arguments, schedulers, optimizers.
    """
    sets = dict(_dicts_of_tensors(values, (), set()))
    layered = {path: sets[path] for path in sets if any("." in name for name in sets[path])}
    ranked = sorted(layered, key=_rank) or sorted(sets, key=_rank)
    if not ranked:
        has = _describe(values)
        if isinstance(values, dict):
            first = list(values.items())[:10]
            has = ", ".join(f"{str(name)[:40]} ({_describe(value)})" for name, value in first)
        hint = "torch.save(model.state_dict(), FILE) writes them"
        raise ValueError(f"it has no tensors by name; it has {has or 'nothing'}; {hint}")
    if len(ranked) > 1 and _rank(ranked[0]) == _rank(ranked[1]):
        names = ", ".join(".".join(path) for path in ranked)
        raise ValueError(f"it has several sets of weights: {names}; save one of them alone")
    return sets[ranked[0]]


def _dicts_of_tensors(
    values: Any, path: tuple[str, ...], visited: set[int]
) -> Iterator[tuple[tuple[str, ...], dict[str, pickles.Call]]]:
    """Yields the path and the tensors of each dict in dicts that has some by name."""
    values = values.items if isinstance(values, pickles.Call) else values  # of a kind of dict
    if not isinstance(values, dict) or id(values) in visited or len(path) > _DEEPEST:
        return
    visited.add(id(values))
    named = {_text(name): value for name, value in values.items() if isinstance(name, str | bytes)}
    tensors = {}
    for name, value in named.items():
        if isinstance(value, pickles.Call) and value.function == "parameter":
            value = value.arguments[0]
        if isinstance(value, pickles.Call) and value.function == "tensor":
            tensors[name] = value
    if tensors:
        yield path, tensors
    for name, value in named.items():
        yield from _dicts_of_tensors(value, (*path, name), visited)


def _text(name: str | bytes) -> str:
    return name.decode("latin-1") if isinstance(name, bytes) else name


def _rank(path: tuple[str, ...]) -> int:
    if path and path[-1] in _WEIGHT_KEYS:
        return _WEIGHT_KEYS.index(path[-1])
    return len(_WEIGHT_KEYS) + bool(path)


def _describe(value: Any) -> str:
    if isinstance(value, pickles.Call):
        return f"it would run {value.function}"
    return "a dict" if isinstance(value, dict) else f"a {type(value).__name__}"


def _storage(storage_id: Any) -> tuple[str, np.dtype, int]:
    """Returns (key, dtype, number of values) of a storage, from its id in the pickle."""
    _, storage_type, key, _, count = storage_id[:5]
    type_name = getattr(storage_type, "function", "")
    if type_name not in _TYPES or not isinstance(key, str | bytes | int):
        raise ValueError("a storage has no type or key")
    if not isinstance(count, int) or count < 0:
        raise ValueError("a storage has a size that is no number")
    text = _text(key) if isinstance(key, bytes) else str(key)
    return text, np.dtype(_TYPES[type_name]), count


def _tensors(values: Any, storage: _ReadStorage) -> dict[str, Tensor]:
    """Returns the tensors of a pickle by name; `values` are the result of `pickles.load`."""
    tensors = {}
    for name, tensor in _weights(values).items():
        offset, shape, strides = tensor.arguments[1:4]
        key, dtype, count = _storage(tensor.arguments[0])
        if not _fits(offset, shape, strides, count):
            raise ValueError(f"its tensor {name} exceeds its storage")
        content = partial(storage, key, count * dtype.itemsize)
        read = partial(_view, content, dtype, offset, shape, strides)
        tensors[str(name)] = Tensor(shape, read)
    return tensors


def _view(content: Callable[[], bytes], dtype: np.dtype, offset: int, *shape: Any) -> np.ndarray:
    """Returns the view (shape, strides) of a storage, in which it stays, as `_fits` checked."""
    numbers = _numbers(content(), dtype)[offset:]
    steps = [step * numbers.itemsize for step in shape[1]]
    return np.lib.stride_tricks.as_strided(numbers, shape[0], steps, writeable=False)


def _fits(offset: Any, shape: Any, strides: Any, count: int) -> bool:
    """Whether a view of a storage stays within its `count` numbers."""
    if not _is_shape(shape) or not _is_shape(strides) or not _is_shape((offset,)):
        return False
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    return math.prod(shape) <= count and (0 in shape or last < count)


def _is_shape(numbers: Any) -> bool:
    """Whether `numbers` are valid dimensions; also bounds the cost of their product."""
    few = isinstance(numbers, tuple | list) and len(numbers) <= _MAX_DIMENSIONS
    return few and all(isinstance(n, int) and 0 <= n < 2**63 for n in numbers)


def _numbers(content: bytes, dtype: np.dtype) -> np.ndarray:
    """Converts the bytes of a storage to float32."""
    return np.frombuffer(content, dtype).astype("<f4", copy=False)


# safetensors


def _safetensors(file: BinaryIO) -> dict[str, Tensor]:
    """Returns the tensors of a file of: the header's length, a JSON header, the numbers."""
    size = file.seek(0, 2)
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(size, 2**25):
        raise ValueError("its header is longer than the file, or than that of any weights")
    header: dict[str, Any] = json.loads(file.read(length))
    header.pop("__metadata__", None)
    first, tensors = 8 + length, {}  # offsets in the header count from `first`

    def read(start: int, needed: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        file.seek(first + start)
        return _numbers(file.read(needed), dtype).reshape(shape)

    for name, facts in header.items():
        type_name, shape = facts["dtype"], tuple(facts["shape"])
        start, end = facts["data_offsets"]
        if not _is_shape(shape):
            raise ValueError(f"its tensor {name} has impossible dimensions")
        dtype = np.dtype(_TYPES[type_name])
        needed = math.prod(shape) * dtype.itemsize
        if not 0 <= start <= end <= size - first or end - start != needed:
            raise ValueError(f"its tensor {name} exceeds its storage")
        tensors[name] = Tensor(shape, partial(read, start, needed, dtype, shape))
    return tensors


# Keras

_BN_PARTS = ("gamma", "beta", "moving_mean", "moving_variance")  # without gamma a BN has 3


@contextmanager
def _hdf5(file: BinaryIO) -> Iterator[dict[str, Tensor]]:
    """Yields the data sets of an HDF5 file by path; follows no links out of the file."""
    tensors = {}

    def keep(path: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            if not (item.external or item.is_virtual):
                # Keras 3 names a layer, and numbers its variables instead of naming them.
                group, number = item.parent, path.rpartition("/")[2]
                is_norm, layer = "/batch_normalization" in group.name, group.attrs.get("name")
                parts = _BN_PARTS[-len(group) :] if is_norm else ("kernel", "bias")
                name = path if layer is None else f"{layer}/{parts[int(number)]}"
                tensors[name] = Tensor(item.shape, lambda: item[()].astype("<f4"))

    with h5py.File(file, "r") as root:
        root.visititems(keep)  # visits each object once, and no links
        yield tensors


# TensorFlow


def _checkpoint(prefix: str) -> dict[str, Tensor]:
    """Returns the floating-point tensors of a checkpoint by name."""
    reader = tf.train.load_checkpoint(prefix)
    types = reader.get_variable_to_dtype_map()

    def tensor(name: str, shape: Sequence[int]) -> Tensor:
        return Tensor(tuple(shape), lambda: reader.get_tensor(name).astype("<f4"))

    return {
        name: tensor(name, shape)
        for name, shape in sorted(reader.get_variable_to_shape_map().items())
        if types[name].is_floating
    }
