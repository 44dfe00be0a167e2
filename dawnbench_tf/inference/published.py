"""Loads published weights for inference, without a training run: network, test set, facts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf import files, recipes
from dawnbench_tf.data import dataset, imagenet, squad
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.data.images.tested import SingleImages
from dawnbench_tf.data.questions import wordpieces
from dawnbench_tf.inference.preprocessing import PREPROCESSINGS, prepare
from dawnbench_tf.inference.serving import CALIBRATION, Served, Serving
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse
from dawnbench_tf.tasks import TASKS

_HDF5 = b"\x89HDF"


def load(model: str, weights: Path, task: str, data_dir: str, preprocessing: str) -> Serving:
    """Loads a model of the catalogue with published weights, and the test set of a task."""
    # `weights`: see `models.load_published`; a BERT's has vocab.txt beside it. `data_dir`:
    # ImageNet's validation images suffice, SQuAD's dev set. `preprocessing`: "" is by the form of
    # the file.
    if TASKS[task].inputs == "questions":
        return _load_reader(model, weights, task, data_dir)
    return _load_classifier(model, weights, task, data_dir, preprocessing)


def _load_classifier(model: str, weights: Path, task: str, data_dir: str, name: str) -> Serving:
    if not name:  # the preprocessing is that of the file's likely publisher
        name = "akamaster"
        if TASKS[task].jpegs:
            with open(weights, "rb") as file:
                name = "keras_caffe" if file.read(4) == _HDF5 else "torchvision"
            name = "keras_tf" if name == "keras_caffe" and "v2" in model else name
    row = PREPROCESSINGS[name]
    recipe = recipes.changed(Recipe(name=f"{task}/{model}", task=task, model=model, batch_size=1))
    build = _builder(recipe, weights, dataset.from_splits(recipe, None).network)
    build("float32")  # raises for weights of another model before the data set is loaded
    if task == "imagenet":
        test, origin = imagenet.load_test(recipe, data_dir)
        data = dataset.from_splits(recipe, Splits(test, test, origin))
    else:
        data = dataset.open(recipe, data_dir)
    splits = data.splits
    # Labels are not used. ImageNet's training images may not be there: test images serve.
    source = splits.test if splits.train is splits.test else splits.train
    examples, calibration = (
        SingleImages(partial(prepare, split, row, recipe.test_side), range(len(split.labels)))
        for split in (splits.test, source)
    )
    chosen, _ = source.spaced(CALIBRATION)
    served = Served(build, examples, calibration[chosen], fixed_shape=True)
    facts = _facts(data, weights)
    facts["preprocessing"] = {"name": name, **row.facts(recipe.test_side, TASKS[task].jpegs)}
    if source is splits.test:
        facts["calibration"] = f"{len(served.calibration)} test images, without labels"
    return Serving(data, served, facts)


def _builder(
    recipe: Recipe, weights: Path, build: Callable[[str], tf.keras.Model]
) -> Callable[[str], tf.keras.Model]:
    """Returns a function: precision -> network with the published weights."""

    def load(precision: str) -> tf.keras.Model:
        model = build(precision)
        if not dataset.load_published(model, weights, "weights"):
            refuse("weights", weights, f"has no head for {recipe.task}; only fine-tuned ones have")
        return model

    return load


def _load_reader(name: str, weights: Path, task: str, data_dir: str) -> Serving:
    rows = [row for row in recipes.rows().values() if row.model == name and row.network.pretrained]
    if not rows:
        readable = sorted({row.model for row in recipes.rows().values() if row.network.pretrained})
        refuse("model", name, f"published readers are {', '.join(readable)}")
    recipe = rows[0].with_values(task=task, name=f"{task}/{name}")
    if TASKS[task].embedded:
        data = dataset.open(recipe)
    else:
        vocabulary = weights.parent / wordpieces.VOCABULARY
        if not vocabulary.is_file():
            refuse("weights", weights, f"has no {wordpieces.VOCABULARY} beside it")
        # A vocabulary with capitals is that of the cased BERT.
        pieces = wordpieces.read(vocabulary, cased=True).trained
        if any(piece != piece.lower() and not piece.startswith("[") for piece in pieces):
            cased = recipe.network.pretrained.replace("uncased", "cased")
            recipe = recipe.with_values(pretrained=cased)
        data = dataset.from_splits(recipe, squad.load_test(recipe, data_dir, vocabulary))
    build = _builder(recipe, weights, data.network)
    build("float32")
    examples, facts = data.examples(), _facts(data, weights)
    if TASKS[task].embedded:
        calibration = data.training_as_test(CALIBRATION).examples()
    else:  # SQuAD's training questions may not be there
        calibration = examples[:CALIBRATION]
        facts["calibration"] = f"{len(calibration)} test questions, without answers"
    served = Served(build, examples, calibration, data.fixed_shape, fixed_batch=False)
    return Serving(data, served, facts)


def _facts(data: Data, weights: Path) -> dict[str, Any]:
    """Returns what an entry says in place of a recipe: no training is known."""
    recipe = data.recipe
    return {
        "recipe": {"task": recipe.values()["task"], "model": recipe.model},
        "weights": {"file": weights.name, "sha256": files.digest(weights)},
    }
