"""Batches of questions, bucketed by the length of their contexts.

Reproducibility: an epoch's order is drawn at its start from (seed, epoch), for the global batch,
and then split over the replicas. So step i of epoch e has the same questions under every strategy,
and after every restart. A network gets the inputs that its family reads; `models.texts` has their
names and shapes.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.dataset import Data, Example
from dawnbench_tf.data.placement import own_replicas, without_autotune
from dawnbench_tf.data.questions import features, spans, windows
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.windows import Merged, Windows
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

MOST_QUESTIONS_PER_REPLICA = 64  # largest test batch of a replica
# Limit of questions x longest context in a global test batch of more questions than replicas.
MOST_CONTEXT_TOKENS = 24_000


def steps_per_epoch(data: Data) -> int:
    """Returns the number of steps in an epoch: the sum of ceil(questions / batch) over buckets."""
    encoded, recipe = data.splits, data.recipe
    buckets = _buckets(_training_windows(encoded, recipe), encoded, recipe)
    return sum(-(-len(rows) // recipe.batch_size) for rows in buckets)


def _training_windows(encoded: Encoded, recipe: Recipe) -> Windows:
    """Returns the training windows; contexts are cut at the last bucket's boundary, as in the seed.

    The windows whose questions are dropped are still among them: see `_buckets`.
    """
    whole = windows.build(encoded.train, recipe.data)
    longest = recipe.data.bucket_boundaries[-1]
    return whole._replace(pasts=np.minimum(whole.pasts, whole.firsts + longest))


def _buckets(trained: Windows, encoded: Encoded, recipe: Recipe) -> list[np.ndarray]:
    """Returns the indices of the windows that are trained on, for each bucket.

    A window is dropped if its question is too long or the first right answer is not inside it.
    """
    split, lengths = encoded.train, trained.lengths()
    fits = (split.questions.lengths() <= recipe.data.most_question_tokens)[trained.questions]
    answers = _first_spans(split)[trained.questions]
    fits &= (answers[:, 0] >= trained.firsts) & (answers[:, 1] < trained.pasts)
    # Bucket i has the contexts of edges[i] + 1 to edges[i + 1] tokens.
    edges = (0, *recipe.data.bucket_boundaries)
    buckets = [
        np.flatnonzero(fits & (lengths > low) & (lengths <= high)) for low, high in pairwise(edges)
    ]
    if not sum(map(len, buckets)):
        refuse(
            "bucket_boundaries",
            recipe.data.bucket_boundaries,
            f"no passage fits; they have {lengths.min()} to {lengths.max()} words",
        )
    return buckets


def _first_spans(split: EncodedSplit) -> np.ndarray:
    """Returns first and last token of each question's first right answer, (questions, 2)."""
    return split.spans.values[split.spans.bounds[:-1]]


def training_batches(data: Data, first_epoch: int = 0) -> tf.data.Dataset:
    """Returns the distributed training batches of the epochs from `first_epoch` on.

    Contexts are padded to their bucket's boundary. Questions are padded to the longest one in the
    batch; with one bucket, to the longest of all, so that shapes are static. The last batch of a
    bucket is completed with the first questions of the bucket's order.

    Returns:
      A distributed data set of the network's inputs, and answer spans int32 (batch, 2).
    """
    strategy = data.placement.strategy
    epochs = range(first_epoch, math.ceil(data.recipe.epochs))

    def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        dataset = _batches(data, epochs, lambda rows: _share(rows, strategy, context))
        return data.placement.count_waits(dataset.prefetch(4)).with_options(without_autotune())

    return data.placement.distribute(make_pipeline)


def epoch_batches(data: Data, number: int) -> tf.data.Dataset:
    """Returns the global batches of epoch `number`: inputs, answer spans int32 (batch, 2)."""
    batches = _batches(data, range(number, number + 1), lambda rows: [rows])
    return batches.prefetch(2).with_options(without_autotune())


