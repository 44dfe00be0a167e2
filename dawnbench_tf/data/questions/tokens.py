"""Tokens of a text with their exact character offsets, and answers as spans of tokens."""

import importlib.metadata
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from dawnbench_tf.data.questions import annotation, treebank, wordpieces
from dawnbench_tf.data.questions.annotation import Annotated
from dawnbench_tf.data.questions.vocabulary import Vocabulary

# Contractions part as in GloVe's vocabulary (do n't, it 's); a number keeps its commas and points;
# every other sign is a token of its own, so that an answer's ends are ends of tokens.
_GLOVE = re.compile(
    r"""[^\W\d_]+?(?=n['’]t\b) | n['’]t\b | ['’](?:s|re|ve|ll|d|m)\b
      | \d+(?:[.,]\d+)* | [^\W\d_]+ | \S""",
    re.VERBOSE | re.IGNORECASE,
)
_TOKENS = {"glove": _GLOVE, "words": re.compile(r"\w+|[^\w\s]")}


def offsets(text: str, tokenizer: str = "glove") -> list[tuple[int, int]]:
    """First and past-the-last character of each token.

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
    """Tokens of texts, one text after the other, with what the tokenizer tells of them.

    Args:
      texts: to cut.
      tokenizer: a recipe's.
      pieces: of the tokenizer wordpiece.
    """
    if tokenizer == "spacy":
        yield from annotation.annotate(texts)
    elif pieces:
        yield from wordpieces.cut(texts, pieces)
    else:
        for text in texts:
            places = offsets(text, tokenizer)
            yield Annotated([text[a:b] for a, b in places], places, [], [])


def version(tokenizer: str) -> str:
    """The tokenizer with its version. Raises Refusal if it is not installed."""
    versions = {
        "spacy": annotation.version,
        "treebank": treebank.version,
        "wordpiece": lambda: importlib.metadata.version("tf-models-official"),
    }
    return f"{tokenizer} {versions[tokenizer]()}" if tokenizer in versions else tokenizer


def locate(context: str, answer: str, start: int) -> int:
    """The character where an answer's text starts: `start`, or the nearest other; -1: nowhere."""
    if start >= 0 and context.startswith(answer, start):
        return start
    starts, at = [], context.find(answer)
    while at >= 0:
        starts.append(at)
        at = context.find(answer, at + 1)
    return min(starts, key=lambda at: abs(at - start), default=-1)


def span(token_offsets: list[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """The first and the last token that overlap the characters from `begin` to before `end`."""
    first = bisect_right(token_offsets, begin, key=lambda token: token[1])
    last = bisect_left(token_offsets, end, key=lambda token: token[0]) - 1
    return (first, last) if first <= last else None
