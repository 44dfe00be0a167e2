"""Tokenizers with exact character offsets, spaCy's tags, and the alignment of answers."""

import importlib.metadata
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from dawnbench_tf.data.questions import wordpieces
from dawnbench_tf.data.questions.vocabulary import Vocabulary
from dawnbench_tf.refusals import refuse

# Contractions are split as in GloVe's vocabulary (do n't, it 's). Numbers keep commas and points.
# Every other sign is a token of its own, so that answers start and end at token boundaries.
_GLOVE = re.compile(
    r"""n['’]t\b | [^\W\d_]+(?!(?<=n)['’]t\b) | ['’](?:s|re|ve|ll|d|m)\b
      | \d+(?:[.,]\d+)* | \S""",
    re.VERBOSE | re.IGNORECASE,
)
# squad/utils.py of the seed: tokens are split at these characters; each character becomes a token.
_SIGNS = "-\u2212\u2014\u2013/~\"'\u201c\u2019\u201d\u2018\u00b0"
_PARTS = re.compile(f"[{_SIGNS}]|[^{_SIGNS}]+")
_TOKENS = {"glove": _GLOVE, "words": re.compile(r"\w+|[^\w\s]")}
SPACY_MODEL = "en_core_web_md"  # spaCy's model in DrQA's published entries
_SPEECH = """$ '' , -LRB- -RRB- . : ADD AFX CC CD DT EX FW HYPH IN JJ JJR JJS LS MD NFP NN NNP NNPS
    NNS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB XX _SP ``"""
_ENTITIES = """CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON
    PRODUCT QUANTITY TIME WORK_OF_ART"""
# Ids of OntoNotes' tags, below `models.texts.TAGS`; 0 stands for any other tag.
PART_IDS = {tag: 1 + i for i, tag in enumerate(_SPEECH.split())}
ENTITY_IDS = {tag: 1 + i for i, tag in enumerate(["", *_ENTITIES.split()])}


class Annotated(NamedTuple):
    """The tokens of a text with their annotations; without lemmas and tags `encode` adds them."""

    tokens: list[str]
    offsets: list[tuple[int, int]]  # first and past-the-last character
    lemmas: list[str]
    tags: list[tuple[int, int]]  # ids of part of speech and entity type


def offsets(text: str, tokenizer: str = "glove") -> list[tuple[int, int]]:
    """Returns first and past-the-last character of each token of a text.

    >>> text = "Don't pay $1,000.50!"
    >>> [text[a:b] for a, b in offsets(text)]
    ['Do', "n't", 'pay', '$', '1,000.50', '!']
    >>> [text[a:b] for a, b in offsets(text, "words")]
    ['Don', "'", 't', 'pay', '$', '1', ',', '000', '.', '50', '!']
    """
    if tokenizer == "treebank":  # nltk's Penn Treebank tokenizer, split further at _SIGNS
        sentences, words = _tokenizers()
        return [
            part.span()
            for begin, end in sentences.span_tokenize(text)
            for first, past in words.span_tokenize(text[begin:end])
            for part in _PARTS.finditer(text, begin + first, begin + past)
        ]
    return [match.span() for match in _TOKENS[tokenizer].finditer(text)]


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


@cache
def _pipeline() -> Any:
    """Loads spaCy's pipeline, once in a process."""
    try:
        import spacy
    except ImportError:
        reason = "spaCy is not installed; pip install spacy, or train with --tokenizer=glove"
        refuse("tokenizer", "spacy", reason)
    try:
        return spacy.load(SPACY_MODEL)
    except OSError:
        hint = f"python -m spacy download {SPACY_MODEL}, or train with --tokenizer=glove"
        refuse("tokenizer", "spacy", f"its model {SPACY_MODEL} is not installed; {hint}")


def cut(
    texts: Iterable[str], tokenizer: str, pieces: Vocabulary | None = None
) -> Iterator[Annotated]:
    """Tokenizes texts; yields one `Annotated` for each."""
    if tokenizer == "spacy":
        spaced = (re.sub(r"\s", " ", text) for text in texts)  # as in the entries' code
        for document in _pipeline().pipe(spaced):
            yield Annotated(
                [token.text for token in document],
                [(token.idx, token.idx + len(token.text)) for token in document],
                [token.lemma_ for token in document],
                [(PART_IDS.get(t.tag_, 0), ENTITY_IDS.get(t.ent_type_, 0)) for t in document],
            )
    elif pieces:
        for words, extents in wordpieces.cut(texts, pieces):
            yield Annotated(words, extents, [], [])
    else:
        for text in texts:
            extents = offsets(text, tokenizer)
            yield Annotated([text[a:b] for a, b in extents], extents, [], [])


def version(tokenizer: str) -> str:
    """Returns the tokenizer's name and version. Raises Refusal if it is not installed."""
    if tokenizer == "spacy":
        meta = _pipeline().meta
        return f"spacy {meta['name']} {meta['version']} {meta['spacy_version']}"
    if tokenizer == "treebank":
        _tokenizers()
        return f"treebank nltk {importlib.metadata.version('nltk')}"
    if tokenizer == "wordpiece":
        return f"wordpiece {importlib.metadata.version('tf-models-official')}"
    return tokenizer


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
