"""Pickles of arrays that strangers made, read without Python's unpickler: nothing in them is run.

A batch of CIFAR-10 is a dict of an array, lists and texts. Just the instructions that write such a
thing are followed, each in constant time, and no more of them than it can take.
"""

import pickletools
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from dawnbench_tf.refusals import Refusal, one_line

MOST_INSTRUCTIONS = 500_000  # a batch of CIFAR-10 has 45,000
_ARRAY, _DTYPE, _BYTES = "ndarray", "dtype", "encode"
_GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"): "_reconstruct",
    ("numpy._core.multiarray", "_reconstruct"): "_reconstruct",
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): _DTYPE,
    ("_codecs", "encode"): _BYTES,  # how Python 3 writes bytes in protocols 0 to 2
}
_VALUES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_OLD_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING")  # Python 2's: bytes
_BINARIES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8")
_PLAIN = (*_NUMBERS, *_TEXTS, *_BINARIES)
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_MARK = object()


class _Made:
    """What a pickle would have called numpy for: which function, its arguments, its state."""

    def __init__(self, function, arguments):
        self.function, self.arguments = function, arguments
        self.state: Any = None


class _Global(str):
    """A name of _GLOBALS on the stack."""


def unpickle_arrays(where: str, content: bytes) -> dict[str, Any]:
    """Reads a pickled dict of arrays and plain values, and runs nothing.

    Args:
      where: the file's name, for the error.
      content: its bytes.

    Raises:
      Refusal: it is anything else.
    """
    try:
        loaded = _run(content)
        if not isinstance(loaded, dict):
            raise ValueError(f"it is a {type(loaded).__name__}, should be a dict")
        return {_key(key): _finished(value) for key, value in loaded.items()}
    except Exception as error:  # whatever garbage brings about, the file is refused
        why = one_line(error, 120)
        raise Refusal(f"{where}: not a pickle of plain arrays ({why}); fetch it again") from None


def _key(key):
    return key.decode() if isinstance(key, bytes) else key


def _run(content):
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    instructions = islice(pickletools.genops(content), MOST_INSTRUCTIONS + 1)
    for number, (instruction, argument, _) in enumerate(instructions):
        if number == MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS:,} instructions")
        if instruction.name == "STOP":
            return stack.pop()
        _step(instruction.name, argument, stack, memo)
    raise ValueError("it has no end")


def _step(name, argument, stack, memo):
    if name in _PLAIN:
        stack.append(argument)
    elif name in _OLD_TEXTS:
        stack.append(argument.encode("latin-1"))
    elif name in _VALUES:
        stack.append(_VALUES[name])
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name == "MARK":
        stack.append(_MARK)
    elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
        memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in ("GLOBAL", "STACK_GLOBAL"):
        attribute, module = (stack.pop(), stack.pop()) if name[0] == "S" else (None, None)
        path = (module, attribute) if name[0] == "S" else tuple(argument.split(" "))
        if path not in _GLOBALS:
            raise ValueError(f"it would run {'.'.join(map(str, path))}")
        stack.append(_Global(_GLOBALS[path]))
    elif name in _CONTAINERS:
        _CONTAINERS[name](stack)
    elif name not in ("PROTO", "FRAME"):
        raise ValueError(f"{name} is no part of plain arrays")


def _to_mark(stack):
    at = len(stack) - 1
    while stack[at] is not _MARK:
        at -= 1
        if at < 0:
            raise ValueError("it closes what it never began")
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _set_items(stack, items):
    if not isinstance(stack[-1], dict):
        raise ValueError("it sets items of what is no dict")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str | bytes | int):  # others may take for ever to hash
            raise ValueError(f"a key is a {type(key).__name__}, should be text")
        stack[-1][key] = value


def _dict(stack):
    items = _to_mark(stack)
    stack.append({})
    _set_items(stack, items)


def _extend(stack, items):
    if not isinstance(stack[-1], list):
        raise ValueError("it extends what is no list")
    stack[-1].extend(items)


def _last(stack, count):
    items = stack[len(stack) - count :] if len(stack) >= count else [_MARK]
    if any(item is _MARK for item in items):
        raise ValueError("it takes more than there is")
    del stack[len(stack) - count :]
    return items


def _reduce(stack):
    function, arguments = _last(stack, 2)
    if not isinstance(function, _Global) or not isinstance(arguments, tuple):
        raise ValueError("it calls what is no function")
    if function == _BYTES:
        text, encoding = arguments
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise ValueError("bytes should be written as latin1")
        stack.append(text.encode("latin-1"))
    else:
        stack.append(_Made(str(function), arguments))


def _build(stack):
    (state,) = _last(stack, 1)
    if not isinstance(stack[-1], _Made):
        raise ValueError("it gives a state to what has none")
    stack[-1].state = state


_CONTAINERS: dict[str, Callable[[list[Any]], None]] = {
    "TUPLE": lambda stack: stack.append(tuple(_to_mark(stack))),
    "TUPLE1": lambda stack: stack.append(tuple(_last(stack, 1))),
    "TUPLE2": lambda stack: stack.append(tuple(_last(stack, 2))),
    "TUPLE3": lambda stack: stack.append(tuple(_last(stack, 3))),
    "LIST": lambda stack: stack.append(_to_mark(stack)),
    "DICT": _dict,
    "APPEND": lambda stack: _extend(stack, _last(stack, 1)),
    "APPENDS": lambda stack: _extend(stack, _to_mark(stack)),
    "SETITEM": lambda stack: _set_items(stack, _last(stack, 2)),
    "SETITEMS": lambda stack: _set_items(stack, _to_mark(stack)),
    "REDUCE": _reduce,
    "BUILD": _build,
}


def _finished(value):
    """A value of the dict, made an array if it is to be one."""
    if not isinstance(value, _Made):
        return value
    _, shape, dtype, by_columns, content = value.state
    if value.function != "_reconstruct" or not isinstance(content, bytes):
        raise ValueError("an array should be bytes of numbers")
    array = np.frombuffer(content, _dtype(dtype))
    return array.reshape(shape, order="F" if by_columns else "C")


def _dtype(value):
    name, order = value.arguments[0], value.state[1]
    dtype = np.dtype(_text(name))
    if value.function != _DTYPE or dtype.kind not in "biuf":
        raise ValueError("an array should be of numbers")
    return dtype.newbyteorder(_text(order))


def _text(value):
    return value.decode("ascii") if isinstance(value, bytes) else value
