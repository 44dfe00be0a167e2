"""Argument checks: each raises ValueError with one line that names the argument and its value."""

from collections.abc import Iterable
from typing import Any


def one_of(choices: Iterable[Any], **argument: Any) -> None:
    """Raises ValueError unless the argument is one of the choices."""
    ((name, value),) = argument.items()
    if value not in choices:
        raise ValueError(f"`{name}` should be one of {list(choices)}. Received: {name}={value!r}")


def in_unit_interval(**argument: float) -> None:
    """Raises ValueError unless the argument is in (0, 1]."""
    ((name, value),) = argument.items()
    if not 0 < value <= 1:
        raise ValueError(f"`{name}` should be in (0, 1]. Received: {name}={value}")


def at_least(minimum: int, **arguments: int) -> None:
    """Raises ValueError unless each argument is at least `minimum`."""
    for name, value in arguments.items():
        if value < minimum:
            raise ValueError(f"`{name}` should be at least {minimum}. Received: {name}={value}")


def multiple(**arguments: int) -> None:
    """Raises ValueError unless the first argument is a multiple of the second, both positive."""
    (name, value), (other, divisor) = arguments.items()
    if value < 1 or divisor < 1 or value % divisor:
        received = f"{name}={value}, {other}={divisor}"
        raise ValueError(f"`{name}` should be a multiple of `{other}`. Received: {received}")


def below_one(**argument: float) -> None:
    """Raises ValueError unless the argument is in [0, 1)."""
    ((name, value),) = argument.items()
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` should be in [0, 1). Received: {name}={value}")


def units_per_stage(depth: int, step: int, extra: int, networks: str) -> int:
    """Returns the units per stage n of networks of depth `step` n + `extra`, if there is an n."""
    units, rest = divmod(depth - extra, step)
    if units < 1 or rest:
        text = f"`depth` should be {step}n+{extra} {networks}, n >= 1"
        raise ValueError(f"{text}. Received: depth={depth}")
    return units
