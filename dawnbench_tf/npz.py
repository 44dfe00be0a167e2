"""Reads NumPy's .npz files; any damage raises ValueError."""

import io
import zipfile
import zlib

import numpy as np

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


def read(content: bytes) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz file, by name, from its bytes. Pickled objects are refused.

    Only what `np.savez` writes is read: arrays that are not compressed, so that they take no more
    memory than the file.

    Raises:
      ValueError: it is damaged: each array's checksum is in it. Or its arrays are compressed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > len(content):
            raise ValueError("its arrays should not be compressed: np.savez writes it")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except _DAMAGES as error:
        raise ValueError(f"it is damaged: {one_line(error, 80)}") from None
