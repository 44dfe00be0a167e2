"""Pickles that strangers made, followed without Python's unpickler: nothing in them is run.

Just the instructions that write plain values, arrays and tensors are followed, each in constant
time, and no more of them than such files take. What a pickle would have called stays a `Call`.
"""

import pickletools
from collections.abc import Callable, Mapping
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO

MOST_INSTRUCTIONS = 500_000  # a batch of CIFAR-10 has 45,000, the weights of ResNet-1202 200,000
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
_LARGEST_INT = 128  # bits; PyTorch's magic number has 77
_MARK = object()


class Name(str):
    """What a pickle names: the caller's word for a function or a class."""


class Call:
    """What a pickle would have called: which function, its arguments, the object's state."""

    def __init__(self, function: str, arguments: tuple):
        self.function, self.arguments = function, arguments
        self.state: Any = None


PERSISTENT = "persistent"  # the function of a Call for what is stored outside the pickle


def follow(content: bytes | BinaryIO, names: Mapping[tuple[str, str], str]) -> Any:
    """Follows one pickle to its end, and returns the value it describes.

    Args:
      content: its bytes; or a file, which is left behind the pickle's end.
      names: what it may name, (module, attribute), and the caller's word for that. "bytes" is how
        Python 3 writes these in protocols 0 to 2; a call of "dict" is an empty dict.

    Raises:
      ValueError: it names or does anything else, or takes too many instructions.
      Exception: whatever else garbage brings about (IndexError, KeyError, ...).
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    stream = BytesIO(content) if isinstance(content, bytes) else content
    instructions = islice(pickletools.genops(stream), MOST_INSTRUCTIONS + 1)
    for number, (instruction, argument, _) in enumerate(instructions):
        if number == MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS:,} instructions")
        if instruction.name == "STOP":
            return stack.pop()
        _step(instruction.name, argument, stack, memo, names)
    raise ValueError("it has no end")


def _step(name, argument, stack, memo, names):
    if isinstance(argument, int) and argument.bit_length() > _LARGEST_INT:
        raise ValueError(f"it holds a number of {argument.bit_length():,} bits")  # slow as a key
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
        if path not in names:
            raise ValueError(f"it would run {'.'.join(map(str, path))}")
        stack.append(Name(names[path]))
    elif name in _CONTAINERS:
        _CONTAINERS[name](stack)
    elif name not in ("PROTO", "FRAME"):
        raise ValueError(f"{name} is no part of plain values")


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
    if not isinstance(function, Name) or not isinstance(arguments, tuple):
        raise ValueError("it calls what is no function")
    if function == "bytes":
        text, encoding = arguments
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise ValueError("bytes should be written as latin1")
        stack.append(text.encode("latin-1"))
    elif function == "dict" and not arguments:
        stack.append({})
    else:
        stack.append(Call(str(function), arguments))


def _build(stack):
    (state,) = _last(stack, 1)
    if isinstance(stack[-1], Call):
        stack[-1].state = state
    elif not isinstance(stack[-1], dict):  # an ordered dict's attributes are left out
        raise ValueError("it gives a state to what has none")


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
    "BINPERSID": lambda stack: stack.append(Call(PERSISTENT, tuple(_last(stack, 1)))),
}
