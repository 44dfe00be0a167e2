"""spaCy's tokenizer and annotations: lemmas, parts of speech, entity types."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from dawnbench_tf.refusals import refuse

MODEL = "en_core_web_md"  # spaCy's model in DrQA's published entries
_PARTS = """$ '' , -LRB- -RRB- . : ADD AFX CC CD DT EX FW HYPH IN JJ JJR JJS LS MD NFP NN NNP NNPS
    NNS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB XX _SP ``"""
_ENTITIES = """CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON
    PRODUCT QUANTITY TIME WORK_OF_ART"""
# Ids of OntoNotes' tags, below `models.texts.TAGS`; 0 stands for any other tag.
PART_IDS = {tag: 1 + i for i, tag in enumerate(_PARTS.split())}
ENTITY_IDS = {tag: 1 + i for i, tag in enumerate(["", *_ENTITIES.split()])}


class Annotated(NamedTuple):
    """The tokens of a text with their annotations."""

    tokens: list[str]
    offsets: list[tuple[int, int]]  # first and past-the-last character
    lemmas: list[str]
    tags: list[tuple[int, int]]  # ids of part of speech and entity type


def plain(tokens: list[str], offsets: list[tuple[int, int]]) -> Annotated:
    """Returns tokens without annotations: lower-cased tokens are lemmas, all tags 0."""
    return Annotated(tokens, offsets, [token.lower() for token in tokens], [(0, 0)] * len(tokens))


@cache
def _pipeline() -> Any:
    """Loads spaCy's pipeline, once in a process."""
    try:
        import spacy
    except ImportError:
        reason = "spaCy is not installed; pip install spacy, or train with --tokenizer=glove"
        refuse("tokenizer", "spacy", reason)
    try:
        return spacy.load(MODEL)
    except OSError:
        hint = f"python -m spacy download {MODEL}, or train with --tokenizer=glove"
        refuse("tokenizer", "spacy", f"its model {MODEL} is not installed; {hint}")


def version() -> str:
    """Returns the pipeline's version, for a cache's key. Raises Refusal if it is not installed."""
    meta = _pipeline().meta
    return f"{meta['name']} {meta['version']} {meta['spacy_version']}"


def annotate(texts: Iterable[str]) -> Iterator[Annotated]:
    """Tokenizes and annotates texts; yields one `Annotated` for each."""
    spaced = (re.sub(r"\s", " ", text) for text in texts)  # as in the entries' code
    for document in _pipeline().pipe(spaced):
        yield Annotated(
            [token.text for token in document],
            [(token.idx, token.idx + len(token.text)) for token in document],
            [token.lemma_ for token in document],
            [
                (PART_IDS.get(token.tag_, 0), ENTITY_IDS.get(token.ent_type_, 0))
                for token in document
            ],
        )
