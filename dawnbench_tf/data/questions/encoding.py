"""`Encoded`, contexts and questions as ids: the return type of every reading data set's `load`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dawnbench_tf import terminal
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.questions import tokens, vocabulary
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.data.questions.tokens import Annotated
from dawnbench_tf.data.questions.vocabulary import Vocabulary
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.recipe import Questions
from dawnbench_tf.tasks import GIVEN

# Alignments of an answer with its context's tokens: exact; found at another offset; starts or ends
# inside a token; not found.
ALIGNED, MOVED, CUT, NOWHERE = range(4)


class Ragged(NamedTuple):
    """Rows of different lengths, end to end: row i is values[bounds[i] : bounds[i + 1]]."""

    values: np.ndarray
    bounds: np.ndarray

    def padded(
        self,
        rows: np.ndarray,
        length: int,
        part: tuple[np.ndarray, np.ndarray] | None = None,
        table: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns rows as an array (rows, length, ...), cut at `length`, padded with zeros."""
        # `part`: takes only a part of each row: index of its first value, and past its last, each
        # (rows,). `table`: takes table[value] in place of each value.
        begins, ends = self.bounds[rows], self.bounds[np.asarray(rows) + 1]
        if part:
            begins, ends = begins + part[0], begins + part[1]
        indices = begins[:, None] + np.arange(length)  # (rows, length)
        inside = indices < ends[:, None]
        # Padding reads value 0, which `inside` then zeroes: no index is out of range.
        values = self.values[np.where(inside, indices, 0)]
        values = values if table is None else table[values]
        return values * inside.reshape(inside.shape + (1,) * (values.ndim - 2))

    def row(self, index: int) -> np.ndarray:
        """Returns the values of a row."""
        return self.values[self.bounds[index] : self.bounds[index + 1]]

    def lengths(self) -> np.ndarray:
        """Returns the length of every row, (rows,)."""
        return np.diff(self.bounds)


class EncodedSplit(NamedTuple):
    """A split as type ids: id i is the i-th distinct token of the data set."""

    contexts: Ragged  # tokens of each context
    offsets: Ragged  # (tokens, 2): first and past-the-last character of each token
    questions: Ragged  # tokens of each question
    context_of_question: np.ndarray  # (questions,)
    spans: Ragged  # (answers, 2): first and last token of each right answer; -1: NOWHERE
    alignments: np.ndarray  # (answers,): ALIGNED to NOWHERE
    context_lemmas: Ragged  # ids of lemmas, or of lower-cased tokens
    question_lemmas: Ragged  # from the same table of ids
    context_tags: Ragged  # (tokens, 2): ids of part of speech and entity type; 0: unknown


class Encoded(NamedTuple):
    """A data set of questions: its splits, and tables from type ids to the network's ids."""

    train: EncodedSplit
    test: EncodedSplit
    test_corpus: Corpus  # the test's text, for scores
    vocabulary: Vocabulary
    vectors: np.ndarray  # float32 (fixed tokens, width)
    tuned: np.ndarray  # float32 (tuned tokens, width): initial vectors of the last trained tokens
    token_ids: np.ndarray  # int32 (types,)
    character_ids: np.ndarray  # int32 (types, 16)
    lower_ids: np.ndarray  # int32 (types,): equal for tokens that differ only in case
    form: Questions
    whole: int = 0  # number of training questions before some were selected
    pretrained: Path | None = None  # file of the network's initial weights (BERT)
    origin: Origin = Origin(GIVEN)


def encode(
    corpus: Corpus,
    words: dict[str, int],
    tokenizer: str = "glove",
    pieces: Vocabulary | None = None,
) -> EncodedSplit:
    """Encodes a split: tokenizes its texts and aligns its answers with the tokens."""
    cut = partial(tokens.cut, tokenizer=tokenizer, pieces=pieces)
    types = partial(_types, words=words, lemma_ids={})
    contexts, offsets, context_lemmas, tags = types(cut(corpus.contexts), len(corpus.contexts))
    questions, _, question_lemmas, _ = types(cut([q.text for q in corpus.questions]))
    spans, alignments = [], []
    for q in corpus.questions:
        aligned = [_align(corpus.contexts[q.context], offsets[q.context], *a) for a in q.answers]
        spans.append([span for span, _ in aligned])
        alignments += [alignment for _, alignment in aligned]
    split = EncodedSplit(
        _ragged(contexts),
        _ragged(offsets, 2),
        _ragged(questions),
        np.array([q.context for q in corpus.questions], np.int32),
        _ragged(spans, 2),
        np.array(alignments, np.int8),
        _ragged(context_lemmas),
        _ragged(question_lemmas),
        _ragged(tags, 2),
    )
    if tokenizer == "spacy":
        return split
    # Without annotations lower-cased tokens are lemmas, all tags 0.
    lower = _lower_ids(words)
    lemmas = [ids._replace(values=lower[ids.values]) for ids in (split.contexts, split.questions)]
    no_tags = split.contexts._replace(values=np.zeros((len(split.contexts.values), 2), np.int32))
    return split._replace(context_lemmas=lemmas[0], question_lemmas=lemmas[1], context_tags=no_tags)


