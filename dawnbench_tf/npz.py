"""Reads NumPy's .npz files and writes caches in that format."""

import io
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from dawnbench_tf import files, terminal
from dawnbench_tf.refusals import one_line

_DAMAGES = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def read(content: bytes, largest: int = 0) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz file, by name, from its bytes. Pickled objects are refused.

    Args:
      content: of the file.
      largest: bytes that the arrays of `np.savez_compressed` may take; 0: arrays should not be
        compressed, so that they take no more memory than the file.

    Raises:
      ValueError: it is damaged: each array's checksum is in it. Or it is no .npz file, holds Python
        objects, or its arrays are too large or compressed.
    """
    if content.startswith(np.lib.format.MAGIC_PREFIX) and _is_npy(content):
        raise ValueError("it is an .npy file, one array; np.savez writes several by name")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            problem = _problem(archive, len(content), largest)
        if not problem:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return {
                    name: arrays[name]
                    for name in arrays.files
                    if f"{name}.npy" in arrays.zip.NameToInfo
                }
    except _DAMAGES as error:
        raise ValueError(f"it is damaged: {one_line(error, 80)}") from None
    raise ValueError(problem)


def cache(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to a cache file, .npz; prints a message if the file can't be written.

    Args:
      path: path of the file, in `files.cache_folder`.
      arrays: NumPy arrays by name.
    """
    # Each process has a temporary file of its own: two runs may write one cache at the same time.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
    except OSError as error:
        files.discard(temporary)
        terminal.say(f"{path}: can't be written ({error.strerror}); going on without")


def _is_npy(content: bytes) -> bool:
    try:
        _header(io.BytesIO(content))
    except _DAMAGES:
        return False
    return True


def _problem(archive: zipfile.ZipFile, size: int, largest: int) -> str:
    """Returns why the arrays of an archive of `size` bytes are not read; "" if they are."""
    members = archive.infolist()
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    total = sum(member.file_size for member in members)
    if not largest and (not stored or total > size):
        return "its arrays should not be compressed: np.savez writes it"
    if largest and total > max(size, largest):
        return f"its arrays take {total / 2**30:,.1f} GiB, and {largest / 2**30:,.1f} are free"
    for member in members:
        if not member.filename.endswith(".npy"):
            continue  # no array
        with archive.open(member) as file:
            shape, dtype = _header(file)
        if dtype.hasobject:
            return f"its {member.filename} holds Python objects, not numbers of one type"
        if math.prod(shape) * dtype.itemsize > member.file_size:
            return f"it is damaged: {member.filename} claims {shape} {dtype}, more than it holds"
    return ""


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Returns shape and type of an .npy file, from its header."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
