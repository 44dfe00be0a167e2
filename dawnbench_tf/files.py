"""Atomic writes of files, JSON with a checksum, arrays in .npz files, locks on folders."""

import errno
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any
from warnings import catch_warnings, filterwarnings

import numpy as np

from dawnbench_tf import terminal
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing, shown

CHECKSUM = "sha256"  # key in a JSON file: the checksum of its other values
FIGURES = (".png", ".svg", ".pdf")  # formats of pictures, by suffix
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
LARGEST_JSON = 16 * 2**20  # bytes; 50,000 rows of a run have as many


def paths(one_or_more: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Returns one path, or several, as a list; refuses "", which `Path` takes for "."."""
    if isinstance(one_or_more, str | os.PathLike):
        one_or_more = [one_or_more]
    several = [os.fspath(path) for path in one_or_more]
    if "" in several:
        raise Refusal("a path is empty; perhaps a shell variable is not set")
    return [*map(Path, several)]


def write_whole(path: Path, text: str, durable: bool = True) -> None:
    """Writes a text file under a temporary name, then renames it."""
    # What is not `durable` may be lost with the machine's power: thousands of files that a command
    # makes anew take seconds instead of minutes.
    with (
        renamed_to(path) as temporary,
        open(temporary, "x", encoding="utf-8", errors="replace") as file,
    ):
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def discard(path: Path) -> None:
    """Removes a file, if it is there and can be removed."""
    with suppress(OSError):  # a disk that takes no file may let none go either; it is overwritten
        path.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Removes a file or a folder with its content; errors are ignored."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        discard(path)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes an object as JSON, whole, with a checksum over all of it. Raises Refusal."""
    write_whole(path, json.dumps({**values, CHECKSUM: _checksum(values)}, indent=1) + "\n")


def read_json(
    path: Path, largest: int = LARGEST_JSON, hint: str = "restore it or name another --output_dir"
) -> dict[str, Any]:
    """Reads what `write_json` wrote; a file without a checksum, of earlier versions, too."""
    with refusing(path, "can't be read", OSError, ValueError, RecursionError, hint=hint):
        if not path.is_file():
            raise Refusal(f"{path}: is no file; {hint}")
        if path.stat().st_size > largest:
            raise ValueError(f"is larger than {largest >> 20} MiB")
        values = json.loads(path.read_bytes().decode("utf-8-sig"))
        if not isinstance(values, dict):
            raise ValueError(f"holds a {type(values).__name__}, should hold an object")
        checksum = values.pop(CHECKSUM, None)
        if checksum is not None and checksum != _checksum(values):
            raise ValueError("its checksum differs: it is not what was written")
    return values


def _checksum(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file, not a symbolic link, a pipe or a device."""
    return path.is_file() and not path.is_symlink()


def digest(path: Path, hint: str = "") -> str:
    """Returns the SHA-256 of a file in hexadecimal. Raises Refusal if the file can't be read."""
    with refusing(path, "can't be read", OSError, hint=hint), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def renamed_to(path: Path) -> Iterator[Path]:
    """Gives a temporary name, of the same suffix, to write to; then renames the file to `path`."""
    if path.exists() and not path.is_file():  # a rename would replace a device, such as /dev/null
        raise Refusal(f"{path}: is no regular file; name a file")
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix}")
    discard(temporary)  # of a process that was killed; or a link, which would be written through
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        discard(temporary)
        raise cannot_write(path, error) from None


def check_figure(path: Path, flag: str = "plot") -> None:
    """Raises Refusal unless the suffix of a flag's file is a format that matplotlib writes here."""
    if path.suffix not in FIGURES:
        refuse(flag, path, f"should end in one of {', '.join(FIGURES)}")


def save_figure(figure: Any, target: Path | IO[Any], **options: Any) -> None:
    """Writes a figure of matplotlib, and shows its texts literally: "$" starts no mathematics."""
    # Set a formatter on each logarithmic axis: the default one writes mathematics.
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set(text=shown(text.get_text(), "\n"), parse_math=False)
    output = renamed_to(target) if isinstance(target, Path) else nullcontext(target)
    with output as file, catch_warnings():
        filterwarnings("ignore", "Glyph")  # a letter that the font lacks is a box
        figure.savefig(file, **options)


def cache_folder() -> Path | None:
    """Returns the folder for caches, which may not exist yet; None if there is no home folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if home.startswith("~"):
        terminal.say("no home folder, so nothing is cached; XDG_CACHE_HOME can name one")
        return None
    return Path(home) / "dawnbench_tf"


def hyphenated(text: str) -> str:
    """Returns a part of a file's name: a text with "-" for what is no letter, digit or point."""
    return re.sub(r"(?:[^\w.]|_)+", "-", text).strip("-.")


def make_folder(path: Path) -> None:
    """Makes a folder and its parents. Raises Refusal if that fails, or it takes no file."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()  # deletes the file
    except (FileExistsError, NotADirectoryError):
        text = "is a file or inside one; should be a folder, or a new name"
        raise Refusal(f"{path}: {text}") from None
    except OSError as error:
        raise cannot_write(path, error) from None


def lock(folder: Path, reason: str, flag: str = "output_dir") -> int:
    """Takes the lock on a folder, and returns its descriptor; it is held until that is closed."""
    descriptor = take_lock(folder)
    if descriptor is None:
        refuse(flag, folder, reason)
    return descriptor


@contextmanager
def locked(folder: Path, reason: str, flag: str = "output_dir") -> Iterator[None]:
    """Holds the lock on a folder during the body. Raises Refusal as `lock` does."""
    descriptor = lock(folder, reason, flag)
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether another process holds the lock on a folder. Raises Refusal if it can't be written."""
    descriptor = take_lock(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def take_lock(folder: Path) -> int | None:
    """Takes the lock on a folder. Returns its descriptor, or None if another process holds it."""
    # It is held until all copies of the descriptor are closed: a child that inherits one has it
    # too. A file system without such locks (NFS, Lustre, FUSE) may have POSIX's; without either, a
    # line says so.
    try:
        descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise cannot_write(folder, error) from None
    for lock_file in (fcntl.flock, fcntl.lockf):
        try:
            lock_file(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):  # another process holds it
                os.close(descriptor)
                return None
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise cannot_write(folder, error) from None
    text = "can't be locked on this file system; start one command at a time in it"
    terminal.say(f"{folder}: {text}")
    return descriptor


def cannot_write(path: Path, error: Exception) -> Refusal:
    """Returns the Refusal for an output file that can't be written."""
    # TensorFlow's message is "PATH; reason".
    reason = getattr(error, "strerror", None) or str(error).split(";")[-1]
    text = f"can't be written ({one_line(reason, 100)})"
    return Refusal(f"{path}: {text}; mend that, then the same command goes on")


def read_npz(content: bytes, largest: int = 0) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz file, by name, from its bytes. Raises ValueError."""
    # Pickled objects are refused; compressed arrays too, unless `largest` says how many bytes all
    # may take: else they take no more memory than the file. Each array's checksum is in it. NumPy
    # reads in small parts: a header that claims more than follows it takes no memory.
    if content.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("it is an .npy file, one array; np.savez writes several by name")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
            total = sum(member.file_size for member in members)
            if total <= (largest or len(content)) and (largest or stored):
                names = [name for name in archive.namelist() if name.endswith(".npy")]
                read = np.lib.format.read_array  # as np.load does
                return {name[:-4]: read(archive.open(name), allow_pickle=False) for name in names}
    except Exception as error:  # zipfile and NumPy raise a dozen kinds for damaged bytes
        if "allow_pickle" in str(error):
            raise ValueError("it holds Python objects, not numbers of one type") from None
        raise ValueError(f"it is damaged: {one_line(error, 80)}") from None
    if not largest:
        raise ValueError("its arrays should not be compressed: np.savez writes it")
    most = f"{largest / 2**30:,.3g}, a third of the free memory"
    raise ValueError(f"its arrays take {total / 2**30:,.3g} GiB; should be at most {most}")


def cache_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to a cache file in `cache_folder`; says so if it can't be written."""
    # Each process has a temporary file of its own: two runs may write one cache at the same time.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
    except OSError as error:
        discard(temporary)
        terminal.say(f"{path}: can't be written ({error.strerror}); going on without")
