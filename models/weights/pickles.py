"""Reads pickles from untrusted sources: no code in them is run.

Python's unpickler gets stand-ins for all functions and classes that a pickle names. Small pickles
could still take hours or all memory, so `_check` refuses those before anything is built.
"""

import pickle
import pickletools
from collections.abc import Mapping
from io import BytesIO
from typing import Any, BinaryIO

MOST_INSTRUCTIONS = 500_000  # a batch of CIFAR-10 has 45,000, the weights of ResNet-1202 200,000
_MOST_NAMES = 1000  # functions and classes; the stand-in of each takes 2 KB
_LARGEST_INT = 128  # bits; PyTorch's magic number has 77
_LARGEST_KEY = 1000  # values in a key of a dict or an item of a set; hash() visits each
_REFUSED = (
    "DUP POP POP_MARK INST OBJ NEWOBJ_EX PERSID EXT1 EXT2 EXT4 BYTEARRAY8 NEXT_BUFFER "
    "READONLY_BUFFER"
).split()
_CONSTANTS = {  # instructions that put one value
    code.name for code in pickletools.opcodes if not code.stack_before and code.stack_after
} - {"MARK", "GET", "BINGET", "LONG_BINGET", *_REFUSED}
_Names = Mapping[tuple[str, str], str | type]


class Call:
    """A function call in a pickle, not run: function, arguments, state and items of its object."""

    function = ""  # the caller's word for it
    arguments: tuple
    state: Any
    items: dict[Any, Any]

    def __new__(cls, *arguments: Any) -> "Call":  # the unpickler does not always call __init__
        call = super().__new__(cls)
        call.arguments, call.state, call.items = arguments, None, {}
        return call

    # Called by the unpickler. Without __setstate__ a pickle could set attributes of a class; now it
    # fails, as an argument is missing.
    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def append(self, value: Any) -> None:
        """Leaves out a value that the pickle adds to the object, a list or a set."""

    extend = add = append


class Dict(dict):
    """Stands for an ordered or default dict."""

    def __init__(self, pairs: Any = (), *_: Any):
        super().__init__()
        for key, value in pairs if isinstance(pairs, list) else ():  # as Python 2 writes them
            if isinstance(key, str | bytes | int):  # nested tuples may take very long to hash
                self[key] = value

    __setstate__ = Call.__setstate__


class Bytes:
    """Stands for `_codecs.encode`, by which Python 3 writes bytes in protocols 0 to 2."""

    def __new__(cls, text: Any, encoding: Any) -> bytes:  # type: ignore[misc]
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise ValueError("bytes should be written as latin1")
        return text.encode("latin-1")

    __setstate__ = Call.__setstate__


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, names: _Names, others: bool, outside: list[Any]):
        super().__init__(BytesIO(content), encoding="bytes")  # strings of Python 2 are bytes
        self._names, self._others, self._outside = names, others, outside
        self._classes: dict[str, type] = {}

    def find_class(self, module: str, name: str) -> type:
        named = f"{module}.{name}"[:100]
        word = self._names.get((module, name), named if self._others else "")
        if not word:
            raise ValueError(f"it would run {named}")
        if isinstance(word, type):
            return word
        if len(self._classes) == _MOST_NAMES and word not in self._classes:
            raise ValueError(f"it names more than {_MOST_NAMES:,} functions and classes")
        return self._classes.setdefault(word, type("Call", (Call,), {"function": word}))

    def persistent_load(self, pid: Any) -> Any:
        self._outside.append(pid)
        return pid


def load(
    stream: BinaryIO,
    names: _Names,
    others: bool = False,
    published: bool = False,
    outside: list[Any] | None = None,
) -> Any:
    """Reads one pickle and returns its value; the stream's position is then behind the pickle."""
    # One that is bit-identical to a published file is not checked: CIFAR-10's would take 1.6 s.
    # `names` are the functions and classes that it may name, (module, attribute): the word for them
    # in a `Call`, or `Dict` or `Bytes`. With `others` it may name more, by MODULE.ATTRIBUTE.
    # The ids of objects outside the pickle stand for these, and are added to `outside`.
    # ValueError: it names something else, has other instructions, or too many; a damaged one raises
    # exceptions of other types.
    begin, size = stream.tell(), -1
    if not published:
        _check(stream)
        size = stream.tell() - begin
        stream.seek(begin)
    return _Unpickler(stream.read(size), names, others, [] if outside is None else outside).load()


def _check(stream: BinaryIO) -> None:
    """Refuses a pickle that needs much time or memory, by its instructions alone."""
    # As a pickle is a program for a stack machine with a memo, this keeps a stack and a memo of the
    # number of values in each value, an alias counted each time; 0 is a mark.
    stack: list[int] = []
    memo: dict[Any, int] = {}
    for number, (code, argument, _) in enumerate(pickletools.genops(stream)):
        if number == MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS:,} instructions")
        if isinstance(argument, int) and argument.bit_length() > _LARGEST_INT:  # slow to hash
            raise ValueError(f"it contains a number of {argument.bit_length():,} bits")
        if code.name in _CONSTANTS:  # most instructions
            stack.append(1)
            continue
        if code.name in _REFUSED:
            raise ValueError(f"instruction {code.name} is not allowed")
        if "GET" in code.name:
            stack.append(memo[argument])
            continue
        if "PUT" in code.name or code.name == "MEMOIZE":
            index: Any = len(memo) if code.name == "MEMOIZE" else argument
            if index > number:  # the unpickler's memo is an array up to the highest index
                raise ValueError(f"it stores value {index:,} of {number:,}")
            memo[index] = stack[-1]
            continue
        # Take the operands, and the items above the last mark, from the stack.
        before, items = code.stack_before, []
        if pickletools.markobject in before:
            before = before[: before.index(pickletools.markobject)]
            while size := stack.pop():
                items.append(size)
        operands = stack[len(stack) - len(before) :]
        if len(operands) < len(before) or 0 in operands:
            raise ValueError("an instruction needs more values than the stack has")
        del stack[len(stack) - len(before) :]
        keys = operands[1:2] if code.name == "SETITEM" else []
        if code.name in ("SETITEMS", "DICT"):
            keys = items[1::2]  # from the last to the first, values before keys
        elif code.name in ("ADDITEMS", "FROZENSET"):
            keys = items
        if max(keys, default=0) > _LARGEST_KEY:
            raise ValueError(f"a key has more than {_LARGEST_KEY:,} values, should be text")
        # Put the result.
        total = min(1 + sum(operands) + sum(items), _LARGEST_KEY + 1)
        stack += [0 if kind is pickletools.markobject else total for kind in code.stack_after]
