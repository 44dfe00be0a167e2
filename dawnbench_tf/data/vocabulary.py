"""Words and characters as numbers, and word vectors (GloVe) for those that have one."""

import io
import json
import zipfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dawnbench_tf import files
from dawnbench_tf.settings import Refusal, one_line

FILE = "vocabulary.json"
NULL, UNKNOWN = 0, 1  # of words and of characters
WORD_CHARACTERS = 16  # a word's first; further ones are cut off, as in the original
DIMENSION = 100  # of the word vectors: glove.6B.100d


class Vocabulary(NamedTuple):
    """What numbers stand for. Words are lower case: 2, 3, ... are `trained`, then `fixed`."""

    trained: list[str]  # frequent words without a vector: theirs is trained
    fixed: list[str]  # words with a vector, which stays as it is
    characters: list[str]  # 2, 3, ...

    def numbers(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of words as written, (words,), and of their characters, (words, 16)."""
        known = {word: UNKNOWN + 1 + i for i, word in enumerate(self.trained + self.fixed)}
        letters = {letter: UNKNOWN + 1 + i for i, letter in enumerate(self.characters)}
        characters = np.zeros((len(words), WORD_CHARACTERS), np.int32)
        for row, word in zip(characters, words, strict=True):
            for place, letter in enumerate(word[:WORD_CHARACTERS]):
                row[place] = letters.get(letter, UNKNOWN)
        return np.array([known.get(plain(word), UNKNOWN) for word in words], np.int32), characters


def save(known: Vocabulary, folder: Path) -> None:
    """Writes what a trained reader needs besides its weights: FOLDER/vocabulary.json."""
    files.write_whole(folder / FILE, json.dumps(known._asdict(), ensure_ascii=False) + "\n")


def load(folder: Path) -> Vocabulary:
    """What `save` wrote. Raises Refusal if it is not there, or damaged."""
    path = folder / FILE
    try:
        return Vocabulary(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise Refusal(f"{path}: can't be read ({one_line(error)}); not a reader's run?") from None


def plain(word: str) -> str:
    """A word as vectors know it: lower case, straight apostrophe."""
    return word.lower().replace("’", "'")


def make(counts: Counter, vectors: dict, least_word: int, least_character: int) -> Vocabulary:
    """The vocabulary of a training set.

    Args:
      counts: words as written -> how often.
      vectors: lower-case word -> its vector, for all that have one.
      least_word: a word without a vector is trained if it is there more often than this.
      least_character: a character is known if it is there more often than this.
    """
    words, characters = Counter(), Counter()
    for word, count in counts.items():
        words[plain(word)] += count
        for letter in word:
            characters[letter] += count
    trained = [word for word, n in words.items() if n > least_word and word not in vectors]
    known = [letter for letter, n in characters.items() if n > least_character]
    return Vocabulary(sorted(trained), sorted(vectors), sorted(known))


def read_glove(path: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    """Vectors of the wanted words, from glove.6B.100d.txt or the .zip it is in, line by line.

    Raises Refusal, naming the line, if one is malformed or of another dimension.
    """
    found = {}
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                word, _, rest = line.partition(b" ")
                if number == 1 or len(rest) < 2 * DIMENSION:
                    _vector(rest, f"{path}:{number}")  # of another dimension, or cut off
                word = word.decode("utf-8", "replace")
                if word in wanted:
                    found[word] = _vector(rest, f"{path}:{number}")
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(f"{path}: can't be read ({error}); fetch it again") from None
    if not found:
        raise Refusal(f"{path}: has none of the data's words; should be {GLOVE}")
    return found


GLOVE = "glove.6B.100d.txt"


@contextmanager
def _open(path):
    if path.suffix != ".zip":
        with open(path, "rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        if GLOVE not in archive.namelist():
            raise Refusal(f"{path}: holds no {GLOVE}; should be glove.6B.zip")
        with archive.open(GLOVE) as file:
            yield io.BufferedReader(file, 1 << 20)


def _vector(text, where):
    try:
        vector = np.array(text.split(), np.float32)
    except ValueError:
        raise Refusal(f"{where}: holds what is no number; fetch the file again") from None
    if len(vector) != DIMENSION or not np.all(np.isfinite(vector)):
        raise Refusal(
            f"{where}: should be a word and {DIMENSION} finite numbers, found {len(vector)}; "
            f"{GLOVE} is what the model takes"
        )
    return vector
