"""Questions on contexts as training and inference use them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, models
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.dataset import Example, Placement
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.questions import pipeline, scores, vocabulary
from dawnbench_tf.data.questions.encoding import Encoded
from dawnbench_tf.data.questions.spans import Answers, predictions
from dawnbench_tf.data.questions.vocabulary import FIRST, Vocabulary
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.models import networks
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.tasks import Task

_SIGNS = ("cls", "sep")


@dataclass(frozen=True)
class QuestionData:
    """Questions on contexts and their answers: see `dataset.Data`."""

    recipe: Recipe
    splits: Encoded
    placement: Placement
    fixed_shape = False
    sample_size = 40

    @property
    def origin(self) -> Origin:
        """Where the examples came from."""
        return self.splits.origin

    @cached_property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        return pipeline.steps_per_epoch(self)

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        """Returns an epoch's batches, (inputs, targets), for any training loop."""
        return pipeline.epoch_batches(self, epoch)

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        """Returns the batches of all epochs from `first_epoch` on, distributed over replicas."""
        return pipeline.training_batches(self, first_epoch)

    def on_devices(self) -> None:
        """Batches are the network's inputs and targets as they come."""

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        """Returns the test's batches, distributed; the last one's end may be padding."""
        return pipeline.test_batches(self, batch_size)

    def prepare(self, batch: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
        """Returns the network's inputs of a batch of `test_batches`."""
        return batch

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> Answers:
        """Returns the answer to each test example, from the logits of each of `test_batches`."""
        return pipeline.collect(self, outputs, batch_size)

    def examples(self) -> Sequence[Example]:
        """Returns the network's inputs for each test example alone, in a batch of 1."""
        return pipeline.SingleQuestions(self.splits, self.recipe)

    def join(self, outputs: Iterable[np.ndarray]) -> Answers:
        """Returns the answer to each test example, from the logits of each of `examples`."""
        return pipeline.join(outputs, self.splits)

    def score(self, answers: Answers) -> dict[str, float]:
        """Returns `{column: score}` of what `collect` or `join` gave. All examples count."""
        return scores.squad(answers, self.splits)

    def first(self, count: int) -> "QuestionData":
        """Returns the data set with its first `count` test examples only."""
        return replace(self, splits=_first(self.splits, count))

    def training_as_test(self, count: int) -> "QuestionData":
        """Without the text itself: its answers are not for scores."""
        return replace(self, splits=_first(self.splits._replace(test=self.splits.train), count))

    def held_out(self) -> "QuestionData":
        """Returns the data set with the training examples that are held out as its test."""
        raise ValueError(f"{self.recipe.name} holds no examples out")

    def network(self, precision: str = "") -> tf.keras.Model:
        """Builds the recipe's network, untrained: to be trained, or to answer in a precision."""
        return network(self.recipe, self.splits.vocabulary, precision)

    def adapt(self, model: tf.keras.Model) -> None:
        """Gives the network what is published of it.

        Its word vectors, those that stay and those that others start from; or all weights of a
        BERT.
        """
        encoded = self.splits
        if encoded.pretrained:
            try:
                models.load_published(model, encoded.pretrained)
            except (OSError, ValueError) as error:
                why = one_line(error, 300).replace("`file`", str(encoded.pretrained))
                raise Refusal(f"--pretrained={self.recipe.data.pretrained}: {why}") from None
        if encoded.vocabulary.pieces:
            return
        words = model.get_layer("words")
        words.set_fixed(encoded.vectors)
        words.set_last_trained(encoded.tuned)

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        """Returns the network as the test sees it, behind the recipe's test-time views."""
        return model

    def save(self, folder: Path) -> None:
        """Writes what inference needs besides recipe and weights."""
        vocabulary.save(self.splits.vocabulary, folder)

    def check_saved(self, folder: Path) -> None:
        """Raises Refusal if `save` wrote another data set's."""
        if vocabulary.load(folder) != self.splits.vocabulary:
            raise Refusal(f"--data_dir: holds other words than {folder} was trained on")

    def save_answers(self, answers: Answers, folder: Path) -> None:
        """Writes them as SQuAD's official evaluator takes them, to predictions.json."""
        text = json.dumps(predictions(answers, self.splits)) + "\n"
        files.write_whole(folder / "predictions.json", text)


DATA = QuestionData


def _first(encoded, count):
    test, corpus = encoded.test, encoded.test_corpus
    test = test._replace(
        questions=test.questions._replace(bounds=test.questions.bounds[: count + 1]),
        spans=test.spans._replace(bounds=test.spans.bounds[: count + 1]),
        context_of_question=test.context_of_question[:count],
    )
    corpus = corpus._replace(questions=corpus.questions[:count])
    return encoded._replace(test=test, test_corpus=corpus)


def load_options(recipe: Recipe) -> dict[str, Any]:
    """Returns the arguments of a task's `load` that the recipe sets."""
    return {"form": recipe.data}


def check(task: Task, encoded: Encoded) -> None:
    """Raises Refusal if there are not as many questions as the task has."""
    for name, split, questions in (
        ("train", encoded.train, task.train_examples),
        ("test", encoded.test, task.test_examples),
    ):
        count = len(split.context_of_question)
        if count != questions:
            raise Refusal(f"{task.name} {name}: should hold {questions} questions, found {count}")


def synthetic(recipe: Recipe) -> Encoded:
    """Returns generated questions of `qa_mini`, as many as the task has."""
    if recipe.synthetic == "jpeg":
        refuse("synthetic", "jpeg", f"{recipe.task} has questions; decoded would run")
    task = recipe.task_row
    counts = task.train_examples, task.test_examples
    return qa_mini.generate(*counts, recipe.seed, recipe.data)


def network(recipe: Recipe, vocab: Vocabulary, precision: str = "") -> tf.keras.Model:
    """The recipe's network for a vocabulary, untrained; by default in the precision of training."""
    count, variant = FIRST + len(vocab.trained), models.get(recipe.model)
    if variant.wordpieces:
        signs = {f"{name}_id": FIRST + vocab.trained.index(f"[{name.upper()}]") for name in _SIGNS}
        sizes: dict[str, Any] = {"pieces": count, **signs}
    else:
        sizes = {"trained_words": count, "fixed_words": len(vocab.fixed)}
        sizes["vector_width"] = WORD_VECTORS[recipe.data.word_vectors].width
    if "context_characters" in networks.family_of(variant).reads:
        sizes["characters"] = FIRST + len(vocab.characters)
    return models.build(recipe.model, **sizes, dtype=precision or recipe.precision)


def saved_network(
    recipe: Recipe, folder: Path, placement: Placement, precision: str, portable: bool
) -> tf.keras.Model:
    """Builds the network of a run for the vocabulary in its folder, untrained."""
    return network(recipe, vocabulary.load(folder), precision)
