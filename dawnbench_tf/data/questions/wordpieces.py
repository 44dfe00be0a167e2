"""Texts as BERT cuts them: tf-models-official's WordPieces, each with its place in the text.

A published BERT comes as a folder with its vocabulary and its weights.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from dawnbench_tf.data.questions.annotation import Annotated
from dawnbench_tf.data.questions.vocabulary import FIRST, SIGNS, Vocabulary
from dawnbench_tf.refusals import Refusal, one_line, refuse

VOCABULARY = "vocab.txt"
WEIGHTS = (
    "model.safetensors",
    "bert_model.ckpt.index",
    "tf_model.h5",
    "pytorch_model.bin",
)  # of Hugging Face and of google-research/bert
HOME = "https://github.com/google-research/bert"
LONGEST = 1 << 24  # bytes of a vocabulary


def find(root: Path, name: str) -> tuple[Path, Path]:
    """The vocabulary and the weights of a published BERT: files in ROOT/name.

    Raises:
      Refusal: one of them is not there.
    """
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
    """A published vocabulary, a piece a line. Raises Refusal if it is none, or damaged."""
    try:
        with open(path, "rb") as file:
            content = file.read(LONGEST + 1)
        lines = content.decode().rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = one_line(error, 100)
        raise Refusal(f"{path}: can't be read ({why}); fetch it again") from None
    lines = [line.removesuffix("\r") for line in lines]
    right = lines[0] == "[PAD]" and set(SIGNS) <= set(lines[FIRST:])
    if not right or len(content) > LONGEST or len(set(lines)) < len(lines):
        signs = f"[PAD] first, {', '.join(SIGNS)} later, none twice"
        raise Refusal(f"{path}: should be a BERT's pieces, one a line: {signs}; fetch it again")
    return Vocabulary(lines[FIRST:], [], [], cased, pieces=True)


def from_words(words: Iterable[str]) -> Vocabulary:
    """A vocabulary in which each of some words, in lower case, is a piece."""
    return Vocabulary([*SIGNS, *sorted({word.lower() for word in words})], [], [], pieces=True)


def cut(texts: Iterable[str], vocabulary: Vocabulary) -> Iterator[Annotated]:
    """Cuts texts into pieces, one text after the other."""
    words_of, pieces_of = _tokenizers(vocabulary)
    for text in texts:
        pieces, offsets, at = [], [], 0
        places = _places(text, vocabulary.cased)
        for word in words_of(text):
            of_word = pieces_of(word)
            for piece in of_word:
                size = len(word) if len(of_word) == 1 else len(piece.removeprefix("##"))
                offsets.append((places[at], places[at + size - 1] + 1))
                at += size
            pieces += of_word
        yield Annotated(pieces, offsets, [], [])


def _tokenizers(vocabulary) -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    """tf-models-official's: of a text's words, and of a word's pieces."""
    from official.nlp.tools import tokenization  # imports TensorFlow

    basic = tokenization.BasicTokenizer(do_lower_case=not vocabulary.cased)
    pieces = tokenization.WordpieceTokenizer(frozenset(vocabulary.trained))
    return basic.tokenize, cache(pieces.tokenize)


def _places(text, cased):
    """The character that each character of the text's words, end to end, comes from.

    Words hold no space and no control character; in lower case they are decomposed, and accents
    are left out.
    """
    places = []
    for place, character in enumerate(text):
        if character.isspace() or ord(character) in (0, 0xFFFD) or _is_control(character):
            continue
        if not cased:
            character = unicodedata.normalize("NFD", character.lower())
        kept = (part for part in character if cased or unicodedata.category(part) != "Mn")
        places += [place for _ in kept]
    return places


def _is_control(character):
    return unicodedata.category(character) in ("Cc", "Cf")
