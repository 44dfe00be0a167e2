"""BERT's WordPieces by tf-models-official, with the offset of each in the text.

A published BERT is a folder with its vocabulary and its weights.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from dawnbench_tf.data.questions.vocabulary import FIRST, SIGNS, Vocabulary
from dawnbench_tf.refusals import Refusal, refuse, refusing

VOCABULARY = "vocab.txt"
# files of Hugging Face and google-research/bert
WEIGHTS = "model.safetensors bert_model.ckpt.index tf_model.h5 pytorch_model.bin".split()
HOME = "https://github.com/google-research/bert"
Cut = tuple[list[str], list[tuple[int, int]]]  # tokens; first and past-the-last character
LONGEST = 1 << 24  # largest vocabulary, in bytes


def find(root: Path, name: str) -> tuple[Path, Path]:
    """Returns the files of vocabulary and weights of a published BERT in ROOT/name."""
    folder = root / name
    if not folder.is_dir():
        refuse("data_dir", root, f"holds no folder {name}, of a published BERT; see {HOME}")
    weights = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if weights is None:
        refuse("data_dir", root, f"its {name} holds none of {', '.join(WEIGHTS)}; see {HOME}")
    if not (folder / VOCABULARY).is_file():
        refuse("data_dir", root, f"its {name} holds no {VOCABULARY}; see {HOME}")
    return folder / VOCABULARY, weights


def read(path: Path, cased: bool) -> Vocabulary:
    """Reads a BERT's vocabulary, one piece a line. Raises Refusal if it is damaged or not one."""
    kinds = OSError, UnicodeDecodeError
    with refusing(path, "can't be read", *kinds, hint="fetch it again"), open(path, "rb") as file:
        content = file.read(LONGEST + 1)
        lines = content.decode().rstrip("\n").split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    has_signs = lines[0] == "[PAD]" and set(SIGNS) <= set(lines[FIRST:])
    if not has_signs or len(content) > LONGEST or len(set(lines)) < len(lines):
        signs = f"[PAD] in line 1, {', '.join(SIGNS)} from line 3 on, none twice"
        raise Refusal(f"{path}: should be the pieces of a published BERT, one a line: {signs}")
    return Vocabulary(lines[FIRST:], [], [], cased, pieces=True)


def from_words(words: Iterable[str]) -> Vocabulary:
    """Makes a vocabulary with each word, in lower case, as one piece."""
    return Vocabulary([*SIGNS, *sorted({word.lower() for word in words})], [], [], pieces=True)


def cut(texts: Iterable[str], vocabulary: Vocabulary) -> Iterator[Cut]:
    """Tokenizes texts into pieces; yields pieces and offsets of each."""
    from official.nlp.tools import tokenization  # imports TensorFlow

    split_words = tokenization.BasicTokenizer(do_lower_case=not vocabulary.cased).tokenize
    split_pieces = cache(tokenization.WordpieceTokenizer(frozenset(vocabulary.trained)).tokenize)
    for text in texts:
        # The tokenizers return no offsets. `sources` maps characters of the words, end to end, to
        # characters of the text; `first` is the first character of the next piece.
        pieces, offsets, first = [], [], 0
        sources = _sources(text, vocabulary.cased)
        for word in split_words(text):
            word_pieces = split_pieces(word)
            for piece in word_pieces:
                # A single piece may be [UNK], so its length is that of the word.
                size = len(word) if len(word_pieces) == 1 else len(piece.removeprefix("##"))
                offsets.append((sources[first], sources[first + size - 1] + 1))
                first += size
            pieces += word_pieces
        yield pieces, offsets


def _sources(text: str, cased: bool) -> list[int]:
    """Returns, for each character of the text's words end to end, its index in the text."""
    # Words have no spaces and no control characters. Lower-cased words are decomposed (NFD) and
    # have no accents, so a character of the text may give several characters, or none.
    sources = []
    for index, character in enumerate(text):
        control = unicodedata.category(character) in ("Cc", "Cf")
        if control or character.isspace() or ord(character) == 0xFFFD:
            continue
        if not cased:
            character = unicodedata.normalize("NFD", character.lower())
        kept = (part for part in character if cased or unicodedata.category(part) != "Mn")
        sources += [index for _ in kept]
    return sources
