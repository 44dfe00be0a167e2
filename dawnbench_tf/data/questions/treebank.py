"""Penn Treebank tokens, by nltk, split further at the signs of BiDAF's seed."""

import importlib.metadata
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from dawnbench_tf.refusals import refuse

# squad/utils.py of the seed: tokens are split at these characters; each character becomes a token.
_SIGNS = "-\u2212\u2014\u2013/~\"'\u201c\u2019\u201d\u2018\u00b0"
_PARTS = re.compile(f"[{_SIGNS}]|[^{_SIGNS}]+")


@cache
def _tokenizers() -> tuple[Any, Any]:
    """Loads nltk's tokenizers of sentences, and of the words of a sentence."""
    try:
        from nltk.tokenize import NLTKWordTokenizer, PunktTokenizer
    except ImportError:
        reason = "nltk is not installed; pip install nltk, or train with --tokenizer=glove"
        refuse("tokenizer", "treebank", reason)
    try:
        return PunktTokenizer("english"), NLTKWordTokenizer()
    except LookupError:
        hint = "python -m nltk.downloader punkt_tab, or train with --tokenizer=glove"
        refuse("tokenizer", "treebank", f"nltk's sentences are not installed; {hint}")


def version() -> str:
    """Returns nltk's version, for a cache's key. Raises Refusal if it is not installed."""
    _tokenizers()
    return f"nltk {importlib.metadata.version('nltk')}"


def offsets(text: str) -> Iterator[tuple[int, int]]:
    """Yields first and past-the-last character of each token."""
    sentences, words = _tokenizers()
    for begin, end in sentences.span_tokenize(text):
        for first, past in words.span_tokenize(text[begin:end]):
            for part in _PARTS.finditer(text, begin + first, begin + past):
                yield part.span()
