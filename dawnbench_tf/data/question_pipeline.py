"""Batches of questions on passages of like length; the same interface as `image_pipeline`.

As there, all that is random about an epoch is drawn at its start from (seed, epoch) for the global
batch and then shared out.
"""

import numpy as np
import tensorflow as tf

from dawnbench_tf import spans
from dawnbench_tf.data.reading import Reading
from dawnbench_tf.data.vocabulary import WORD_CHARACTERS
from dawnbench_tf.settings import refuse

MOST_QUESTION_WORDS = 30  # in training: longer questions are left out, as the seed did
WORDS_AT_A_TIME = (
    24_000  # of passages in one batch of the test, at most (but for the batch's least)
)


def steps(splits: Reading, recipe) -> int:
    """Steps in which each question that is trained on is seen at least once."""
    return sum(-(-len(rows) // recipe.batch_size) for rows in _buckets(splits, recipe))


def _buckets(splits, recipe):
    """Numbers of the questions that are trained on, by length of their passage."""
    train = splits.train
    length = train.contexts.lengths()[train.passages]
    fits = train.questions.lengths() <= MOST_QUESTION_WORDS
    first = train.spans.values[train.spans.bounds[:-1]]  # each question's first answer
    fits &= first[:, 0] >= 0
    edges = (0, *recipe.bucket_boundaries)
    found = [
        np.flatnonzero(fits & (length > low) & (length <= high))
        for low, high in zip(edges, edges[1:], strict=False)
    ]
    if not sum(map(len, found)):
        written = ",".join(map(str, recipe.bucket_boundaries))
        refuse(
            "bucket_boundaries",
            written,
            f"no passage fits; they have {length.min()} to {length.max()} words",
        )
    return found


def train(splits: Reading, recipe, strategy, data_format, first_epoch: int = 0):
    """Training batches from `first_epoch` on, shared out over replicas.

    Each is ((words, characters of passages; words, characters of questions), ends (batch, 2)).
    Passages are filled up to their bucket's boundary; a bucket's last batch with questions from the
    head of its own order.
    """
    buckets = _buckets(splits, recipe)
    asked = min(MOST_QUESTION_WORDS, int(splits.train.questions.lengths().max()))
    first = splits.train.spans.values[splits.train.spans.bounds[:-1]]
    boundaries = recipe.bucket_boundaries
    static = boundaries[0] if len(boundaries) == 1 else None  # one bucket: what a TPU needs

    def of_worker(context):
        def batches():
            for epoch in range(first_epoch, recipe.epochs):
                for length, rows in _epoch(buckets, recipe, epoch):
                    for mine in _share(rows, strategy, context):
                        yield _inputs(splits, splits.train, mine, length, asked), first[mine]

        share = recipe.batch_size // strategy.num_replicas_in_sync
        signature = (_signature(share, static, asked), tf.TensorSpec((share, 2), tf.int32))
        return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(4)

    return strategy.distribute_datasets_from_function(of_worker)


def _epoch(buckets, recipe, epoch):
    """An epoch's global batches, in their order: length to fill up to, numbers of questions."""
    random = np.random.default_rng([recipe.seed, epoch])
    batches = []
    for length, rows in zip(recipe.bucket_boundaries, buckets, strict=True):
        count = -(-len(rows) // recipe.batch_size)
        if count:
            order = np.resize(random.permutation(rows), count * recipe.batch_size)
            batches += [(length, batch) for batch in np.split(order, count)]
    return [batches[i] for i in random.permutation(len(batches))]


def _share(rows, strategy, context):
    """This worker's part of a global batch: a row of question numbers for each of its replicas."""
    replicas = strategy.num_replicas_in_sync
    mine = replicas // context.num_input_pipelines
    first = context.input_pipeline_id * mine
    return np.split(rows, replicas)[first : first + mine]


def _inputs(splits, split, rows, length, asked):
    """The model's four inputs for questions by number."""
    contexts = split.contexts.padded(split.passages[rows], length)
    questions = split.questions.padded(rows, asked)
    inside = np.arange(length) < split.contexts.lengths()[split.passages[rows]][:, None]
    return (
        *_numbers(splits, contexts, inside),
        *_numbers(splits, questions, np.arange(asked) < split.questions.lengths()[rows][:, None]),
    )


def _numbers(splits, words, inside):
    return splits.word_numbers[words] * inside, splits.letters[words] * inside[..., None]


def _signature(batch=None, length=None, asked=None):
    return tuple(
        tf.TensorSpec((batch, words, *rest), tf.int32)
        for words in (length, asked)
        for rest in ((), (WORD_CHARACTERS,))
    )


def test(splits: Reading, recipe, strategy, data_format, batch_size: int):
    """Every test question, shortest passages first, nothing cut off; shared out over replicas."""

    def of_worker(context):
        def batches():
            for rows, length, asked in _test_batches(splits.test, strategy, batch_size):
                for mine in _share(rows, strategy, context):
                    yield _inputs(splits, splits.test, mine, length, asked)

        return tf.data.Dataset.from_generator(batches, output_signature=_signature()).prefetch(2)

    return strategy.distribute_datasets_from_function(of_worker)


def _test_batches(split, strategy, batch_size):
    """Numbers of questions, words of the longest passage, of the longest question, by batch."""
    replicas = strategy.num_replicas_in_sync
    lengths, asked = split.contexts.lengths()[split.passages], split.questions.lengths()
    order = np.argsort(lengths, kind="stable")
    while len(order):
        size = min(batch_size, 64 * replicas)
        while size > replicas and lengths[order[:size]].max() * size > WORDS_AT_A_TIME:
            size = max(size // 2 // replicas, 1) * replicas
        rows, order = np.resize(order[:size], size), order[size:]
        yield rows, int(lengths[rows].max()), int(asked[rows].max())


def collect(outputs, splits: Reading, strategy, batch_size: int) -> spans.Answers:
    """The test's answers in the questions' own order, from logits batch by batch."""
    ends = np.zeros((len(splits.test.passages), 2), np.int32)
    for (rows, _, _), logits in zip(
        _test_batches(splits.test, strategy, batch_size), outputs, strict=True
    ):
        ends[rows] = spans.best(logits)
    return _answers(splits, ends)


def _answers(splits, ends):
    """The text from the first to the last word of each test question's answer."""
    split, passages = splits.test, splits.test_passages
    places, first = split.places, split.places.bounds[split.passages]
    begins, finals = places.values[first + ends[:, 0], 0], places.values[first + ends[:, 1], 1]
    texts = [
        passages.contexts[question.passage][begin:end]
        for question, begin, end in zip(passages.questions, begins, finals, strict=True)
    ]
    return spans.Answers(texts, ends)


def one_by_one(splits: Reading, recipe) -> list[tuple[np.ndarray, ...]]:
    """The model's inputs for each test question alone, in their order, nothing filled up."""
    split = splits.test
    lengths, asked = split.contexts.lengths()[split.passages], split.questions.lengths()
    return [
        _inputs(splits, split, np.array([row]), int(lengths[row]), int(asked[row]))
        for row in range(len(split.passages))
    ]


def together(outputs: list[np.ndarray], splits: Reading) -> spans.Answers:
    """The test's answers from the logits of each question alone."""
    return _answers(splits, np.concatenate([spans.best(logits) for logits in outputs]))


def first(splits: Reading, count: int) -> Reading:
    """The data set with its first test questions only."""
    test, passages = splits.test, splits.test_passages
    test = test._replace(
        questions=test.questions._replace(bounds=test.questions.bounds[: count + 1]),
        spans=test.spans._replace(bounds=test.spans.bounds[: count + 1]),
        passages=test.passages[:count],
    )
    passages = passages._replace(questions=passages.questions[:count])
    return splits._replace(test=test, test_passages=passages)


def references(splits: Reading) -> Reading:
    """What the test's answers are held against."""
    return splits
