"""Vocabularies: ids of tokens and characters."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from dawnbench_tf import files
from dawnbench_tf.models.texts import CHARACTERS
from dawnbench_tf.refusals import Refusal

FILE = "vocabulary.json"
LARGEST = 64 * 2**20  # bytes of FILE; with fastText's 2 million words it has 35 million
PADDING, UNKNOWN = 0, 1  # ids of tokens and of characters
SIGNS = ("[UNK]", "[CLS]", "[SEP]")  # special WordPieces
FIRST = 2  # first id of known tokens and characters


class Vocabulary(NamedTuple):
    """The known tokens and characters. Token ids: 0 padding, 1 unknown, then `trained`, `fixed`."""

    trained: list[str]  # tokens with trained vectors
    fixed: list[str]  # tokens with pretrained vectors that are not trained
    characters: list[str]  # character ids: 0 padding, 1 unknown, then these
    cased: bool = False  # whether tokens keep their case; else they are lower case
    pieces: bool = False  # whether tokens are a BERT's WordPieces, in the order of its ids

    def ids(self, tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns ids of tokens as written, int32 (tokens,), and of characters, (tokens, 16)."""
        id_of_token = {token: FIRST + i for i, token in enumerate(self.trained + self.fixed)}
        id_of_character = {character: FIRST + i for i, character in enumerate(self.characters)}
        character_ids = np.zeros((len(tokens), CHARACTERS), np.int32)
        for row, token in zip(character_ids, tokens, strict=True):
            for column, character in enumerate(token[:CHARACTERS]):
                row[column] = id_of_character.get(character, UNKNOWN)
        if not self.pieces:
            tokens = [normalize(token, self.cased) for token in tokens]
        token_ids = [id_of_token.get(token, UNKNOWN) for token in tokens]
        return np.array(token_ids, np.int32), character_ids


def save(vocabulary: Vocabulary, folder: Path) -> None:
    """Writes a vocabulary to FOLDER/vocabulary.json."""
    files.write_json(folder / FILE, vocabulary._asdict())


def load(folder: Path) -> Vocabulary:
    """Reads the vocabulary of a run's folder. Raises Refusal if it is missing or damaged."""
    path = folder / FILE
    if not path.is_file():
        raise Refusal(f"{path}: can't be read (it is not there); not a reader's run?")
    values = files.read_json(path, LARGEST)
    lists = [values.get(name) for name in ("trained", "fixed", "characters")]
    flags = set(values) - {"trained", "fixed", "characters"}
    texts = all(isinstance(v, list) and all(isinstance(text, str) for text in v) for v in lists)
    if not texts or not flags <= {"cased", "pieces"}:
        raise Refusal(f"{path}: should hold lists of texts: trained, fixed, characters")
    for flag in flags:
        if type(values[flag]) is not bool:
            raise Refusal(f"{path}: {flag} should be true or false")
    if values.get("pieces") and not set(SIGNS) <= set(values["trained"]):
        raise Refusal(f"{path}: pieces should have {', '.join(SIGNS)} among those trained")
    return Vocabulary(**values)


def normalize(token: str, cased: bool = False) -> str:
    """Spells a token as word vectors do: straight apostrophes; lower case unless `cased`."""
    return (token if cased else token.lower()).replace("’", "'")
