"""Reads pickles from untrusted sources without Python's unpickler: no code in them is run.

Only the instructions that build plain values, arrays and tensors are followed, each in constant
time, up to MOST_INSTRUCTIONS. A function call in the pickle becomes a `Call` object; none is made.
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
    "EMPTY_SET": list,
    "EMPTY_TUPLE": tuple,
}
_LARGEST_INT = 128  # bits; PyTorch's magic number has 77
_MARK = object()


class Name(str):
    """A function or class that a pickle names, by the caller's word for it."""


class Call:
    """A function call in a pickle, not run: function, arguments, state and items of its object."""

    def __init__(self, function: str, arguments: tuple):
        self.function, self.arguments = function, arguments
        self.state: Any = None
        self.items: dict[Any, Any] = {}


PERSISTENT = "persistent"  # function of the Call that stands for an object outside the pickle


def follow(
    content: bytes | BinaryIO, names: Mapping[tuple[str, str], str], others: bool = False
) -> Any:
    """Reads one pickle and returns the value that it describes.

    Args:
      content: the pickle's bytes, or a file, whose position is then behind the pickle.
      names: functions and classes that the pickle may name, (module, attribute), and the caller's
        word for each. The word "bytes" stands for the call by which Python 3 writes bytes in
        protocols 0 to 2; a call of the word "dict" returns a dict.
      others: whether it may name others too: their word is MODULE.ATTRIBUTE; what is put into their
        objects, and items of a dict whose key is no text or number, are left out.

    Raises:
      ValueError: the pickle names something else, has other instructions, or too many of them.
      Exception: of other types (IndexError, KeyError, ...), if the pickle is damaged.
    """
    # A pickle is a program for a stack machine with a memo; the value is on the stack at STOP.
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    stream = BytesIO(content) if isinstance(content, bytes) else content
    instructions = islice(pickletools.genops(stream), MOST_INSTRUCTIONS + 1)
    for number, (instruction, argument, _) in enumerate(instructions):
        if number == MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS:,} instructions")
        if instruction.name == "STOP":
            return stack.pop()
        _step(instruction.name, argument, stack, memo, names, others)
    raise ValueError("it has no end")


def _step(
    name: str,
    argument: Any,
    stack: list[Any],
    memo: dict[int, Any],
    names: Mapping[tuple[str, str], str],
    others: bool,
) -> None:
    """Executes one instruction."""
    if isinstance(argument, int) and argument.bit_length() > _LARGEST_INT:  # slow to hash
        raise ValueError(f"it contains a number of {argument.bit_length():,} bits")
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
        if not all(isinstance(part, str) for part in path):  # others may be slow to hash
            raise ValueError("it names an object by something that is not text")
        named = ".".join(path)[:100]
        if path not in names and not others:
            raise ValueError(f"it would run {named}")
        stack.append(Name(names.get(path, named)))
    elif name in _CONTAINERS:
        _CONTAINERS[name](stack)
    elif name in _DICTS:
        _DICTS[name](stack, others)
    elif name not in ("PROTO", "FRAME"):
        raise ValueError(f"instruction {name} is not allowed")


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    """Removes the topmost mark and the items above it; returns the items."""
    mark = len(stack) - 1
    while stack[mark] is not _MARK:
        mark -= 1
        if mark < 0:
            raise ValueError("it closes a list that was not opened")
    items = stack[mark + 1 :]
    del stack[mark:]
    return items


def _set_items(stack: list[Any], items: list[Any], others: bool) -> None:
    target = stack[-1].items if isinstance(stack[-1], Call) else stack[-1]
    if not isinstance(target, dict):
        raise ValueError("it sets items of an object that is not a dict")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, str | bytes | int):  # nested tuples may take very long to hash
            target[key] = value
        elif not others:
            raise ValueError(f"a key is a {type(key).__name__}, should be text")


def _dict(stack: list[Any], others: bool) -> None:
    items = _pop_to_mark(stack)
    stack.append({})
    _set_items(stack, items, others)


def _extend(stack: list[Any], items: list[Any]) -> None:
    if isinstance(stack[-1], Call):
        return
    if not isinstance(stack[-1], list):
        raise ValueError("it extends an object that is not a list")
    stack[-1].extend(items)


def _pop(stack: list[Any], count: int) -> list[Any]:
    """Removes the last `count` items of the stack and returns them."""
    items = stack[len(stack) - count :] if len(stack) >= count else [_MARK]
    if any(item is _MARK for item in items):
        raise ValueError("it pops more items than the stack has")
    del stack[len(stack) - count :]
    return items


def _reduce(stack: list[Any], others: bool) -> None:
    function, arguments = _pop(stack, 2)
    if not isinstance(function, Name) or not isinstance(arguments, tuple):
        raise ValueError("it calls an object that is not a function")
    if function == "bytes":
        text, encoding = arguments
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise ValueError("bytes should be written as latin1")
        stack.append(text.encode("latin-1"))
    elif function == "dict":
        stack.append({})
        if arguments and isinstance(arguments[0], list):  # pairs, as Python 2 writes them
            _set_items(stack, [item for pair in arguments[0] for item in pair], others)
    else:
        stack.append(Call(str(function), arguments))


def _build(stack: list[Any]) -> None:
    (state,) = _pop(stack, 1)
    if isinstance(stack[-1], Call):
        stack[-1].state = state
    elif not isinstance(stack[-1], dict):  # attributes of an ordered dict are ignored
        raise ValueError("it sets the state of an object without one")


_CONTAINERS: dict[str, Callable[[list[Any]], None]] = {
    "TUPLE": lambda stack: stack.append(tuple(_pop_to_mark(stack))),
    "TUPLE1": lambda stack: stack.append(tuple(_pop(stack, 1))),
    "TUPLE2": lambda stack: stack.append(tuple(_pop(stack, 2))),
    "TUPLE3": lambda stack: stack.append(tuple(_pop(stack, 3))),
    "FROZENSET": lambda stack: stack.append(_pop_to_mark(stack)),
    "LIST": lambda stack: stack.append(_pop_to_mark(stack)),
    "APPEND": lambda stack: _extend(stack, _pop(stack, 1)),
    "APPENDS": lambda stack: _extend(stack, _pop_to_mark(stack)),
    "ADDITEMS": lambda stack: _extend(stack, _pop_to_mark(stack)),
    "BUILD": _build,
    "BINPERSID": lambda stack: stack.append(Call(PERSISTENT, tuple(_pop(stack, 1)))),
}
_DICTS: dict[str, Callable[[list[Any], bool], None]] = {
    "DICT": _dict,
    "SETITEM": lambda stack, others: _set_items(stack, _pop(stack, 2), others),
    "SETITEMS": lambda stack, others: _set_items(stack, _pop_to_mark(stack), others),
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
}
