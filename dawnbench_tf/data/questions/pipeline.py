"""Batches of questions whose contexts are of like length.

All that is random about an epoch is drawn at its start from (seed, epoch) for the global batch and
then shared out: the same questions make up step i of epoch e under every strategy, after every
restart. A network gets the inputs that its family reads, as `models.texts` names them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.dataset import Data, Example, own_replicas, without_autotune
from dawnbench_tf.data.questions import spans, windows
from dawnbench_tf.data.questions.encoding import Encoded
from dawnbench_tf.data.questions.windows import Merged, Windows
from dawnbench_tf.models import networks, texts
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

MOST_QUESTIONS_PER_REPLICA = 64  # in a batch of the test
MOST_CONTEXT_TOKENS = 24_000  # in a batch of the test, if it has more questions than replicas


def steps_per_epoch(data: Data) -> int:
    """Steps of an epoch, in which each question that is trained on is seen at least once."""
    encoded, recipe = data.splits, data.recipe
    buckets = _buckets(_training_windows(encoded, recipe), encoded, recipe)
    return sum(-(-len(rows) // recipe.batch_size) for rows in buckets)


def _training_windows(encoded, recipe) -> Windows:
    """What training sees: longer contexts than the last bucket's are cut, as the seed cut them."""
    seen = windows.build(encoded.train, recipe.data)
    longest = recipe.data.bucket_boundaries[-1]
    return seen._replace(pasts=np.minimum(seen.pasts, seen.firsts + longest))


def _buckets(seen, encoded, recipe):
    """Indices of the windows that are trained on, by length of their context."""
    split, lengths = encoded.train, seen.lengths()
    fits = (split.questions.lengths() <= recipe.data.most_question_tokens)[seen.questions]
    right = _first_spans(split)[seen.questions]
    fits &= (right[:, 0] >= seen.firsts) & (right[:, 1] < seen.pasts)
    edges = (0, *recipe.data.bucket_boundaries)
    buckets = [
        np.flatnonzero(fits & (lengths > low) & (lengths <= high))
        for low, high in zip(edges, edges[1:], strict=False)
    ]
    if not sum(map(len, buckets)):
        refuse(
            "bucket_boundaries",
            recipe.data.bucket_boundaries,
            f"no passage fits; they have {lengths.min()} to {lengths.max()} words",
        )
    return buckets


def _first_spans(split):
    """Each question's first right answer, (questions, 2)."""
    return split.spans.values[split.spans.bounds[:-1]]


def training_batches(data: Data, first_epoch: int = 0) -> tf.data.Dataset:
    """Training batches from `first_epoch` on, shared out over replicas.

    Contexts are filled up to their bucket's boundary, questions to the longest of the batch, or of
    all where there is but one bucket; a bucket's last batch with questions from the head of its own
    order.

    Returns:
      A distributed data set of the network's inputs and right spans, int32 (batch, 2).
    """
    strategy = data.placement.strategy
    epochs = range(first_epoch, math.ceil(data.recipe.epochs))

    def of_worker(context):
        dataset = _batches(data, epochs, lambda rows: _share(rows, strategy, context))
        return data.placement.count_waits(dataset.prefetch(4)).with_options(without_autotune())

    return data.placement.distribute(of_worker)


def epoch_batches(data: Data, number: int) -> tf.data.Dataset:
    """An epoch's global batches: the network's inputs and right spans, int32 (batch, 2)."""
    batches = _batches(data, range(number, number + 1), lambda rows: [rows])
    return batches.prefetch(2).with_options(without_autotune())


