"""Contexts and questions as ids: what the `load` of every data set of questions returns."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.questions import tokens, vocabulary
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.data.questions.vocabulary import Vocabulary

ALIGNED, MOVED, CUT, NOWHERE = range(4)  # how an answer's text met the tokens of its context


class Ragged(NamedTuple):
    """Rows of different lengths, end to end: row i is values[bounds[i] : bounds[i + 1]]."""

    values: np.ndarray
    bounds: np.ndarray

    def padded(self, rows: np.ndarray, length: int) -> np.ndarray:
        """Some rows, (rows, length, ...), cut at `length`, filled up with zeros."""
        places = self.bounds[rows][:, None] + np.arange(length)  # (rows, length)
        inside = places < self.bounds[np.asarray(rows) + 1][:, None]
        values = self.values[np.where(inside, places, 0)]
        return values * inside.reshape(inside.shape + (1,) * (values.ndim - 2))

    def lengths(self) -> np.ndarray:
        """Length of every row."""
        return np.diff(self.bounds)


class EncodedSplit(NamedTuple):
    """One split as type ids; id i is `words[i]`, the i-th distinct token of the data set."""

    contexts: Ragged  # tokens of each context
    offsets: Ragged  # (tokens, 2): first and past-the-last character of each
    questions: Ragged  # tokens of each question
    context_of_question: np.ndarray  # (questions,)
    spans: Ragged  # (answers, 2): first and last token of each right answer; -1: nowhere
    alignments: np.ndarray  # (answers,): ALIGNED to NOWHERE


class Encoded(NamedTuple):
    """A data set of questions. A type id is a row of `token_ids` and of `character_ids`."""

    train: EncodedSplit
    test: EncodedSplit
    test_corpus: Corpus  # the text itself, for scores
    vocabulary: Vocabulary
    vectors: np.ndarray  # float32 (fixed tokens, 100)
    token_ids: np.ndarray  # int32 (types,)
    character_ids: np.ndarray  # int32 (types, 16)
    origin: Origin = Origin("given")


def encode(
    corpus: Corpus,
    words: dict[str, int],
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> EncodedSplit:
    """Encodes a split.

    Args:
      corpus: its text.
      words: type id of each token as written; new ones are added.
      progress: called now and then with the contexts that are done, and all.
    """
    contexts, offsets, spans, alignments = [], [], [], []
    for index, context in enumerate(corpus.contexts):
        offsets.append(tokens.offsets(context))
        contexts.append([words.setdefault(context[a:b], len(words)) for a, b in offsets[-1]])
        if index % 1000 == 999:
            progress(index + 1, len(corpus.contexts))
    questions = [
        [words.setdefault(q.text[a:b], len(words)) for a, b in tokens.offsets(q.text)]
        for q in corpus.questions
    ]
    for q in corpus.questions:
        right = [_align(corpus.contexts[q.context], offsets[q.context], *a) for a in q.answers]
        spans.append([span for span, _ in right])
        alignments += [alignment for _, alignment in right]
    return EncodedSplit(
        _ragged(contexts),
        _ragged(offsets, 2),
        _ragged(questions),
        np.array([q.context for q in corpus.questions], np.int32),
        _ragged(spans, 2),
        np.array(alignments, np.int8),
    )


def of_question(context: str, question: str, vocab: Vocabulary) -> Encoded:
    """One question on one context, with no answer, as a data set whose words are known."""
    corpus = Corpus([context], [Question("", question, 0, ())])
    words: dict[str, int] = {}
    split = encode(corpus, words)
    no_vectors = np.empty((0, vocabulary.DIMENSION), np.float32)
    return Encoded(split, split, corpus, vocab, no_vectors, *vocab.ids(list(words)))


def _align(context, offsets, answer, start):
    """An answer's first and last token, and how its text met them."""
    at = tokens.locate(context, answer, start)
    stripped = answer.strip()
    begin = at + answer.index(stripped)
    end = begin + len(stripped)
    span = tokens.span(offsets, begin, end) if at >= 0 else None
    if span is None:
        return (-1, -1), NOWHERE
    whole = offsets[span[0]][0] == begin and offsets[span[1]][1] == end
    return span, (ALIGNED if at == start else MOVED) if whole else CUT


def _ragged(rows, columns=None):
    shape = (-1,) if columns is None else (-1, columns)
    flat = [value for row in rows for value in row]
    bounds = np.cumsum([0, *map(len, rows)])
    return Ragged(np.array(flat, np.int32).reshape(shape), bounds.astype(np.int64))


def count(split: EncodedSplit, words: list[str]) -> Counter:
    """How often each token, as written, is in a split: a context's once for each question on it.

    As the original counted.
    """
    questions = np.bincount(split.context_of_question, minlength=len(split.contexts.bounds) - 1)
    weights = np.repeat(questions, split.contexts.lengths())
    total = np.bincount(split.contexts.values, weights, minlength=len(words))
    total += np.bincount(split.questions.values, minlength=len(words))
    return Counter({word: int(n) for word, n in zip(words, total, strict=True) if n})


def assemble(
    train: EncodedSplit,
    test: EncodedSplit,
    test_corpus: Corpus,
    words: list[str],
    vectors: Mapping[str, np.ndarray],
    min_counts: tuple[int, int],
) -> Encoded:
    """A data set from its encoded splits.

    Args:
      train, test: the splits.
      test_corpus: the test's text.
      words: all distinct tokens as written, in the order of their type ids.
      vectors: by normalized token.
      min_counts: (min_token_count, min_character_count): tokens without a vector, and characters,
        that training does not have more of become UNKNOWN.
    """
    vocab = vocabulary.build(count(train, words), vectors, *min_counts)
    table = np.array([vectors[word] for word in vocab.fixed], np.float32)
    table = table.reshape(-1, vocabulary.DIMENSION)
    return Encoded(train, test, test_corpus, vocab, table, *vocab.ids(words))
