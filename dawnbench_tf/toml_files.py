"""Reads TOML files that anybody may have written: recipes and grids of studies."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dawnbench_tf import files, typed
from dawnbench_tf.refusals import Refusal, one_line

SUFFIX = ".toml"
LARGEST = 2**15  # bytes, at most: tomllib takes 4 seconds for a dotted key of this length

Keys = Mapping[str, tuple[Any, str]]  # key -> its type, and words for it in errors


def read(path: Path, keys: Keys) -> dict[str, Any]:
    """Reads a TOML file and checks its top-level keys.

    Args:
      path: path of the file, of at most 32 KiB.
      keys: type of each key that the file may have, and words for that type.

    Returns:
      The values of the keys that the file has. Numbers are finite, nesting is limited as in
      `typed.check`.

    Raises:
      Refusal: the file can't be read, a key is unknown (the message suggests the nearest), or a
        value is of another type.
    """
    values = _parse(path)
    for key, value in values.items():
        if key not in keys:
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"should be one of {', '.join(keys)}"
            raise Refusal(f"{path}: {one_line(key, 60)}: {hint}")
        value_type, expected = keys[key]
        if not isinstance(value, value_type) or (value_type is int and isinstance(value, bool)):
            raise Refusal(f"{path}: {key}={one_line(value, 60)}: should be {expected}")
    return values


def _parse(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LARGEST:
            raise ValueError(f"is larger than {LARGEST >> 10} KiB")
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        typed.check(values, dict[str, Any], path.name)
        return values
    except (OSError, ValueError, RecursionError) as error:
        raise files.cannot_read(path, error) from None
