"""Reading files that strangers made: members of a .tar.gz or a folder, and pickles, without trust.

Archives are read in place: nothing is ever extracted, so nothing can land outside a folder.
"""

import io
import pickle
import tarfile
import zlib
from pathlib import Path

from dawnbench_tf.refusals import Refusal

LARGEST_MEMBER = 64 * 2**20  # bytes; CIFAR-10's largest file is 31 MB


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """Reads files by their base names from a folder or a tar archive.

    Args:
      path: the folder, or the archive (.tar, .tar.gz).
      names: base names wanted.

    Returns:
      Contents by name.

    Raises:
      Refusal: one is missing, too large to be what it is named, or can't be read.
    """
    try:
        members = _from_folder(path, names) if path.is_dir() else _from_tar(path, names)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise Refusal(f"{path}: damaged or truncated ({error}); fetch it again") from None
    missing = [name for name in names if name not in members]
    if missing:
        raise Refusal(f"{path}: should hold {', '.join(names)}; {missing[0]} is missing")
    return members


def _from_folder(path, names):
    files = [path / name for name in names if (path / name).is_file()]
    return {file.name: _capped(file, file.stat().st_size, file.read_bytes) for file in files}


def _from_tar(path, names):
    members = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.rsplit("/", 1)[-1]
            is_file = member.isfile()  # links are not followed: they may point anywhere
            if is_file and name in names and (content := archive.extractfile(member)):
                members[name] = _capped(f"{path}:{name}", member.size, content.read)
    return members


def _capped(where, size, read):
    if size > LARGEST_MEMBER:
        raise Refusal(
            f"{where}: {size} bytes, should be at most {LARGEST_MEMBER}; not the published file"
        )
    return read()


class _ArraysOnly(pickle.Unpickler):
    """Loads dicts, lists, strings, numbers and NumPy arrays; any other global is refused."""

    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),  # how Python 3 writes bytes in protocols 0 to 2
    }

    def find_class(self, module, name):
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it would run {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def unpickle_arrays(where: str, content: bytes) -> dict:
    """Unpickles a dict of arrays and plain values; runs nothing else. Raises Refusal."""
    try:
        loaded = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # whatever garbage makes the unpickler raise, the file is refused
        raise Refusal(f"{where}: not a pickle of plain arrays ({error}); fetch it again") from None
    if not isinstance(loaded, dict):
        raise Refusal(
            f"{where}: should be a dict, is a {type(loaded).__name__}; not the published file"
        )
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in loaded.items()}
