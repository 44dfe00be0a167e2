"""`QuestionData`: the data set interface for questions on contexts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, models
from dawnbench_tf.data import pretrained, qa_mini
from dawnbench_tf.data.dataset import Example, Placement
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import division
from dawnbench_tf.data.questions import pipeline, scores, squad_json, vocabulary
from dawnbench_tf.data.questions.encoding import Encoded
from dawnbench_tf.data.questions.spans import Answers, predictions
from dawnbench_tf.data.questions.squad_json import Corpus
from dawnbench_tf.data.questions.vocabulary import FIRST, Vocabulary
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.models import networks
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task

SAMPLE = 40  # test questions that runtimes are compared on
_SIGNS = ("cls", "sep")


@dataclass(frozen=True)
class QuestionData:
    """A recipe's data set of questions on contexts: see `dataset.Data`, which documents it."""

    recipe: Recipe
    splits: Encoded
    placement: Placement
    answers_file = "predictions.json"
    fixed_shape = False
    selects_views = False

    @property
    def origin(self) -> Origin:
        return self.splits.origin

    @cached_property
    def steps_per_epoch(self) -> int:
        return pipeline.steps_per_epoch(self)

    @property
    def epoch_steps(self) -> list[int]:
        return [self.steps_per_epoch]

    def in_epoch(self, epoch: int) -> "QuestionData":
        return self

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        return pipeline.epoch_batches(self, epoch)

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        return pipeline.training_batches(self, first_epoch)

    def on_devices(self) -> None:
        pass  # batches of `training_batches` already are (inputs, targets)

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        return pipeline.test_batches(self, batch_size)

    def prepare(self, batch: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
        return batch

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> Answers:
        return pipeline.collect(self, outputs, batch_size)

    def examples(self) -> Sequence[Example]:
        return pipeline.SingleQuestions(self.splits, self.recipe)

    def join(self, outputs: Iterable[np.ndarray]) -> Answers:
        return pipeline.join(outputs, self.splits)

    def score(self, answers: Answers) -> dict[str, float]:
        return scores.squad(answers, self.splits)

    def first(self, count: int) -> "QuestionData":
        return replace(self, splits=_first(self.splits, count))

    def training_as_test(self, count: int) -> "QuestionData":
        # `test_corpus` remains that of the test, so the answers are not for scores.
        return replace(self, splits=_first(self.splits._replace(test=self.splits.train), count))

    def sample(self) -> tuple[slice, "QuestionData"]:
        return slice(SAMPLE), self.first(SAMPLE)

    def unsure(self, answers: Answers) -> tuple[np.ndarray, "QuestionData"]:
        raise ValueError(f"{self.recipe.name} has no test-time augmentation")

    def held_out(self) -> "QuestionData":
        raise ValueError(f"{self.recipe.name} holds no examples out")

    def describe_damage(self) -> str:
        return ""  # questions are decoded when they are loaded

    def network(self, precision: str = "") -> tf.keras.Model:
        return network(self.recipe, self.splits.vocabulary, precision)

    def adapt(self, model: tf.keras.Model) -> None:
        encoded = self.splits
        if encoded.pretrained:
            pretrained.load(model, encoded.pretrained, self.recipe.network.pretrained)
        if encoded.vocabulary.pieces:
            return
        words = model.get_layer("words")
        words.set_fixed(encoded.vectors)
        words.set_last_trained(encoded.tuned)

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        return model  # questions have no test-time augmentation

    def save(self, folder: Path) -> None:
        vocabulary.save(self.splits.vocabulary, folder)

    def check_saved(self, folder: Path) -> None:
        if vocabulary.load(folder) != self.splits.vocabulary:
            raise Refusal(f"--data_dir: holds other words than {folder} was trained on")

    def save_answers(self, answers: Answers, folder: Path) -> None:
        text = json.dumps(predictions(answers, self.splits)) + "\n"
        files.write_whole(folder / self.answers_file, text)


DATA = QuestionData


def _first(encoded: Encoded, count: int) -> Encoded:
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
    select = partial(select_part, recipe) if recipe.train_examples else None
    network = {} if recipe.task_row.embedded else {"network": recipe.network}
    return {"form": recipe.data, "select": select, **network}


def select_part(recipe: Recipe, corpus: Corpus) -> Corpus:
    """Returns the training questions that a recipe with `train_examples` uses."""
    count = len(corpus.questions)
    chosen = division.choose(count, recipe.train_examples, recipe.seed)
    return squad_json.select_questions(corpus, chosen)


def complete(recipe: Recipe, encoded: Encoded) -> Recipe:
    """Returns the recipe with its task's numbers of questions, where they are 0, from the data."""
    task = recipe.whole_task
    train = task.train_examples or encoded.whole or len(encoded.train.context_of_question)
    test = task.test_examples or len(encoded.test.context_of_question)
    return recipe.with_values(task=replace(task, train_examples=train, test_examples=test))


def take_part(recipe: Recipe, encoded: Encoded) -> Encoded:
    """Returns the data set unchanged: questions are selected before they are encoded."""
    return encoded


def check(task: Task, encoded: Encoded) -> None:
    """Raises Refusal if a split has another number of questions than the task, where it says."""
    for name, split, questions in (
        ("train", encoded.train, task.train_examples),
        ("test", encoded.test, task.test_examples),
    ):
        count = len(split.context_of_question)
        if questions and count != questions:
            raise Refusal(f"{task.name} {name}: should hold {questions} questions, found {count}")


def synthetic(recipe: Recipe) -> Encoded:
    """Returns generated questions of `qa_mini`, with the task's numbers of questions."""
    if recipe.synthetic == "jpeg":
        refuse("synthetic", "jpeg", f"{recipe.task_row.name} has questions; decoded would run")
    task = recipe.task_row
    counts = task.train_examples, task.test_examples
    return qa_mini.generate(*counts, recipe.seed, recipe.data)


def network(recipe: Recipe, vocab: Vocabulary, precision: str = "") -> tf.keras.Model:
    """Builds the recipe's network for a vocabulary, with untrained weights."""
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
    """Builds the network of a run with untrained weights, for the vocabulary in its folder."""
    return network(recipe, vocabulary.load(folder), precision)