def _batches(data, epochs, share):
    """Batches of some epochs; `share` takes a global batch's rows to those of each of its parts."""
    encoded, recipe, names = data.splits, data.recipe, _read_by(data.recipe)
    boundaries = recipe.data.bucket_boundaries
    seen = _training_windows(encoded, recipe)
    buckets = _buckets(seen, encoded, recipe)
    question_lengths = np.minimum(
        encoded.train.questions.lengths(), recipe.data.most_question_tokens
    )
    right = _first_spans(encoded.train)[seen.questions] - seen.firsts[:, None]
    static: dict[str, int | None] = {"context": None, "question": None}
    if len(boundaries) == 1:  # what a TPU needs
        static = {"context": boundaries[0], "question": int(question_lengths.max())}

    def batches():
        for epoch in epochs:
            for length, rows in _epoch(buckets, recipe, epoch):
                longest = int(question_lengths[seen.questions[rows]].max())
                lengths = {"context": length, "question": static["question"] or longest}
                for own in share(rows):
                    inputs = _inputs(names, encoded, encoded.train, seen.rows(own), lengths)
                    yield inputs, right[own]

    size = len(share(np.arange(recipe.batch_size))[0])
    signature = _signature(names, size, static), tf.TensorSpec((size, 2), tf.int32)
    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def _epoch(buckets, recipe, epoch):
    """An epoch's global batches, in their order: (length to fill up to, indices of windows)."""
    random = np.random.default_rng([recipe.seed, epoch])
    batches = []
    for length, rows in zip(recipe.data.bucket_boundaries, buckets, strict=True):
        count = -(-len(rows) // recipe.batch_size)
        if count:
            order = np.resize(random.permutation(rows), count * recipe.batch_size)
            batches += [(length, batch) for batch in np.split(order, count)]
    return [batches[i] for i in random.permutation(len(batches))]


def _share(rows, strategy, context):
    """This worker's part of a global batch: indices for each of its replicas."""
    return np.split(rows, strategy.num_replicas_in_sync)[own_replicas(strategy, context)]


def _read_by(recipe):
    """Names of the inputs of the recipe's network, in their order."""
    return networks.family_of(models.get(recipe.model)).reads


def _inputs(names, encoded, split, seen, lengths) -> tuple[np.ndarray, ...]:
    """Inputs for some windows: (windows, tokens, ...), 0 in padding.

    `lengths` has the number of tokens of a "context" and of a "question".
    """
    contexts, rows = split.context_of_question[seen.questions], seen.questions
    part = (seen.firsts, seen.pasts)
    whole = (0 * rows, split.questions.lengths()[rows])
    types = {
        "context": _types(split.contexts, contexts, lengths["context"], part),
        "question": _types(split.questions, rows, lengths["question"], whole),
    }
    inputs = []
    for name in names:
        text, _, kind = name.partition("_")
        of_text, inside = types[text]
        if kind == "matches":
            lemmas = (
                split.context_lemmas.padded(contexts, lengths["context"], part),
                split.question_lemmas.padded(rows, lengths["question"]),
            )
            inputs.append(_matches(encoded.lower_ids, types, lemmas))
        elif kind == "tags":
            inputs.append(split.context_tags.padded(contexts, lengths["context"], part))
        else:
            ids = encoded.character_ids if kind == "characters" else encoded.token_ids
            values = ids[of_text]
            inputs.append(values * inside.reshape(inside.shape + (1,) * (values.ndim - 2)))
    return tuple(inputs)


def _matches(lower_ids, types, lemmas):
    """What `models.texts` has of matches, float32 (rows, context, 4).

    `types` are those of context and question with where tokens are, `lemmas` their lemmas' ids.
    """
    (contexts, are_tokens), (questions, are_asked) = types["context"], types["question"]
    matches = np.zeros((*contexts.shape, 4), np.float32)
    for row, of_row in enumerate(matches):
        c, q = contexts[row][are_tokens[row]], questions[row][are_asked[row]]
        lower, length = lower_ids[c], len(c)
        of_row[:length, 0] = np.isin(c, q)
        of_row[:length, 1] = np.isin(lower, lower_ids[q])
        of_row[:length, 2] = np.isin(lemmas[0][row][:length], lemmas[1][row][: len(q)])
        _, places, counts = np.unique(lower, return_inverse=True, return_counts=True)
        of_row[:length, 3] = counts[places] / length
    return matches


def _types(source, rows, length, part):
    """Type ids of parts of texts, (rows, length), and which of these places have a token."""
    inside = np.arange(length) < (part[1] - part[0])[:, None]
    return source.padded(rows, length, part), inside


def _signature(names, batch=None, lengths=None):
    lengths = lengths or {"context": None, "question": None}
    return tuple(
        tf.TensorSpec(
            (batch, lengths[name.partition("_")[0]], *texts.INPUTS[name].axes),
            texts.INPUTS[name].dtype,
        )
        for name in names
    )


def test_batches(data: Data, batch_size: int) -> tf.data.Dataset:
    """Every test question, shortest contexts first, nothing cut off; shared out over replicas.

    Returns:
      A distributed data set of the network's inputs, in batches of at most `batch_size`.
    """
    encoded, strategy, names = data.splits, data.placement.strategy, _read_by(data.recipe)
    seen = windows.build(encoded.test, encoded.form)

    def of_worker(context):
        def batches():
            for rows, lengths in _test_batches(seen, encoded, strategy, batch_size):
                for own in _share(rows, strategy, context):
                    yield _inputs(names, encoded, encoded.test, seen.rows(own), lengths)

        return (
            tf.data.Dataset.from_generator(batches, output_signature=_signature(names))
            .prefetch(2)
            .with_options(without_autotune())
        )

    return data.placement.distribute(of_worker)


def _test_batches(
    seen: Windows, encoded: Encoded, strategy: tf.distribute.Strategy, batch_size: int
) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Yields indices of windows, and tokens of a context and of a question, per batch."""
    replicas = strategy.num_replicas_in_sync
    lengths = seen.lengths()
    question_lengths = windows.question_lengths(encoded.test, encoded.form)[seen.questions]
    order = np.argsort(lengths, kind="stable")
    while len(order):
        size = min(batch_size, MOST_QUESTIONS_PER_REPLICA * replicas)
        while size > replicas and lengths[order[:size]].max() * size > MOST_CONTEXT_TOKENS:
            size = max(size // 2 // replicas, 1) * replicas
        rows, order = np.resize(order[:size], size), order[size:]
        longest = lengths[rows].max(), question_lengths[rows].max()
        yield rows, {"context": int(longest[0]), "question": int(longest[1])}


def collect(data: Data, outputs: list[np.ndarray], batch_size: int) -> spans.Answers:
    """The test's answers in the questions' own order, from logits (batch, 2, context) by batch."""
    encoded = data.splits
    seen = windows.build(encoded.test, encoded.form)
    merged = Merged(seen, encoded.form.most_answer_tokens)
    batches = _test_batches(seen, encoded, data.placement.strategy, batch_size)
    for (rows, _), logits in zip(batches, outputs, strict=True):
        merged.add(rows, logits)
    return spans.answers(encoded, merged.spans)


class SingleQuestions(Sequence[Example]):
    """The network's inputs for each test question alone, in their order.

    Nothing is padded, but where a question has several windows; these are its batch.

    Args:
      encoded: whose test it is.
      recipe: of the network.
    """

    def __init__(self, encoded: Encoded, recipe: Recipe):
        self._encoded, self._names = encoded, _read_by(recipe)
        self._windows = windows.build(encoded.test, encoded.form)
        self._lengths = windows.question_lengths(encoded.test, encoded.form)

    def __len__(self):
        return len(self._encoded.test.context_of_question)

    def __getitem__(self, index: Any) -> Any:  # an Example, or a list of them
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        row = range(len(self))[index]
        own = self._windows.rows(self._windows.find(row))
        lengths = {"context": int(own.lengths().max()), "question": int(self._lengths[row])}
        return _inputs(self._names, self._encoded, self._encoded.test, own, lengths)


def join(outputs: Iterable[np.ndarray], encoded: Encoded) -> spans.Answers:
    """The test's answers from the logits (windows, 2, context) of each question alone."""
    seen = windows.build(encoded.test, encoded.form)
    merged = Merged(seen, encoded.form.most_answer_tokens)
    for question, logits in enumerate(outputs):
        merged.add(seen.find(question), logits)
    return spans.answers(encoded, merged.spans)
