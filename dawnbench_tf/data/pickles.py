"""A safe reader for pickled dicts of arrays (CIFAR-10's batches), without Python's unpickler."""

from typing import Any

import numpy as np

from dawnbench_tf.models.weights import pickles
from dawnbench_tf.refusals import Refusal, one_line

_NAMES = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "bytes",
}


def unpickle_arrays(where: str, content: bytes) -> dict[str, Any]:
    """Reads a pickled dict of arrays and plain values, without running any code of the pickle.

    Args:
      where: name of the file, for the error.
      content: the pickle's bytes.

    Raises:
      Refusal: the pickle holds anything else.
    """
    try:
        loaded = pickles.follow(content, _NAMES)
        if not isinstance(loaded, dict):
            raise ValueError(f"it is a {type(loaded).__name__}, should be a dict")
        return {_key(key): _finished(value) for key, value in loaded.items()}
    except Exception as error:  # damaged pickles raise errors of any type
        reason = one_line(error, 120)
        raise Refusal(f"{where}: not a pickle of plain arrays ({reason}); fetch it again") from None


def _key(key: Any) -> Any:
    return key.decode() if isinstance(key, bytes) else key


def _finished(value: Any) -> Any:
    """Returns a value of the dict; a recorded call of NumPy's `_reconstruct` as its array."""
    if not isinstance(value, pickles.Call):
        return value
    _, shape, dtype, by_columns, content = value.state
    if value.function != "array" or not isinstance(content, bytes):
        raise ValueError("an array should be bytes of numbers")
    array = np.frombuffer(content, _dtype(dtype))
    return array.reshape(shape, order="F" if by_columns else "C")


def _dtype(value: Any) -> np.dtype:
    name, order = value.arguments[0], value.state[1]
    dtype = np.dtype(_text(name))
    if value.function != "dtype" or dtype.kind not in "biuf":
        raise ValueError("an array should be of numbers")
    return dtype.newbyteorder(_text(order))


def _text(value: Any) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value
