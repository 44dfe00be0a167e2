"""Tokens as the Penn Treebank has them, by nltk; cut further as BiDAF's seed did."""

import importlib.metadata
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from dawnbench_tf.refusals import refuse

# squad/utils.py: tokens part at these too, which become tokens of their own.
_SIGNS = "-\u2212\u2014\u2013/~\"'\u201c\u2019\u201d\u2018\u00b0"
_PARTS = re.compile(f"[{_SIGNS}]|[^{_SIGNS}]+")
_QUOTE = re.compile("``|''|\"")  # what nltk writes as `` or ''


@cache
def _tokenizers() -> tuple[Any, Any]:
    """nltk's, of sentences and of a sentence's words."""
    try:
        from nltk.tokenize import NLTKWordTokenizer, PunktTokenizer
    except ImportError:
        right = "nltk is not installed; pip install nltk, or train with --tokenizer=glove"
        refuse("tokenizer", "treebank", right)
    try:
        return PunktTokenizer("english"), NLTKWordTokenizer()
    except LookupError:
        hint = "python -m nltk.downloader punkt_tab, or train with --tokenizer=glove"
        refuse("tokenizer", "treebank", f"nltk's sentences are not installed; {hint}")


def version() -> str:
    """Of nltk, in a cache's key. Raises Refusal if it is not installed."""
    _tokenizers()
    return f"nltk {importlib.metadata.version('nltk')}"


def offsets(text: str) -> Iterator[tuple[int, int]]:
    """Yields first and past-the-last character of each token."""
    sentences, words = _tokenizers()
    for begin, end in sentences.span_tokenize(text):
        at, sentence = 0, text[begin:end]
        for word in words.tokenize(sentence):
            quote = _QUOTE.search(sentence, at) if word in ("``", "''") else None
            at = quote.start() if quote else sentence.index(word, at)
            past = quote.end() if quote else at + len(word)
            for part in _PARTS.finditer(sentence, at, past):
                yield begin + part.start(), begin + part.end()
            at = past
