"""A safe reader for pickled dicts of arrays (CIFAR-10's batches), without Python's unpickler."""

from io import BytesIO
from typing import Any

import numpy as np

from dawnbench_tf.models.weights import pickles
from dawnbench_tf.refusals import refusing

_NAMES: dict[tuple[str, str], str | type] = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): pickles.Bytes,
}


def unpickle_arrays(where: str, content: bytes) -> dict[str, Any]:
    """Reads a pickled dict of arrays and plain values; no code of the pickle is run."""
    problem = "not a pickle of plain arrays"  # damaged pickles raise errors of any type
    with refusing(where, problem, Exception, hint="fetch it again"):
        loaded = pickles.load(BytesIO(content), _NAMES)
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
