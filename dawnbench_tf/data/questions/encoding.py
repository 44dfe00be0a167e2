"""Contexts and questions as ids: what the `load` of every data set of questions returns."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.questions import tokens, vocabulary
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.data.questions.vocabulary import Choice, Vocabulary
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.recipe import Questions
from dawnbench_tf.tasks import GIVEN

ALIGNED, MOVED, CUT, NOWHERE = range(4)  # how an answer's text met the tokens of its context


def choice(form: Questions, min_token_count: int, min_character_count: int) -> Choice:
    """Which words are known, by a data set's own counts."""
    least = min_token_count if form.learned_words else math.inf
    cased = WORD_VECTORS[form.word_vectors].cased
    return Choice(least, min_character_count, form.tuned_words, cased)


class Ragged(NamedTuple):
    """Rows of different lengths, end to end: row i is values[bounds[i] : bounds[i + 1]]."""

    values: np.ndarray
    bounds: np.ndarray

    def padded(
        self,
        rows: np.ndarray,
        length: int,
        part: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Some rows, (rows, length, ...), cut at `length`, filled up with zeros.

        Of each row a part alone, if it is given: (first values, past-the-last ones).
        """
        begins, ends = self.bounds[rows], self.bounds[np.asarray(rows) + 1]
        if part:
            begins, ends = begins + part[0], begins + part[1]
        places = begins[:, None] + np.arange(length)  # (rows, length)
        inside = places < ends[:, None]
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
    context_lemmas: Ragged  # ids of tokens' lemmas, or of their lower case
    question_lemmas: Ragged  # the same ids
    context_tags: Ragged  # (tokens, 2): ids of part of speech and of entity type; 0: not told


class Encoded(NamedTuple):
    """A data set of questions. A type id is a row of the three tables of ids."""

    train: EncodedSplit
    test: EncodedSplit
    test_corpus: Corpus  # the text itself, for scores
    vocabulary: Vocabulary
    vectors: np.ndarray  # float32 (fixed tokens, width)
    tuned: np.ndarray  # float32 (last trained tokens, width): vectors that these start from
    token_ids: np.ndarray  # int32 (types,)
    character_ids: np.ndarray  # int32 (types, 16)
    lower_ids: np.ndarray  # int32 (types,): the same for The and the
    form: Questions
    pretrained: Path | None = None  # the file of weights that the network starts from
    origin: Origin = Origin(GIVEN)


def encode(
    corpus: Corpus,
    words: dict[str, int],
    tokenizer: str = "glove",
    progress: Callable[[int, int], None] = lambda done, of: None,
    pieces: Vocabulary | None = None,
) -> EncodedSplit:
    """Encodes a split.

    Args:
      corpus: its text.
      words: type id of each token as written; new ones are added.
      tokenizer: that cuts texts, one of those in `tokens`.
      progress: called now and then with the contexts that are done, and all.
      pieces: of the tokenizer wordpiece.
    """
    cut = partial(tokens.cut, tokenizer=tokenizer, pieces=pieces)
    types = partial(_types, words=words, lemma_ids={})
    of_contexts = _reported(cut(corpus.contexts), len(corpus.contexts), progress)
    contexts, offsets, context_lemmas, tags = types(of_contexts)
    questions, _, question_lemmas, _ = types(cut([q.text for q in corpus.questions]))
    spans, alignments = [], []
    for q in corpus.questions:
        right = [_align(corpus.contexts[q.context], offsets[q.context], *a) for a in q.answers]
        spans.append([span for span, _ in right])
        alignments += [alignment for _, alignment in right]
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
    return split if tokenizer == "spacy" else _without_annotations(split, list(words))


def _types(texts, words, lemma_ids):
    """Of each text: type ids of its tokens, their offsets, lemmas' ids, tags' ids."""
    rows: tuple[list, ...] = ([], [], [], [])
    for of_text, offsets, lemmas, tags in texts:
        types = [words.setdefault(token, len(words)) for token in of_text]
        of_lemmas = [lemma_ids.setdefault(lemma, len(lemma_ids)) for lemma in lemmas]
        for row, value in zip(rows, (types, offsets, of_lemmas, tags), strict=True):
            row.append(value)
    return rows


def _reported(texts, count, progress):
    """Texts as they come, each thousand of `count` told to `progress`."""
    for index, text in enumerate(texts, 1):
        yield text
        if index % 1000 == 0:
            progress(index, count)


def _without_annotations(split, words):
    """With lower case in place of lemmas, and tags that say nothing."""
    lower = _lower_ids(words)
    return split._replace(
        context_lemmas=split.contexts._replace(values=lower[split.contexts.values]),
        question_lemmas=split.questions._replace(values=lower[split.questions.values]),
        context_tags=split.contexts._replace(
            values=np.zeros((len(split.contexts.values), 2), np.int32)
        ),
    )


def encode_question(
    context: str, question: str, vocab: Vocabulary, form: Questions = Questions()
) -> Encoded:
    """One question on one context, with no answer, as a data set whose words are known."""
    corpus = Corpus([context], [Question("", question, 0, ())])
    words: dict[str, int] = {}
    split = encode(corpus, words, form.tokenizer, pieces=vocab if vocab.pieces else None)
    none = np.empty((0, 0), np.float32)
    return Encoded(split, split, corpus, vocab, none, none, *_ids(vocab, list(words)), form)


def _ids(vocab: Vocabulary, words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tables of ids of a data set's distinct tokens."""
    token_ids, character_ids = vocab.ids(words)
    return token_ids, character_ids, _lower_ids(words)


def _lower_ids(words):
    """An id for each word, the same for The and the, int32."""
    return np.unique([word.lower() for word in words], return_inverse=True)[1].astype(np.int32)


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


def count(split: EncodedSplit, words: list[str]) -> tuple[Counter[str], Counter[str]]:
    """How often each token, as written, is in a split, and how often in its questions.

    A context's are counted once for each question on it, as the original counted.
    """
    questions = np.bincount(split.context_of_question, minlength=len(split.contexts.bounds) - 1)
    weights = np.repeat(questions, split.contexts.lengths())
    of_contexts = np.bincount(split.contexts.values, weights, minlength=len(words))
    of_questions = np.bincount(split.questions.values, minlength=len(words))

    def by_word(counts):
        return Counter({word: int(n) for word, n in zip(words, counts, strict=True) if n})

    return by_word(of_contexts + of_questions), by_word(of_questions)


def assemble(
    train: EncodedSplit,
    test: EncodedSplit,
    test_corpus: Corpus,
    words: list[str],
    vectors: Mapping[str, np.ndarray],
    vocab: Choice | Vocabulary,
    form: Questions,
) -> Encoded:
    """A data set from its encoded splits.

    Args:
      train, test: the splits.
      test_corpus: the test's text.
      words: all distinct tokens as written, in the order of their type ids.
      vectors: by normalized token.
      vocab: the vocabulary, or which tokens and characters it is to have; others are UNKNOWN.
      form: how the texts were made ids.
    """
    if not isinstance(vocab, Vocabulary):
        vocab = vocabulary.build(*count(train, words), vectors, vocab)

    def table(words):
        rows = [vectors[word] for word in words]
        return np.array(rows, np.float32).reshape(len(rows), WORD_VECTORS[form.word_vectors].width)

    fixed, tuned = table(vocab.fixed), table([word for word in vocab.trained if word in vectors])
    return Encoded(train, test, test_corpus, vocab, fixed, tuned, *_ids(vocab, words), form)
