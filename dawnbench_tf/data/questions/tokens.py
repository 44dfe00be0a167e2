"""Tokenizers with exact character offsets, and the alignment of answers with tokens."""

import importlib.metadata
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from dawnbench_tf.data.questions import annotation, treebank, wordpieces
from dawnbench_tf.data.questions.annotation import Annotated
from dawnbench_tf.data.questions.vocabulary import Vocabulary

# Contractions are split as in GloVe's vocabulary (do n't, it 's). Numbers keep commas and points.
# Every other sign is a token of its own, so that answers start and end at token boundaries.
_GLOVE = re.compile(
    r"""[^\W\d_]+?(?=n['’]t\b) | n['’]t\b | ['’](?:s|re|ve|ll|d|m)\b
      | \d+(?:[.,]\d+)* | [^\W\d_]+ | \S""",
    re.VERBOSE | re.IGNORECASE,
)
_TOKENS = {"glove": _GLOVE, "words": re.compile(r"\w+|[^\w\s]")}


def offsets(text: str, tokenizer: str = "glove") -> list[tuple[int, int]]:
    """Returns first and past-the-last character of each token of a text.

    >>> text = "Don't pay $1,000.50!"
    >>> [text[a:b] for a, b in offsets(text)]
    ['Do', "n't", 'pay', '$', '1,000.50', '!']
    >>> [text[a:b] for a, b in offsets(text, "words")]
    ['Don', "'", 't', 'pay', '$', '1', ',', '000', '.', '50', '!']
    """
    if tokenizer == "treebank":
        return list(treebank.offsets(text))
    return [match.span() for match in _TOKENS[tokenizer].finditer(text)]


def cut(
    texts: Iterable[str], tokenizer: str, pieces: Vocabulary | None = None
) -> Iterator[Annotated]:
    """Tokenizes texts; yields one `Annotated` for each."""
    if tokenizer == "spacy":
        yield from annotation.annotate(texts)
    elif pieces:
        yield from wordpieces.cut(texts, pieces)
    else:
        for text in texts:
            extents = offsets(text, tokenizer)
            yield Annotated([text[a:b] for a, b in extents], extents, [], [])


def version(tokenizer: str) -> str:
    """Returns the tokenizer's name and version. Raises Refusal if it is not installed."""
    versions = {
        "spacy": annotation.version,
        "treebank": treebank.version,
        "wordpiece": lambda: importlib.metadata.version("tf-models-official"),
    }
    return f"{tokenizer} {versions[tokenizer]()}" if tokenizer in versions else tokenizer


def locate(context: str, answer: str, start: int) -> int:
    """Returns the offset of the answer's occurrence nearest to `start`; -1 if there is none."""
    if start >= 0 and context.startswith(answer, start):
        return start
    offsets, offset = [], context.find(answer)
    while offset >= 0:
        offsets.append(offset)
        offset = context.find(answer, offset + 1)
    return min(offsets, key=lambda offset: abs(offset - start), default=-1)


def span(token_offsets: list[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """Returns first and last token that overlap the characters begin..end - 1; None if none do."""
    first = bisect_right(token_offsets, begin, key=lambda token: token[1])
    last = bisect_left(token_offsets, end, key=lambda token: token[0]) - 1
    return (first, last) if first <= last else None
