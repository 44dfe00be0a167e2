"""Images as training and inference use them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.dataset import Example, Placement
from dawnbench_tf.data.images import augment, jpegs, pipeline, scores, tested
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.data.images.synthetic import load as synthetic  # noqa: F401 - of this room
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.models import factories, networks
from dawnbench_tf.models.factories import LayerClasses
from dawnbench_tf.models.layers import views
from dawnbench_tf.models.layers.image import Whitening
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task


@dataclass(frozen=True)
class ImageData:
    """Images and their classes: see `dataset.Data`."""

    recipe: Recipe
    splits: Splits
    placement: Placement
    fixed_shape = True
    sample_size = 200

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

    def on_devices(self) -> Callable[..., tuple]:
        """Returns what makes (inputs, targets) of a batch of `training_batches` within the step."""
        return pipeline.on_devices(self)

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        """Returns the test's batches, distributed; the last one's end may be padding."""
        return tested.batches(self, batch_size, self._ratios)

    def prepare(self, batch: tf.Tensor) -> tf.Tensor:
        """Returns the network's inputs of a batch of `test_batches`."""
        return augment.standardizer(self.recipe, self.placement.data_format)(batch)

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> np.ndarray:
        """Returns the answer to each test example, from the logits of each of `test_batches`."""
        logits = np.concatenate(outputs)[: len(self.splits.test.labels)]  # the rest is padding
        ratios = self._ratios
        return logits if ratios is None else logits[np.argsort(tested.order(ratios))]

    def examples(self) -> Sequence[Example]:
        """Returns the network's inputs for each test example alone, in a batch of 1."""
        return tested.SingleImages(self.splits, self.recipe)

    def join(self, outputs: Iterable[np.ndarray]) -> np.ndarray:
        """Returns the answer to each test example, from the logits of each of `examples`."""
        return np.concatenate(list(outputs))

    def score(self, answers: np.ndarray) -> dict[str, float]:
        """Returns `{column: score}` of what `collect` or `join` gave. All examples count."""
        return scores.SCORES[self.recipe.task_row.scoring](answers, self.splits.test.labels)

    @cached_property
    def _ratios(self) -> np.ndarray | None:
        """Width to height of each test image, where the test has rectangular ones: (examples,)."""
        read = self.splits.test.jpegs
        if not self.recipe.data.rectangular_test or read is None:
            return None
        return jpegs.ratios(read, len(self.splits.test.labels))

    def first(self, count: int) -> "ImageData":
        """Returns the data set with its first `count` test examples only."""
        return replace(self, splits=self.splits._replace(test=self.splits.test.first(count)))

    def training_as_test(self, count: int) -> "ImageData":
        """Returns the data set with its first training examples as its test."""
        return replace(self, splits=self.splits._replace(test=self.splits.train.first(count)))

    def held_out(self) -> "ImageData":
        """Returns the data set with the training examples that are held out as its test."""
        held_out = self.splits.held_out
        if held_out is None:
            raise ValueError(f"{self.recipe.name} holds no examples out")
        return replace(self, splits=self.splits._replace(test=held_out))

    def network(self, precision: str = "") -> tf.keras.Model:
        """Builds the recipe's network, untrained: to be trained, or to answer in a precision."""
        return network(self.recipe, self.placement, precision)

    def adapt(self, model: tf.keras.Model) -> None:
        """Sets what an untrained network takes from the data: word vectors, whitening."""
        for layer in model.layers:
            if isinstance(layer, Whitening):
                layer.adapt(tested.without_augmentation(self, layer.examples))

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        """Returns the network as the test sees it, behind the recipe's test-time views."""
        return views.with_views(model, self.recipe.data.test_views, self.placement.data_format)

    def save(self, folder: Path) -> None:
        """Recipe and weights say all: nothing is written."""

    def check_saved(self, folder: Path) -> None:
        """Nothing was written."""

    def save_answers(self, answers: np.ndarray, folder: Path) -> None:
        """Logits are not kept."""


DATA = ImageData


