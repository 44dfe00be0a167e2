"""Safe reading of untrusted archives: members of a tar file or a folder, checksums verified.

Nothing is extracted, so no file can be written outside a folder.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, refusing, shown

LARGEST_MEMBER = 64 * 2**20  # bytes; CIFAR-10's largest file is 31 MB
LARGEST_CONTENT = 512 * 2**20  # bytes, uncompressed; CIFAR-10's archives have 187 MB
_FORMS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
Member = tuple[str, int, int]  # name, offset in the file, length; both in bytes
_DAMAGES = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


def is_published(path: Path, checksums: Mapping[str, str]) -> bool:
    """Whether a file is bit-identical to a published one, by the SHA-256 of each."""
    return path.is_file() and files.digest(path) in checksums.values()


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """Reads files by their base names from a folder or a tar archive."""
    contents = {}
    with refusing(path, "damaged or truncated", *_DAMAGES, hint="fetch it again"):
        if path.is_dir():
            for file in (path / name for name in names if (path / name).is_file()):
                _check_size(file, file.stat().st_size)
                contents[file.name] = file.read_bytes()
        else:
            whole = _content(path)
            for name, offset, size in members(path, io.BytesIO(whole), 0, len(whole), names):
                _check_size(f"{path}:{name}", size)
                contents[name] = whole[offset : offset + size]
    missing = [name for name in names if name not in contents]
    if missing:
        raise Refusal(f"{path}: should hold {', '.join(names)}; {missing[0]} is missing")
    return contents


def members(
    path: Path,
    file: BinaryIO,
    offset: int = 0,
    size: int | None = None,
    names: Collection[str] | None = None,
) -> list[Member]:
    """Returns the regular files of the uncompressed archive at an offset of an open file."""
    # Links, which may point anywhere, are skipped, and files of other base names than `names`.
    entries: dict[str, Member] = {}
    end = path.stat().st_size if size is None else offset + size
    with refusing(path, "damaged or truncated", *_DAMAGES, MemoryError, hint="fetch it again"):
        file.seek(offset)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name = member.name.rsplit("/", 1)[-1]
                wanted = member.isfile() and (names is None or name in names)
                # tarfile would loop forever on a negative size.
                if member.size < 0 or (wanted and name in entries):
                    reason = "has a size below 0" if member.size < 0 else "is there twice"
                    raise Refusal(f"{path}: {shown(name)} {reason}; fetch it again")
                if member.offset_data + member.size > end:
                    raise Refusal(f"{path}: truncated at {shown(name)}; fetch it again")
                if wanted:
                    entries[name] = (name, member.offset_data, member.size)
            # tarfile ends at a damaged header, but for a file's first, as at the archive's end.
            file.seek(archive.offset)
            if file.read(min(tarfile.BLOCKSIZE, max(0, end - archive.offset))).strip(b"\0"):
                raise tarfile.ReadError(f"damaged header at byte {archive.offset:,}")
    return list(entries.values())


def _content(path: Path) -> bytes:
    """Returns the uncompressed content of an archive, against bombs up to LARGEST_CONTENT bytes."""
    # It is read to the end, where gzip, bzip2 and xz store its checksum.
    with open(path, "rb") as raw:
        start = raw.read(6)
        raw.seek(0)
        unpack = next((form for magic, form in _FORMS if start.startswith(magic)), None)
        with unpack(raw) if unpack else raw as file:
            content = file.read(LARGEST_CONTENT + 1)
    if len(content) > LARGEST_CONTENT:
        raise Refusal(f"{path}: holds more than the published file can; fetch it again")
    return content


def _check_size(where: Path | str, size: int) -> None:
    if size > LARGEST_MEMBER:
        expected = f"should be at most {LARGEST_MEMBER}; not the published file"
        raise Refusal(f"{where}: {size} bytes, {expected}")
