"""Safe reading of untrusted archives: members of a tar file or a folder, checksums verified.

Nothing is extracted, so no file can be written outside a folder. Archives are read to the end,
where gzip, bzip2 and xz store the checksum of their content. Size limits bound the memory used.
"""

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, one_line

LARGEST_MEMBER = 64 * 2**20  # bytes; CIFAR-10's largest file is 31 MB
LARGEST_CONTENT = 1 << 30  # bytes of all members
LARGEST_READ = 1 << 20  # bytes a read; only a damaged header asks for more
_FORMS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_DAMAGES = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


def is_published(path: Path, checksums: Mapping[str, str]) -> bool:
    """Whether a file is bit-identical to a published one.

    Args:
      path: the file; its name does not matter.
      checksums: SHA-256 of each published file, by name.
    """
    return path.is_file() and files.digest(path) in checksums.values()


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """Reads files by their base names from a folder or a tar archive.

    Args:
      path: the folder, or the archive (.tar, .tar.gz, .tar.bz2, .tar.xz).
      names: base names of the files.

    Returns:
      The files' contents by name.

    Raises:
      Refusal: a file is missing, larger than LARGEST_MEMBER, or can't be read.
    """
    try:
        members = _read_folder(path, names) if path.is_dir() else _read_tar(path, names)
    except Refusal:
        raise
    except _DAMAGES as error:
        reason = one_line(error, 100)
        raise Refusal(f"{path}: damaged or truncated ({reason}); fetch it again") from None
    missing = [name for name in names if name not in members]
    if missing:
        raise Refusal(f"{path}: should hold {', '.join(names)}; {missing[0]} is missing")
    return members


def _read_folder(path: Path, names: list[str]) -> dict[str, bytes]:
    paths = [path / name for name in names if (path / name).is_file()]
    return {file.name: _read_capped(file, file.stat().st_size, file.read_bytes) for file in paths}


def _read_tar(path: Path, names: list[str]) -> dict[str, bytes]:
    members = {}
    with open(path, "rb") as raw:
        content = Bounded(path, _decompressed(raw))
        with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                is_file = member.isfile()  # links, which may point anywhere, are skipped
                if is_file and name in names and (file := archive.extractfile(member)):
                    read = partial(_read_whole, file)
                    members[name] = _read_capped(f"{path}:{name}", member.size, read)
        while content.read(LARGEST_READ):  # the checksum is at the end
            pass
    return members


def _read_whole(file: IO[bytes]) -> bytes:
    """Reads a file to its end, in pieces that `Bounded` allows."""
    return b"".join(iter(partial(file.read, LARGEST_READ), b""))


def _decompressed(raw: BinaryIO) -> Any:
    """Returns the file's uncompressed content; the first bytes tell the compression."""
    start = raw.read(6)
    raw.seek(0)
    return next((form(raw) for magic, form in _FORMS if start.startswith(magic)), raw)


class Bounded:
    """A readable file with a limit on its content, against decompression bombs.

    Args:
      path: path of the file, for error messages.
      file: open binary file.
      most: largest allowed size of the uncompressed content, in bytes.
    """

    def __init__(self, path: Path, file: Any, most: int = LARGEST_CONTENT):
        self._path, self._file, self._most = path, file, most
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        """Reads `size` bytes. Raises Refusal beyond LARGEST_READ at once, or `most` in total."""
        self._check(0 <= size <= LARGEST_READ and self._file.tell() <= self._most)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seeks to an offset from the start. Raises Refusal for another origin, or past `most`."""
        self._check(whence == 0 and 0 <= offset <= self._most)
        return self._file.seek(offset)

    def _check(self, is_within: bool) -> None:
        if not is_within:
            raise Refusal(f"{self._path}: holds more than the published file can; fetch it again")


def _read_capped(where: Path | str, size: int, read: Callable[[], bytes]) -> bytes:
    if size > LARGEST_MEMBER:
        raise Refusal(
            f"{where}: {size} bytes, should be at most {LARGEST_MEMBER}; not the published file"
        )
    return read()
