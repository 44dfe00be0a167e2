"""Safe reading of untrusted archives: members of a tar file or a folder, checksums verified.

Nothing is extracted, so no file can be written outside a folder.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, refusing

LARGEST_MEMBER = 64 * 2**20  # bytes; CIFAR-10's largest file is 31 MB
LARGEST_CONTENT = 512 * 2**20  # bytes, uncompressed; CIFAR-10's archives have 187 MB
_FORMS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_DAMAGES = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


def is_published(path: Path, checksums: Mapping[str, str]) -> bool:
    """Whether a file is bit-identical to a published one, by the SHA-256 of each."""
    return path.is_file() and files.digest(path) in checksums.values()


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """Reads files by their base names from a folder or a tar archive."""
    members = {}
    with refusing(path, "damaged or truncated", *_DAMAGES, hint="fetch it again"):
        if path.is_dir():
            for file in (path / name for name in names if (path / name).is_file()):
                _check_size(file, file.stat().st_size)
                members[file.name] = file.read_bytes()
        else:
            with tarfile.open(fileobj=io.BytesIO(_content(path)), mode="r:") as archive:
                for member in archive:
                    if member.size < 0:  # tarfile would loop forever
                        raise ValueError("a member has a size below 0")
                    name = member.name.rsplit("/", 1)[-1]
                    # Links, which may point anywhere, are skipped.
                    if (
                        member.isfile()
                        and name in names
                        and (opened := archive.extractfile(member))
                    ):
                        _check_size(f"{path}:{name}", member.size)
                        members[name] = opened.read()
    missing = [name for name in names if name not in members]
    if missing:
        raise Refusal(f"{path}: should hold {', '.join(names)}; {missing[0]} is missing")
    return members


def _content(path: Path) -> bytes:
    """Returns the uncompressed content of an archive, against bombs up to LARGEST_CONTENT bytes.

    It is read to the end, where gzip, bzip2 and xz store its checksum.
    """
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
        raise Refusal(
            f"{where}: {size} bytes, should be at most {LARGEST_MEMBER}; not the published file"
        )
