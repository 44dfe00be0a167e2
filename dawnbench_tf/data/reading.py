"""Passages and questions as numbers: what every reading data set's `load` returns."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from dawnbench_tf.data import tokens, vocabulary
from dawnbench_tf.data.passages import Passages
from dawnbench_tf.data.vocabulary import Vocabulary

ALIGNED, MOVED, CUT, NOWHERE = range(4)  # how an answer's words were found


class Ragged(NamedTuple):
    """Rows of different lengths, end to end: row i is values[bounds[i] : bounds[i + 1]]."""

    values: np.ndarray
    bounds: np.ndarray

    def padded(self, rows, length: int) -> np.ndarray:
        """Rows by number, (rows, length, ...), cut at `length`, filled up with zeros."""
        places = self.bounds[rows][:, None] + np.arange(length)
        inside = places < self.bounds[np.asarray(rows) + 1][:, None]
        values = self.values[np.where(inside, places, 0)]
        return values * inside.reshape(inside.shape + (1,) * (values.ndim - 2))

    def lengths(self) -> np.ndarray:
        """Length of every row."""
        return np.diff(self.bounds)


class Encoded(NamedTuple):
    """One split as numbers; a word's number is its place in the data set's list of words."""

    contexts: Ragged  # words of each passage
    places: Ragged  # (words, 2): first and past-the-last character of each
    questions: Ragged  # words of each question
    passages: np.ndarray  # each question's passage
    spans: Ragged  # (answers, 2): first and last word of each right answer; -1: nowhere
    found: np.ndarray  # how each answer was found: ALIGNED to NOWHERE


class Reading(NamedTuple):
    """A reading data set; its words as written are rows of `word_numbers` and of `letters`."""

    train: Encoded
    test: Encoded
    test_passages: Passages  # the text itself, for scores
    vocabulary: Vocabulary
    vectors: np.ndarray  # (fixed words, 100) float32
    word_numbers: np.ndarray  # (words,) int32
    letters: np.ndarray  # (words, 16) int32


def encode(passages: Passages, words: dict[str, int], progress=lambda done, of: None) -> Encoded:
    """Passages as numbers; new words are added to `words`."""
    contexts, places, spans, found = [], [], [], []
    for number, context in enumerate(passages.contexts):
        where = tokens.places(context)
        contexts.append([words.setdefault(context[a:b], len(words)) for a, b in where])
        places.append(where)
        if number % 1000 == 999:
            progress(number + 1, len(passages.contexts))
    questions = [
        [words.setdefault(q.text[a:b], len(words)) for a, b in tokens.places(q.text)]
        for q in passages.questions
    ]
    for q in passages.questions:
        right = [_align(passages.contexts[q.passage], places[q.passage], *a) for a in q.answers]
        spans.append([place for place, _ in right])
        found += [how for _, how in right]
    return Encoded(
        _ragged(contexts),
        _ragged(places, 2),
        _ragged(questions),
        np.array([q.passage for q in passages.questions], np.int32),
        _ragged(spans, 2),
        np.array(found, np.int8),
    )


def _align(context, words, answer, start):
    """An answer's first and last word, and how they were found."""
    at = tokens.locate(context, answer, start)
    stripped = answer.strip()
    begin = at + answer.index(stripped)
    ends = tokens.span(words, begin, begin + len(stripped)) if at >= 0 else None
    if ends is None:
        return (-1, -1), NOWHERE
    whole = words[ends[0]][0] == begin and words[ends[1]][1] == begin + len(stripped)
    return ends, (ALIGNED if at == start else MOVED) if whole else CUT


def _ragged(rows, columns=None):
    shape = (-1,) if columns is None else (-1, columns)
    flat = [value for row in rows for value in row]
    bounds = np.cumsum([0, *map(len, rows)])
    return Ragged(np.array(flat, np.int32).reshape(shape), bounds.astype(np.int64))


def count(encoded: Encoded, words: list[str]) -> Counter:
    """How often each word, as written, is in a split: a passage's once for each question on it.

    As the original counted.
    """
    asked = np.bincount(encoded.passages, minlength=len(encoded.contexts.bounds) - 1)
    weights = np.repeat(asked, encoded.contexts.lengths())
    total = np.bincount(encoded.contexts.values, weights, minlength=len(words))
    total += np.bincount(encoded.questions.values, minlength=len(words))
    return Counter({word: int(n) for word, n in zip(words, total, strict=True) if n})


def assemble(train: Encoded, test: Encoded, test_passages, words, vectors, least) -> Reading:
    """A data set from its encoded splits.

    Args:
      words: all words as written, in the order of their numbers.
      vectors: lower-case word -> vector.
      least: a word without a vector, and a character, are known if training has more than so many.
    """
    known = vocabulary.make(count(train, words), vectors, *least)
    table = np.array([vectors[word] for word in known.fixed], np.float32)
    table = table.reshape(-1, vocabulary.DIMENSION)
    return Reading(train, test, test_passages, known, table, *known.numbers(words))