def _batches(
    data: Data, epochs: range, share: Callable[[np.ndarray], list[np.ndarray]]
) -> tf.data.Dataset:
    """Returns the batches of some epochs.

    `share` is a function from a global batch's windows to this worker's parts, one for each
    replica; each part becomes a batch.
    """
    encoded, recipe, names = data.splits, data.recipe, features.input_names(data.recipe)
    boundaries = recipe.data.bucket_boundaries
    trained = _training_windows(encoded, recipe)
    buckets = _buckets(trained, encoded, recipe)
    question_lengths = np.minimum(
        encoded.train.questions.lengths(), recipe.data.most_question_tokens
    )
    # Targets count tokens from the window's first.
    targets = _first_spans(encoded.train)[trained.questions] - trained.firsts[:, None]
    static: dict[str, int | None] = {"context": None, "question": None}
    if len(boundaries) == 1:  # static shapes, which a TPU needs
        static = {"context": boundaries[0], "question": int(question_lengths.max())}

    def batches() -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
        for epoch in epochs:
            for length, rows in _epoch(buckets, recipe, epoch):
                longest = int(question_lengths[trained.questions[rows]].max())
                lengths = {"context": length, "question": static["question"] or longest}
                for part in share(rows):
                    inputs = features.make_inputs(
                        names, encoded, encoded.train, trained.take(part), lengths
                    )
                    yield inputs, targets[part]

    size = len(share(np.arange(recipe.batch_size))[0])
    signature = features.signature(names, size, static), tf.TensorSpec((size, 2), tf.int32)
    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def _epoch(buckets: list[np.ndarray], recipe: Recipe, epoch: int) -> list[tuple[int, np.ndarray]]:
    """Returns an epoch's global batches in order: (padded context length, window indices)."""
    random = np.random.default_rng([recipe.seed, epoch])
    batches = []
    for length, rows in zip(recipe.data.bucket_boundaries, buckets, strict=True):
        count = -(-len(rows) // recipe.batch_size)
        if count:
            # np.resize repeats the order's head, which completes the last batch.
            order = np.resize(random.permutation(rows), count * recipe.batch_size)
            batches += [(length, batch) for batch in np.split(order, count)]
    return [batches[i] for i in random.permutation(len(batches))]


def _share(
    rows: np.ndarray, strategy: tf.distribute.Strategy, context: tf.distribute.InputContext
) -> list[np.ndarray]:
    """Returns this worker's part of a global batch: window indices for each of its replicas."""
    return np.split(rows, strategy.num_replicas_in_sync)[own_replicas(strategy, context)]


def test_batches(data: Data, batch_size: int) -> tf.data.Dataset:
    """Returns distributed batches of all test questions, shortest contexts first, none cut."""
    encoded, strategy = data.splits, data.placement.strategy
    names = features.input_names(data.recipe)
    tested = windows.build(encoded.test, encoded.form)

    def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        def batches() -> Iterator[tuple[np.ndarray, ...]]:
            for rows, lengths in _test_batches(tested, encoded, strategy, batch_size):
                for part in _share(rows, strategy, context):
                    yield features.make_inputs(
                        names, encoded, encoded.test, tested.take(part), lengths
                    )

        return (
            tf.data.Dataset.from_generator(batches, output_signature=features.signature(names))
            .prefetch(2)
            .with_options(without_autotune())
        )

    return data.placement.distribute(make_pipeline)


def _test_batches(
    tested: Windows, encoded: Encoded, strategy: tf.distribute.Strategy, batch_size: int
) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Yields each global batch's window indices, and its lengths of "context" and "question".

    The order depends on the arguments alone, so `collect` can match logits with windows.
    """
    replicas = strategy.num_replicas_in_sync
    lengths = tested.lengths()
    question_lengths = windows.question_lengths(encoded.test, encoded.form)[tested.questions]
    order = np.argsort(lengths, kind="stable")
    while len(order):
        # Halves the batch until its padded contexts fit; a multiple of the number of replicas.
        size = min(batch_size, MOST_QUESTIONS_PER_REPLICA * replicas)
        while size > replicas and lengths[order[:size]].max() * size > MOST_CONTEXT_TOKENS:
            size = max(size // 2 // replicas, 1) * replicas
        rows, order = np.resize(order[:size], size), order[size:]
        longest = lengths[rows].max(), question_lengths[rows].max()
        yield rows, {"context": int(longest[0]), "question": int(longest[1])}


def collect(data: Data, outputs: list[np.ndarray], batch_size: int) -> spans.Answers:
    """Returns all answers in the questions' order, from logits (batch, 2, context) of batches."""
    encoded = data.splits
    tested = windows.build(encoded.test, encoded.form)
    merged = Merged(tested, encoded.form.most_answer_tokens)
    batches = _test_batches(tested, encoded, data.placement.strategy, batch_size)
    for (rows, _), logits in zip(batches, outputs, strict=True):
        merged.add(rows, logits)
    return spans.answers(encoded, merged.spans)


class SingleQuestions(Sequence[Example]):
    """A sequence of the network's inputs for single test questions.

    The batch axis has the windows of the question, usually one. Only a question with several
    windows is padded.

    Args:
      encoded: data set with the test questions.
      recipe: recipe of the network.
    """

    def __init__(self, encoded: Encoded, recipe: Recipe):
        self._encoded, self._names = encoded, features.input_names(recipe)
        self._windows = windows.build(encoded.test, encoded.form)
        self._lengths = windows.question_lengths(encoded.test, encoded.form)

    def __len__(self) -> int:
        return len(self._encoded.test.context_of_question)

    def __getitem__(self, index: Any) -> Any:  # an Example, or a list of them
        if isinstance(index, slice):
            return [self[question] for question in range(len(self))[index]]
        row = range(len(self))[index]
        own = self._windows.take(self._windows.find(row))
        lengths = {"context": int(own.lengths().max()), "question": int(self._lengths[row])}
        return features.make_inputs(self._names, self._encoded, self._encoded.test, own, lengths)


def join(outputs: Iterable[np.ndarray], encoded: Encoded) -> spans.Answers:
    """Returns the answers to all test questions, from logits (windows, 2, context) of each."""
    tested = windows.build(encoded.test, encoded.form)
    merged = Merged(tested, encoded.form.most_answer_tokens)
    for question, logits in enumerate(outputs):
        merged.add(tested.find(question), logits)
    return spans.answers(encoded, merged.spans)