def load_options(recipe: Recipe) -> dict[str, Any]:
    """Returns the arguments of a task's `load` that the recipe sets."""
    return {"skip_blacklisted": True} if recipe.skip_blacklisted else {}


def saved_network(
    recipe: Recipe, folder: Path, placement: Placement, precision: str, portable: bool
) -> tf.keras.Model:
    """Builds the network of a run, untrained, as it answers: nothing of its folder is needed."""
    layers = factories.KERAS if portable else factories.TRAINING
    return network(recipe, placement, precision, layers)


def check(task: Task, splits: Splits) -> None:
    """Raises Refusal if labels are not as many as the task has, or out of range."""
    for name, split, examples in (
        ("train", splits.train, task.train_examples),
        ("test", splits.test, task.test_examples),
    ):
        labels = split.labels
        if len(labels) != examples:
            raise Refusal(
                f"{task.name} {name}: should hold {examples} examples, found {len(labels)}"
            )
        if labels.min() < 0 or labels.max() >= task.classes:
            bad = int(np.argmax((labels < 0) | (labels >= task.classes)))
            raise Refusal(
                f"{task.name} {name}: label {labels[bad]} of example {bad} should be in "
                f"0..{task.classes - 1}; the file is damaged or of another data set"
            )


def network(
    recipe: Recipe,
    placement: Placement,
    precision: str = "",
    layers: LayerClasses = factories.TRAINING,
) -> tf.keras.Model:
    """The recipe's network for its task's images: for training, or to answer in a precision."""
    task, channels_first = recipe.task_row, placement.data_format == "NCHW"
    sides = [recipe.test_side if precision or _one_size(recipe) else None] * 2
    args, variant = _of_family(recipe), models.get(recipe.model)
    _check_sides(recipe, args)
    args = {
        **variant.args,
        **args,
        "num_classes": task.classes,
        "input_shape": (3, *sides) if channels_first else (*sides, 3),
        "data_format": placement.data_format,
        "dtype": precision or recipe.precision,
        "synchronized": _synchronizes(recipe, placement.strategy),
    }
    return networks.build(variant, args, layers)


def _one_size(recipe):
    return len({*recipe.sizes, recipe.test_side}) == 1 and not recipe.data.rectangular_test


def _check_sides(recipe, args):
    variant = models.get(recipe.model)
    least = networks.family_of(variant).smallest_side({**variant.args, **args})
    for name, side in (("image_sizes", min(recipe.sizes)), ("test_image_size", recipe.test_side)):
        if side < least and recipe.task_row.jpegs:
            refuse(name, side, f"{recipe.model} sees images of {least} pixels at least")
        if side < least:
            right = f"sees images of {least} pixels at least; {recipe.task} has {side}"
            refuse("model", recipe.model, right)
    if recipe.network.auxiliary_weight and not _one_size(recipe):
        right = "the head sees images of one size; set --image_sizes to one, or this to 0"
        refuse("auxiliary_weight", recipe.network.auxiliary_weight, right)


def _of_family(recipe):
    """Arguments that only some families take."""
    body = networks.family_of(models.get(recipe.model)).body
    args = {}
    for name, argument, families in (
        ("zero_last_norm", "zero_last_norm", "ResNets for ImageNet"),
        ("auxiliary_weight", "auxiliary", "AmoebaNets"),
        ("final_survival", "final_survival", "CIFAR ResNets"),
    ):
        value = getattr(recipe.network, name)
        if not value:
            continue
        if argument not in signature(body).parameters:
            refuse(name, value, f"{recipe.model} has none; {families} have")
        args[argument] = value if argument == name else True
    return args


def _synchronizes(recipe, strategy):
    """Whether BN needs to speak across replicas to see the global batch."""
    several = strategy.num_replicas_in_sync > 1 and recipe.network.synchronized_batch_norm
    args = {**models.get(recipe.model).args, **_of_family(recipe)}
    if several and args.get("final_survival", 1) < 1:
        refuse(
            "synchronized_batch_norm",
            True,
            f"{recipe.model} skips blocks, and BN can't speak across replicas inside one that may "
            "be skipped; add --nosynchronized_batch_norm for statistics of each replica's own",
        )
    return several