def _types(
    texts: Iterable[Annotated], count: int = 0, *, words: dict[str, int], lemma_ids: dict[str, int]
) -> tuple[list, ...]:
    """Returns four lists with an item for each text: type ids, offsets, lemma ids, tag ids."""
    # New tokens and lemmas get the next free id, in `words` and `lemma_ids`. A line shows how many
    # of `count` texts are done.
    lists: tuple[list, ...] = ([], [], [], [])
    for done, (text_tokens, offsets, lemmas, tags) in enumerate(texts, 1):
        if count and done % 1000 == 0:
            terminal.status(f"tokenizing: {done:,} of {count:,} contexts", logged=False)
        types = [words.setdefault(token, len(words)) for token in text_tokens]
        lemma_row = [lemma_ids.setdefault(lemma, len(lemma_ids)) for lemma in lemmas]
        for values, value in zip(lists, (types, offsets, lemma_row, tags), strict=True):
            values.append(value)
    return lists


def encode_question(
    context: str, question: str, vocab: Vocabulary, form: Questions = Questions()
) -> Encoded:
    """Encodes one question on one context, without an answer, as a data set."""
    corpus = Corpus([context], [Question("", question, 0, ())])
    words: dict[str, int] = {}
    split = encode(corpus, words, form.tokenizer, pieces=vocab if vocab.pieces else None)
    return assemble(split, split, corpus, list(words), {}, vocab, form)


def _lower_ids(words: Iterable[str]) -> np.ndarray:
    """Returns an id for each word, equal for words that differ only in case; int32 (words,)."""
    # An array of texts would take the longest one's memory for each.
    lower = np.array([word.lower() for word in words], object)
    return np.unique(lower, return_inverse=True)[1].astype(np.int32)


def _align(
    context: str, offsets: list[tuple[int, int]], answer: str, start: int
) -> tuple[tuple[int, int], int]:
    """Returns an answer's first and last token, and its alignment (ALIGNED to NOWHERE)."""
    offset = tokens.locate(context, answer, start)
    stripped = answer.strip()
    begin = offset + answer.index(stripped)
    end = begin + len(stripped)
    span = tokens.span(offsets, begin, end) if offset >= 0 and stripped else None
    if span is None:
        return (-1, -1), NOWHERE
    whole = offsets[span[0]][0] == begin and offsets[span[1]][1] == end
    return span, (ALIGNED if offset == start else MOVED) if whole else CUT


def _ragged(rows: Sequence[Sequence[int | tuple[int, int]]], columns: int | None = None) -> Ragged:
    """Makes a Ragged int32 array from lists of numbers, or of tuples of `columns` numbers."""
    shape = (-1,) if columns is None else (-1, columns)
    flat = [value for row in rows for value in row]
    bounds = np.cumsum([0, *map(len, rows)])
    return Ragged(np.array(flat, np.int32).reshape(shape), bounds.astype(np.int64))


def build_vocabulary(
    split: EncodedSplit,
    words: list[str],
    vectors: Mapping[str, np.ndarray],
    form: Questions,
    min_counts: tuple[int, int] = (0, 0),
) -> Vocabulary:
    """Builds the vocabulary of a training split. Tuned tokens are the last ones of `trained`."""
    # Tokens without a vector, and characters, are known if they occur more often than `min_counts`.
    # The tokens of a context count once for each of its questions, as in the original.
    cased = WORD_VECTORS[form.word_vectors].cased
    questions = np.bincount(split.context_of_question, minlength=len(split.contexts.bounds) - 1)
    weights = np.repeat(questions, split.contexts.lengths())
    in_contexts = np.bincount(split.contexts.values, weights, minlength=len(words))
    in_questions = np.bincount(split.questions.values, minlength=len(words))
    counts, question_counts, characters = Counter[str](), Counter[str](), Counter[str]()
    for word, *numbers in zip(words, in_contexts, in_questions, strict=True):
        token, count = vocabulary.normalize(word, cased), int(sum(numbers))
        counts[token] += count
        question_counts[token] += int(numbers[1])
        for character in word:
            characters[character] += count
    least = min_counts[0] if form.learned_words or not vectors else math.inf
    trained = [t for t, count in counts.items() if count > least and t not in vectors]
    # By falling count, then alphabetically: the order must not depend on hashes.
    candidates = [t for t in vectors if question_counts[t]]
    tuned = sorted(candidates, key=lambda t: (-question_counts[t], t))[: form.tuned_words]
    frequent = [c for c, count in characters.items() if count > min_counts[1]]
    fixed = sorted(vectors.keys() - set(tuned))
    return Vocabulary(sorted(trained) + tuned, fixed, sorted(frequent), cased)


def assemble(
    train: EncodedSplit,
    test: EncodedSplit,
    test_corpus: Corpus,
    words: list[str],
    vectors: Mapping[str, np.ndarray],
    vocab: Vocabulary,
    form: Questions,
) -> Encoded:
    """Makes a data set from its encoded splits."""
    # `words` are all distinct tokens as written, in the order of their type ids; `vectors` are by
    # normalized token. Tokens that `vocab` lacks get the id UNKNOWN.

    def table(words: list[str]) -> np.ndarray:
        rows = [vectors[word] for word in words]
        return np.array(rows, np.float32).reshape(len(rows), WORD_VECTORS[form.word_vectors].width)

    ids = (*vocab.ids(words), _lower_ids(words))
    fixed = table(vocab.fixed if vectors else [])  # a question of its own has no vectors
    tuned = table([word for word in vocab.trained if word in vectors])
    return Encoded(train, test, test_corpus, vocab, fixed, tuned, *ids, form)
