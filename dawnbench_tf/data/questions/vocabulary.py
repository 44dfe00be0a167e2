"""Token and character ids."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dawnbench_tf import files
from dawnbench_tf.models.texts import CHARACTERS
from dawnbench_tf.refusals import Refusal

FILE = "vocabulary.json"
LARGEST = 64 * 2**20  # bytes of it; with fastText's 2 million words it has 35 million
PADDING, UNKNOWN = 0, 1  # ids of tokens and of characters
SIGNS = ("[UNK]", "[CLS]", "[SEP]")  # what WordPieces are besides pieces of words
FIRST = 2  # the first id of a token, or of a character, that is known


class Vocabulary(NamedTuple):
    """Token ids: 0 padding, 1 unknown, then `trained`, then `fixed`."""

    trained: list[str]  # tokens whose vector is trained
    fixed: list[str]  # tokens with a vector, which stays as it is
    characters: list[str]  # character ids: 0 padding, 1 unknown, then these
    cased: bool = False  # whether tokens keep their case; else they are lower case
    pieces: bool = False  # whether tokens are WordPieces: a BERT's, in the order of its own ids

    def ids(self, tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of tokens as written, int32 (tokens,), and of their characters, (tokens, 16)."""
        id_of_token = {token: FIRST + i for i, token in enumerate(self.trained + self.fixed)}
        id_of_character = {character: FIRST + i for i, character in enumerate(self.characters)}
        character_ids = np.zeros((len(tokens), CHARACTERS), np.int32)
        for row, token in zip(character_ids, tokens, strict=True):
            for place, character in enumerate(token[:CHARACTERS]):
                row[place] = id_of_character.get(character, UNKNOWN)
        if not self.pieces:
            tokens = [normalize(token, self.cased) for token in tokens]
        token_ids = [id_of_token.get(token, UNKNOWN) for token in tokens]
        return np.array(token_ids, np.int32), character_ids


def save(vocabulary: Vocabulary, folder: Path) -> None:
    """Writes what a trained reader needs besides its weights: FOLDER/vocabulary.json."""
    files.write_json(folder / FILE, vocabulary._asdict())


def load(folder: Path) -> Vocabulary:
    """Reads a run's vocabulary. Raises Refusal if it is not there, or damaged."""
    path = folder / FILE
    if not path.is_file():
        raise Refusal(f"{path}: can't be read (it is not there); not a reader's run?")
    values = files.read_json(path, LARGEST)
    lists = [values.get(name) for name in ("trained", "fixed", "characters")]
    flags = set(values) - {"trained", "fixed", "characters"}
    if not all(map(_are_texts, lists)) or not flags <= {"cased", "pieces"}:
        raise Refusal(f"{path}: should hold lists of texts: trained, fixed, characters")
    for flag in flags:
        if type(values[flag]) is not bool:
            raise Refusal(f"{path}: {flag} should be true or false")
    if values.get("pieces") and not set(SIGNS) <= set(values["trained"]):
        raise Refusal(f"{path}: pieces should have {', '.join(SIGNS)} among those trained")
    return Vocabulary(**values)


def _are_texts(values):
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def normalize(token: str, cased: bool = False) -> str:
    """A token as word vectors spell it: straight apostrophe, and lower case if they are."""
    return (token if cased else token.lower()).replace("’", "'")


class Choice(NamedTuple):
    """Which tokens and characters get ids of their own."""

    min_token_count: float  # one without a vector is trained if training has more of it than this
    min_character_count: int  # a character is known if there are more than this
    tuned: int = 0  # of questions' most frequent tokens with a vector: it is trained from there
    cased: bool = False


def build(
    counts: Mapping[str, int],
    in_questions: Mapping[str, int],
    vectors: Mapping[str, np.ndarray],
    choice: Choice,
) -> Vocabulary:
    """The vocabulary of a training set. The tokens that are tuned end `trained`.

    Args:
      counts: how often each token, as written, is in it.
      in_questions: how often each is in its questions.
      vectors: by normalized token, for all that have one.
      choice: which of them get ids.
    """
    tokens = _merged(counts, choice.cased)
    characters: Counter[str] = Counter()
    for token, count in counts.items():
        for character in token:
            characters[character] += count
    trained = [t for t, n in tokens.items() if n > choice.min_token_count and t not in vectors]
    of_questions = _merged(in_questions, choice.cased)
    candidates = sorted(of_questions.keys() & vectors.keys(), key=lambda t: (-of_questions[t], t))
    tuned = candidates[: choice.tuned]
    frequent = [c for c, count in characters.items() if count > choice.min_character_count]
    fixed = sorted(vectors.keys() - set(tuned))
    return Vocabulary(sorted(trained) + tuned, fixed, sorted(frequent), choice.cased)


def _merged(counts, cased):
    """Counts of tokens as written, by normalized token."""
    merged: Counter[str] = Counter()
    for token, count in counts.items():
        merged[normalize(token, cased)] += count
    return merged
