"""Pretrained word vectors: GloVe's and fastText's published text files."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from dawnbench_tf.refusals import Refusal, refuse, refusing

LONGEST_LINE = 1 << 16  # bytes; a line of 300 numbers has 3,000
_BOM = b"\xef\xbb\xbf"
_DAMAGES = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


class WordVectors(NamedTuple):
    """A published set of word vectors."""

    file: str  # text file, one word and its numbers a line
    archive: str  # zip that holds the file
    width: int  # numbers in a vector
    cased: bool  # whether The and the have different vectors
    home: str  # URL

    def __str__(self) -> str:
        return f"{self.file} or {self.archive}" if self.file else "no file"


_GLOVE_HOME = "https://nlp.stanford.edu/projects/glove/"
_FASTTEXT_HOME = "https://fasttext.cc/docs/en/english-vectors.html"
WORD_VECTORS = {
    "glove.6B.100d": WordVectors("glove.6B.100d.txt", "glove.6B.zip", 100, False, _GLOVE_HOME),
    "glove.840B.300d": WordVectors(
        "glove.840B.300d.txt", "glove.840B.300d.zip", 300, True, _GLOVE_HOME
    ),
    "crawl-300d-2M": WordVectors(
        "crawl-300d-2M.vec", "crawl-300d-2M.vec.zip", 300, True, _FASTTEXT_HOME
    ),
    "none": WordVectors("", "", 100, False, ""),  # all vectors are learned
}


def find(folder: Path, name: str) -> Path:
    """Returns the file of WORD_VECTORS[name] in a folder, or its zip."""
    files = {
        key: folder / file
        for key, wanted in WORD_VECTORS.items()
        for file in (wanted.archive, wanted.file)
        if (folder / file).is_file()
    }
    if name in files:
        return files[name]
    others = "".join(f", or train with --word_vectors={other}, which it holds" for other in files)
    others = others or ", or train with --word_vectors=none, which learns all"
    wanted = WORD_VECTORS[name]
    refuse("data_dir", folder, f"holds no {wanted}; see {wanted.home}{others}")


def read(path: Path, name: str, tokens: Set[str]) -> dict[str, np.ndarray]:
    """Reads the vectors of given tokens from a file, or from the zip that holds it."""
    # Skips lines whose word contains spaces; glove.840B.300d has some.
    wanted, vectors = WORD_VECTORS[name], {}
    refusing_damage = refusing(path, "can't be read", *_DAMAGES, hint="fetch it again")
    with refusing_damage, _open(path, wanted.file) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
            if len(line) == LONGEST_LINE:
                raise Refusal(f"{path}: holds a line of over {LONGEST_LINE} bytes; fetch it again")
            word, _, rest = line.partition(b" ")
            if number == 1 and re.fullmatch(rb"\s*\d+\s+%d\s*" % wanted.width, line):
                continue  # fastText's header: number of words, and width
            if not line.strip():
                continue
            where = f"{path}:{number}"
            if number <= 2 or len(rest) < 2 * wanted.width:
                _vector(rest, wanted, where)  # refuses another width, and truncated lines
            token = word.removeprefix(_BOM if number == 1 else b"").decode("utf-8", "replace")
            if token in tokens and not _has_spaces(rest, wanted.width):
                if token in vectors:
                    raise Refusal(f"{where}: {token!a} is there twice; fetch it again")
                vectors[token] = _vector(rest, wanted, where)
    if not vectors:
        raise Refusal(f"{path}: has none of the data's words; should be {wanted.file}")
    return vectors


def _has_spaces(rest: bytes, width: int) -> bool:
    """Whether the word of a line contains spaces: fields before the last `width` are no numbers."""
    try:
        list(map(float, rest.split()[:-width]))
    except ValueError:
        return True
    return False


@contextmanager
def _open(path: Path, name: str) -> Iterator[BinaryIO]:
    if path.suffix != ".zip":
        with open(path, "rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        if name not in archive.namelist():
            raise Refusal(f"{path}: holds no {name}; fetch it again")
        with archive.open(name) as file:
            yield io.BufferedReader(file, 1 << 20)  # type: ignore[type-var]


def _vector(text: bytes, wanted: WordVectors, where: str) -> np.ndarray:
    try:
        if b"_" in text:  # only Python reads 1_000 as a number
            raise ValueError
        vector = np.array(text.split(), np.float32)
    except ValueError:
        raise Refusal(f"{where}: holds what is no number; fetch the file again") from None
    if len(vector) != wanted.width or not np.all(np.isfinite(vector)):
        raise Refusal(
            f"{where}: should be a word and {wanted.width} finite numbers, found {len(vector)}; "
            f"{wanted.file} is what the recipe takes"
        )
    return vector
