"""`QuestionData`: the data set interface for questions on contexts.

Batches are bucketed by the length of their contexts. Reproducibility: an epoch's order is drawn at
its start from (seed, epoch), for the global batch, and then split over the replicas. So step i of
epoch e has the same questions under every strategy, and after every restart. A network gets the
inputs that its family reads; `models.texts` has their names and shapes.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, models
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.dataset import Data, Example, start_from
from dawnbench_tf.data.placement import own_replicas, without_autotune
from dawnbench_tf.data.questions import spans, vocabulary, windows
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.spans import Answers, predictions
from dawnbench_tf.data.questions.vocabulary import FIRST
from dawnbench_tf.data.questions.windows import Merged, Windows
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.models import networks
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse

CHECKSUMS = "questions.json"
SAMPLE = 40  # test questions that runtimes are compared on
MOST_QUESTIONS_PER_REPLICA = 64  # largest test batch of a replica
# Limit of questions x longest context in a global test batch of more questions than replicas.
MOST_CONTEXT_TOKENS = 24_000
_SIGNS = ("cls", "sep")


@dataclass(frozen=True)
class QuestionData(Data):
    """A recipe's data set of questions on contexts; `dataset.Data` documents the methods."""

    splits: Encoded
    answers_file = "predictions.json"
    fixed_shape = False

    @cached_property
    def _trained(self) -> tuple[Windows, list[np.ndarray]]:
        return _training_windows(self.splits, self.recipe)

    @property
    def steps_per_epoch(self) -> int:
        return sum(-(-len(rows) // self.recipe.batch_size) for rows in self._trained[1])

    @property
    def examples_per_epoch(self) -> int:
        windows, buckets = self._trained
        return len(np.unique(windows.questions[np.concatenate(buckets)]))

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        batches = self._batches(range(epoch, epoch + 1), lambda rows: [rows])
        return batches.prefetch(2).with_options(without_autotune())

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        epochs = range(first_epoch, math.ceil(self.recipe.epochs))

        def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            dataset = self._batches(epochs, lambda rows: self._share(rows, context))
            return dataset.prefetch(4).with_options(without_autotune())

        return self.placement.distribute(make_pipeline)

    def _batches(
        self, epochs: range, share: Callable[[np.ndarray], list[np.ndarray]]
    ) -> tf.data.Dataset:
        """Returns the batches of some epochs."""
        # `share` is a function from a global batch's windows to this worker's parts, one for each
        # replica; each part becomes a batch.
        encoded, recipe = self.splits, self.recipe
        names, boundaries = windows.input_names(recipe), recipe.data.bucket_boundaries
        trained, buckets = self._trained
        question_lengths = np.minimum(
            encoded.train.questions.lengths(), recipe.data.most_question_tokens
        )
        # Targets count tokens from the window's first.
        targets = _first_spans(encoded.train)[trained.questions] - trained.firsts[:, None]
        # Contexts are padded to their bucket's boundary, questions to the longest of the batch.
        static: dict[str, int | None] = {"context": None, "question": None}
        if len(boundaries) == 1:  # static shapes, which a TPU needs
            static = {"context": boundaries[0], "question": int(question_lengths.max())}

        def batches() -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
            for epoch in epochs:
                for length, rows in _epoch(buckets, recipe, epoch):
                    longest = int(question_lengths[trained.questions[rows]].max())
                    lengths = {"context": length, "question": static["question"] or longest}
                    for part in share(rows):
                        inputs = windows.make_inputs(
                            names, encoded, encoded.train, trained.take(part), lengths
                        )
                        yield inputs, targets[part]

        size = len(share(np.arange(recipe.batch_size))[0])
        signature = windows.signature(names, size, static), tf.TensorSpec((size, 2), tf.int32)
        return tf.data.Dataset.from_generator(batches, output_signature=signature)

    def _share(self, rows: np.ndarray, context: tf.distribute.InputContext) -> list[np.ndarray]:
        """Returns this worker's part of a global batch: window indices of each of its replicas."""
        strategy = self.placement.strategy
        return np.split(rows, strategy.num_replicas_in_sync)[own_replicas(strategy, context)]

    @cached_property
    def _tested(self) -> Windows:
        return windows.build(self.splits.test, self.splits.form)

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        names, encoded = windows.input_names(self.recipe), self.splits

        def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            def batches() -> Iterator[tuple[np.ndarray, ...]]:
                for rows, lengths in self._test_rows(batch_size):
                    for part in self._share(rows, context):
                        own = self._tested.take(part)
                        yield windows.make_inputs(names, encoded, encoded.test, own, lengths)

            signature = windows.signature(names)
            dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
            return dataset.prefetch(2).with_options(without_autotune())

        return self.placement.distribute(make_pipeline)

    def _test_rows(self, batch_size: int) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
        """Yields the window indices of each global test batch, and the lengths of its texts."""
        # Shortest contexts first, none is cut. The order depends on data and `batch_size` alone, so
        # `collect` can match logits with windows.
        encoded, replicas = self.splits, self.placement.strategy.num_replicas_in_sync
        lengths, questions = self._tested.lengths(), self._tested.questions
        question_lengths = windows.question_lengths(encoded.test, encoded.form)[questions]
        order = np.argsort(lengths, kind="stable")
        while len(order):
            # Halves the batch until its padded contexts fit; a multiple of the number of replicas.
            size = min(batch_size, MOST_QUESTIONS_PER_REPLICA * replicas)
            while size > replicas and lengths[order[:size]].max() * size > MOST_CONTEXT_TOKENS:
                size = max(size // 2 // replicas, 1) * replicas
            rows, order = np.resize(order[:size], size), order[size:]
            longest = lengths[rows].max(), question_lengths[rows].max()
            yield rows, {"context": int(longest[0]), "question": int(longest[1])}

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> Answers:
        rows = [rows for rows, _ in self._test_rows(batch_size)]
        return self._merged(zip(rows, outputs, strict=True))

    def examples(self) -> Sequence[Example]:
        return SingleQuestions(self)

    def join(self, outputs: Iterable[np.ndarray]) -> Answers:
        outputs = list(outputs)
        spans.check_number(len(outputs), self.splits)
        return self._merged((self._tested.find(i), logits) for i, logits in enumerate(outputs))

    def _merged(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Answers:
        """Returns the answers to all test questions, from indices of windows and their logits."""
        merged = Merged(self._tested, self.splits.form.most_answer_tokens)
        for rows, logits in parts:
            merged.add(rows, logits)
        return spans.answers(self.splits, merged.spans)

    def score(self, answers: Answers) -> dict[str, float]:
        return spans.score(answers, self.splits)

    def training_as_test(self, count: int) -> "QuestionData":
        # `test_corpus` remains that of the test, so the answers are not for scores.
        return replace(self, splits=_first(self.splits._replace(test=self.splits.train), count))

    def sample(self, count: int = 0) -> tuple[slice, "QuestionData"]:
        return slice(count or SAMPLE), replace(self, splits=_first(self.splits, count or SAMPLE))

    def network(
        self, precision: str = "", portable: bool = False, folder: Path | None = None
    ) -> tf.keras.Model:
        vocab = vocabulary.load(folder) if folder else self.splits.vocabulary
        recipe, count = self.recipe, FIRST + len(vocab.trained)
        variant = models.get(recipe.model)
        if variant.wordpieces:
            ids = {
                f"{name}_id": FIRST + vocab.trained.index(f"[{name.upper()}]") for name in _SIGNS
            }
            sizes: dict[str, Any] = {"pieces": count, **ids}
        else:
            sizes = {"trained_words": count, "fixed_words": len(vocab.fixed)}
            sizes["vector_width"] = WORD_VECTORS[recipe.data.word_vectors].width
        if "context_characters" in networks.family_of(variant).reads:
            sizes["characters"] = FIRST + len(vocab.characters)
        return models.build(recipe.model, **sizes, dtype=precision or recipe.precision)

    def adapt(self, model: tf.keras.Model) -> None:
        encoded = self.splits
        if encoded.pretrained:
            start_from(model, encoded.pretrained, self.recipe.network.pretrained)
        if encoded.vocabulary.pieces:
            return
        words = model.get_layer("words")
        words.set_fixed(encoded.vectors)
        words.set_last_trained(encoded.tuned)

    def save(self, folder: Path) -> None:
        vocabulary.save(self.splits.vocabulary, folder)
        files.write_json(folder / CHECKSUMS, self._checksums())

    def check_saved(self, folder: Path, trains: bool = False) -> None:
        own = {"words": self.splits.vocabulary, **self._checksums(trains)}
        saved = {**own, "words": vocabulary.load(folder)}
        if (folder / CHECKSUMS).exists():  # releases to 0.2 wrote none
            saved |= files.read_json(folder / CHECKSUMS)
        self._compare(folder, saved, own)

    def _checksums(self, trains: bool = True) -> dict[str, str]:
        (texts, questions), split = self.splits.test_corpus, self.splits.train
        tested = sorted((q.id, q.text, texts[q.context], q.answers) for q in questions)
        sums = {"test questions": hashlib.sha256(json.dumps(tested).encode()).hexdigest()}
        if trains:  # by the ids of tokens
            ids = split.contexts.values, split.questions.values, split.spans.values
            content = b"".join(map(np.ndarray.tobytes, (*ids, split.context_of_question)))
            sums["training questions"] = hashlib.sha256(content).hexdigest()
        return sums

    def save_answers(self, answers: Answers, folder: Path) -> None:
        text = json.dumps(predictions(answers, self.splits)) + "\n"
        files.write_whole(folder / self.answers_file, text)


DATA = QuestionData


class SingleQuestions(Sequence[Example]):
    """A sequence of the network's inputs for single test questions.

    The batch axis has the windows of the question, usually one. Only a question with several
    windows is padded.
    """

    def __init__(self, data: QuestionData):
        self._data, self._names = data, windows.input_names(data.recipe)
        self._lengths = windows.question_lengths(data.splits.test, data.splits.form)

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: Any) -> Any:  # an Example, or a list of them
        if isinstance(index, slice):
            return [self[question] for question in range(len(self))[index]]
        row, encoded, tested = range(len(self))[index], self._data.splits, self._data._tested
        own = tested.take(tested.find(row))
        lengths = {"context": int(own.lengths().max()), "question": int(self._lengths[row])}
        return windows.make_inputs(self._names, encoded, encoded.test, own, lengths)


def _training_windows(encoded: Encoded, recipe: Recipe) -> tuple[Windows, list[np.ndarray]]:
    """Returns the windows of the training set, and the indices of those of each bucket."""
    # Contexts are cut at the last bucket's boundary, as in the seed. A window is in no bucket if
    # its question is too long or the first right answer is not inside it.
    whole = windows.build(encoded.train, recipe.data)
    longest = recipe.data.bucket_boundaries[-1]
    trained = whole._replace(pasts=np.minimum(whole.pasts, whole.firsts + longest))
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
        limits = f"has its answer in the first {longest} tokens of its passage or window"
        text = f"no question of at most {recipe.data.most_question_tokens} tokens {limits}"
        refuse("bucket_boundaries", recipe.data.bucket_boundaries, text)
    return trained, buckets


def _first_spans(split: EncodedSplit) -> np.ndarray:
    """Returns first and last token of each question's first right answer, (questions, 2)."""
    return split.spans.values[split.spans.bounds[:-1]]


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


def _first(encoded: Encoded, count: int) -> Encoded:
    test, corpus = encoded.test, encoded.test_corpus
    test = test._replace(
        questions=test.questions._replace(bounds=test.questions.bounds[: count + 1]),
        spans=test.spans._replace(bounds=test.spans.bounds[: count + 1]),
        context_of_question=test.context_of_question[:count],
    )
    corpus = corpus._replace(questions=corpus.questions[:count])
    return encoded._replace(test=test, test_corpus=corpus)


def complete(recipe: Recipe, encoded: Encoded) -> tuple[Recipe, Encoded]:
    """Returns the recipe with its task's numbers that are 0 from the data; the data, checked."""
    # Raises Refusal if a split has another number of questions than the task, where it says.
    task = recipe.whole_task
    train = task.train_examples or encoded.whole or len(encoded.train.context_of_question)
    test = task.test_examples or len(encoded.test.context_of_question)
    recipe = recipe.with_values(task=replace(task, train_examples=train, test_examples=test))
    task = recipe.task_row
    for name, split, questions in (
        ("train", encoded.train, task.train_examples),
        ("test", encoded.test, task.test_examples),
    ):
        count = len(split.context_of_question)
        if questions and count != questions:
            text = f"should hold {questions} questions, found {count}"
            hint = "the recipe with task=recipe.whole_task.without_counts() takes any number"
            raise Refusal(f"{task.name} {name}: {text}; {hint}")
    return recipe, encoded


def synthetic(recipe: Recipe) -> Encoded:
    """Returns generated questions of `qa_mini`, with the task's numbers of questions."""
    if recipe.synthetic == "jpeg":
        refuse("synthetic", "jpeg", f"{recipe.task_row.name} has questions; decoded would run")
    task = recipe.task_row
    return qa_mini.generate(task.train_examples, task.test_examples, recipe.seed, recipe.data)
