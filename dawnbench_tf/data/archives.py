"""Reading archives that strangers made: members of a tar file or a folder, held to their checksums.

Archives are read in place: nothing is ever extracted, so nothing can land outside a folder. They
are read to their end, where gzip, bzip2 and xz keep the checksum of their content, and no more is
read into memory than a published file can hold.
"""

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, one_line

LARGEST_MEMBER = 64 * 2**20  # bytes; CIFAR-10's largest file is 31 MB
LARGEST_CONTENT = 1 << 30  # bytes of all members
LARGEST_READ = 1 << 20  # bytes at once; only headers that are none of these are longer
_FORMS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_DAMAGES = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


def is_published(path: Path, checksums: Mapping[str, str]) -> bool:
    """Whether a file is, to the bit, one of those published.

    Args:
      path: of the file, of any name.
      checksums: SHA-256 by name, of each.
    """
    return path.is_file() and files.digest(path) in checksums.values()


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """Reads files by their base names from a folder or a tar archive.

    Args:
      path: the folder, or the archive (.tar, .tar.gz, .tar.bz2, .tar.xz).
      names: base names wanted.

    Returns:
      Contents by name.

    Raises:
      Refusal: one is missing, too large to be what it is named, or can't be read.
    """
    try:
        members = _from_folder(path, names) if path.is_dir() else _from_tar(path, names)
    except Refusal:
        raise
    except _DAMAGES as error:
        why = one_line(error, 100)
        raise Refusal(f"{path}: damaged or truncated ({why}); fetch it again") from None
    missing = [name for name in names if name not in members]
    if missing:
        raise Refusal(f"{path}: should hold {', '.join(names)}; {missing[0]} is missing")
    return members


def _from_folder(path, names):
    paths = [path / name for name in names if (path / name).is_file()]
    return {file.name: _capped(file, file.stat().st_size, file.read_bytes) for file in paths}


def _from_tar(path, names):
    members = {}
    with open(path, "rb") as raw:
        content = Bounded(path, _opened(raw))
        with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                is_file = member.isfile()  # links are not followed: they may point anywhere
                if is_file and name in names and (file := archive.extractfile(member)):
                    members[name] = _capped(f"{path}:{name}", member.size, partial(_whole, file))
        while content.read(LARGEST_READ):  # to the end: the checksum is there
            pass
    return members


def _whole(file):
    """A file's content, in pieces that `Bounded` gives."""
    return b"".join(iter(partial(file.read, LARGEST_READ), b""))


def _opened(raw: BinaryIO) -> Any:
    start = raw.read(6)
    raw.seek(0)
    return next((form(raw) for magic, form in _FORMS if start.startswith(magic)), raw)


class Bounded:
    """A file that gives no more than a published archive holds, however it was compressed.

    Args:
      path: of the file, for messages.
      file: binary, open.
      most: bytes of its content.
    """

    def __init__(self, path: Path, file: Any, most: int = LARGEST_CONTENT):
        self._path, self._file, self._most = path, file, most
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises Refusal if too many are asked for, at once or in all."""
        self._check(0 <= size <= LARGEST_READ and self._file.tell() <= self._most)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Goes to a place. Raises Refusal if it is past all that may be there."""
        self._check(whence == 0 and 0 <= offset <= self._most)
        return self._file.seek(offset)

    def _check(self, is_within):
        if not is_within:
            raise Refusal(f"{self._path}: holds more than the published file can; fetch it again")


def _capped(where, size, read):
    if size > LARGEST_MEMBER:
        raise Refusal(
            f"{where}: {size} bytes, should be at most {LARGEST_MEMBER}; not the published file"
        )
    return read()
