"""Token and character ids, and word vectors (GloVe) for the tokens that have one."""

import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from dawnbench_tf import files
from dawnbench_tf.models.texts import CHARACTERS
from dawnbench_tf.refusals import Refusal, one_line

FILE = "vocabulary.json"
GLOVE = "glove.6B.100d.txt"
PADDING, UNKNOWN = 0, 1  # ids of tokens and of characters
LONGEST_LINE = 1 << 16  # bytes; GloVe's have 1,000
_BOM = b"\xef\xbb\xbf"
_DAMAGES = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
DIMENSION = 100  # of the word vectors: glove.6B.100d


class Vocabulary(NamedTuple):
    """Token ids: 0 padding, 1 unknown, then `trained`, then `fixed`. Tokens are lower case."""

    trained: list[str]  # frequent tokens without a vector: theirs is trained
    fixed: list[str]  # tokens with a vector, which stays as it is
    characters: list[str]  # character ids: 0 padding, 1 unknown, then these

    def ids(self, tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of tokens as written, int32 (tokens,), and of their characters, (tokens, 16)."""
        id_of_token = {token: 2 + i for i, token in enumerate(self.trained + self.fixed)}
        id_of_character = {character: 2 + i for i, character in enumerate(self.characters)}
        character_ids = np.zeros((len(tokens), CHARACTERS), np.int32)
        for row, token in zip(character_ids, tokens, strict=True):
            for place, character in enumerate(token[:CHARACTERS]):
                row[place] = id_of_character.get(character, UNKNOWN)
        token_ids = [id_of_token.get(normalized(token), UNKNOWN) for token in tokens]
        return np.array(token_ids, np.int32), character_ids


def save(vocabulary: Vocabulary, folder: Path) -> None:
    """Writes what a trained reader needs besides its weights: FOLDER/vocabulary.json."""
    files.write_json(folder / FILE, vocabulary._asdict())


def load(folder: Path) -> Vocabulary:
    """Reads a run's vocabulary. Raises Refusal if it is not there, or damaged."""
    path = folder / FILE
    if not path.is_file():
        raise Refusal(f"{path}: can't be read (it is not there); not a reader's run?")
    values = files.read_json(path)
    lists = list(values.values())
    if set(values) != set(Vocabulary._fields) or not all(map(_are_texts, lists)):
        raise Refusal(f"{path}: should hold lists of texts: {', '.join(Vocabulary._fields)}")
    return Vocabulary(**values)


def _are_texts(values):
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def normalized(token: str) -> str:
    """A token as word vectors spell it: lower case, straight apostrophe."""
    return token.lower().replace("’", "'")


def build(
    counts: Mapping[str, int],
    vectors: Mapping[str, np.ndarray],
    min_token_count: int,
    min_character_count: int,
) -> Vocabulary:
    """The vocabulary of a training set.

    Args:
      counts: how often each token, as written, is in it.
      vectors: by normalized token, for all that have one.
      min_token_count: a token without a vector is trained if there are more than this.
      min_character_count: a character is known if there are more than this.
    """
    tokens: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for token, count in counts.items():
        tokens[normalized(token)] += count
        for character in token:
            characters[character] += count
    trained = [t for t, count in tokens.items() if count > min_token_count and t not in vectors]
    frequent = [c for c, count in characters.items() if count > min_character_count]
    return Vocabulary(sorted(trained), sorted(vectors), sorted(frequent))


def read_glove(path: Path, tokens: Set[str]) -> dict[str, np.ndarray]:
    """Vectors of some tokens, from glove.6B.100d.txt or the .zip that holds it, line by line.

    Args:
      path: of the file.
      tokens: normalized ones that are asked for; not each needs to be in the file.

    Returns:
      float32 (100,) by token.

    Raises:
      Refusal, naming the line: one is malformed or of another dimension.
    """
    vectors = {}
    try:
        with _open(path) as file:
            for number, line in enumerate(_lines(file, path), 1):
                name, _, rest = line.partition(b" ")
                if number == 1 or len(rest) < 2 * DIMENSION:
                    _vector(rest, f"{path}:{number}")  # of another dimension, or cut off
                token = name.removeprefix(_BOM if number == 1 else b"").decode("utf-8", "replace")
                if token in tokens:
                    if token in vectors:
                        raise Refusal(
                            f"{path}:{number}: {ascii(token)} is there twice; fetch it again"
                        )
                    vectors[token] = _vector(rest, f"{path}:{number}")
    except Refusal:
        raise
    except _DAMAGES as error:
        why = one_line(error, 100)
        raise Refusal(f"{path}: can't be read ({why}); fetch it again") from None
    if not vectors:
        raise Refusal(f"{path}: has none of the data's words; should be {GLOVE}")
    return vectors


def _lines(file, path):
    """The lines of a file, none of them longer than a vector's can be."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise Refusal(f"{path}: holds a line of over {LONGEST_LINE} bytes; fetch it again")
        yield line


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".zip":
        with open(path, "rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        if GLOVE not in archive.namelist():
            raise Refusal(f"{path}: holds no {GLOVE}; should be glove.6B.zip")
        with archive.open(GLOVE) as file:
            yield io.BufferedReader(file, 1 << 20)  # type: ignore[type-var]


def _vector(text, where):
    try:
        if b"_" in text:  # a number to Python, to nobody else
            raise ValueError
        vector = np.array(text.split(), np.float32)
    except ValueError:
        raise Refusal(f"{where}: holds what is no number; fetch the file again") from None
    if len(vector) != DIMENSION or not np.all(np.isfinite(vector)):
        raise Refusal(
            f"{where}: should be a word and {DIMENSION} finite numbers, found {len(vector)}; "
            f"{GLOVE} is what the model takes"
        )
    return vector
