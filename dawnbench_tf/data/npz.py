"""Arrays in NumPy's .npz files, any damage of which is one kind of error."""

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
    """The arrays of a file, by name, from its bytes; pickled objects are not read.

    Raises:
      ValueError: it is damaged: each array's checksum is in it.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except _DAMAGES as error:
        raise ValueError(f"it is damaged: {one_line(error, 80)}") from None
