"""Questions on contexts as training and inference ask for them."""

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import files, models
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.inputs import Inputs, Placement
from dawnbench_tf.data.questions import pipeline, vocabulary
from dawnbench_tf.data.questions.encoding import Encoded, TextForm
from dawnbench_tf.data.questions.spans import Answers, predictions
from dawnbench_tf.data.questions.vocabulary import FIRST, Vocabulary
from dawnbench_tf.models import networks
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.tasks import Task

_SIGNS = ("cls", "sep")


def _check(task: Task, encoded: Encoded) -> None:
    for name, split, questions in (
        ("train", encoded.train, task.train_examples),
        ("test", encoded.test, task.test_examples),
    ):
        count = len(split.context_of_question)
        if count != questions:
            raise Refusal(f"{task.name} {name}: should hold {questions} questions, found {count}")


def _synthetic(recipe: Recipe) -> Encoded:
    """The generated questions of `qa_mini`, as many as the task has."""
    if recipe.synthetic == "jpeg":
        refuse("synthetic", "jpeg", f"{recipe.task} has questions; decoded would run")
    task = recipe.task_row
    counts = task.train_examples, task.test_examples
    return qa_mini.generate(*counts, recipe.seed, TextForm.of(recipe))


def _first(encoded: Encoded, count: int) -> Encoded:
    test, corpus = encoded.test, encoded.test_corpus
    test = test._replace(
        questions=test.questions._replace(bounds=test.questions.bounds[: count + 1]),
        spans=test.spans._replace(bounds=test.spans.bounds[: count + 1]),
        context_of_question=test.context_of_question[:count],
    )
    corpus = corpus._replace(questions=corpus.questions[:count])
    return encoded._replace(test=test, test_corpus=corpus)


def _of_training(encoded: Encoded, count: int) -> Encoded:
    """Without the text itself: its answers are not for scores."""
    return _first(encoded._replace(test=encoded.train), count)


def _references(encoded: Encoded) -> Encoded:
    return encoded


def _save(encoded: Encoded, folder: Path) -> None:
    vocabulary.save(encoded.vocabulary, folder)


def _check_saved(encoded: Encoded, folder: Path) -> None:
    if vocabulary.load(folder) != encoded.vocabulary:
        raise Refusal(f"--data_dir: holds other words than {folder} was trained on")


def _save_outputs(answers: Answers, encoded: Encoded, folder: Path) -> None:
    """Writes the answers as SQuAD's official evaluator takes them."""
    text = json.dumps(predictions(answers, encoded)) + "\n"
    files.write_whole(folder / "predictions.json", text)


def network(recipe: Recipe, vocab: Vocabulary, precision: str = "") -> tf.keras.Model:
    """The recipe's network for a vocabulary, untrained; by default in the precision of training."""
    count, variant = FIRST + len(vocab.trained), models.get(recipe.model)
    if variant.wordpieces:
        signs = {f"{name}_id": FIRST + vocab.trained.index(f"[{name.upper()}]") for name in _SIGNS}
        sizes: dict[str, Any] = {"pieces": count, **signs}
    else:
        sizes = {"trained_words": count, "fixed_words": len(vocab.fixed)}
        sizes["vector_width"] = TextForm.of(recipe).published.width
    if "context_characters" in networks.family_of(variant).reads:
        sizes["characters"] = FIRST + len(vocab.characters)
    return models.build(recipe.model, **sizes, dtype=precision or recipe.precision)


def _network(
    encoded: Encoded, recipe: Recipe, placement: Placement, precision: str = ""
) -> tf.keras.Model:
    return network(recipe, encoded.vocabulary, precision)


def _adapt(model: tf.keras.Model, encoded: Encoded, recipe: Recipe, placement: Placement) -> None:
    """Gives the network what is published of it.

    Its word vectors, those that stay and those that others start from; or all weights of a BERT.
    """
    if encoded.pretrained:
        try:
            models.load_published(model, encoded.pretrained)
        except (OSError, ValueError) as error:
            why = one_line(error, 300).replace("`file`", str(encoded.pretrained))
            raise Refusal(f"--pretrained={recipe.pretrained}: {why}") from None
    if encoded.vocabulary.pieces:
        return
    words = model.get_layer("words")
    words.set_fixed(encoded.vectors)
    words.set_last_trained(encoded.tuned)


INPUTS = Inputs(
    load_options=lambda recipe: {"form": TextForm.of(recipe)},
    check=_check,
    synthetic=_synthetic,
    first=_first,
    of_training=_of_training,
    origin=lambda splits: splits.origin,
    references=_references,
    steps=pipeline.steps,
    train=pipeline.train,
    on_devices=lambda splits, recipe, placement: None,
    arrange=lambda encoded, recipe: encoded,
    test=pipeline.test,
    prepare_test=lambda recipe, placement: lambda batch: batch,
    collect=pipeline.collect,
    save=_save,
    save_outputs=_save_outputs,
    check_saved=_check_saved,
    one_by_one=pipeline.OneByOne,
    join=pipeline.join,
    fixed_shape=False,
    trial_size=40,
    network=_network,
    adapt=_adapt,
    answering=lambda model, recipe, placement: model,
)
