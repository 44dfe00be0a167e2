"""`ImageData`: the data set interface for images."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, machine, models, terminal
from dawnbench_tf.data.dataset import Data, Example, start_from
from dawnbench_tf.data.images import augment, jpegs, pipeline, scores, tested
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.images.synthetic import load as synthetic  # noqa: F401 - `dataset` calls it
from dawnbench_tf.data.own import division
from dawnbench_tf.data.placement import without_autotune
from dawnbench_tf.models import factories, networks
from dawnbench_tf.models.layers import views
from dawnbench_tf.models.layers.image import Whitening
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse, shown
from dawnbench_tf.tasks import Task

SAMPLE = 200  # test images that runtimes are compared on
CLASSES, TEST_IMAGES = "classes.json", "test_images.txt"  # of a run on a task of the user's own
_TRAINED = "training images"  # key in classes.json


@dataclass(frozen=True)
class ImageData(Data):
    """A recipe's image data set; `dataset.Data` documents the methods."""

    splits: Splits

    @cached_property
    def steps_per_epoch(self) -> int:
        examples, batch_size = len(self.splits.train.labels), self.recipe.batch_size
        # Rounded up, as DAWNBench's seeds count steps.
        return examples // batch_size if self.recipe.drop_remainder else -(-examples // batch_size)

    @property
    def examples_per_epoch(self) -> int:
        return len(self.splits.train.labels)

    @property
    def epoch_steps(self) -> list[int]:
        counts = [[self.in_epoch(a).steps_per_epoch] * (b - a) for a, b, _ in self.recipe.phases()]
        return [*chain.from_iterable(counts)]

    def in_epoch(self, epoch: int) -> "ImageData":
        return replace(self, recipe=self.recipe.in_epoch(epoch))

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        data, fetch = self.in_epoch(epoch), self.splits.train.fetch
        whole, batch_size = range(epoch, epoch + 1), data.recipe.batch_size
        batches = pipeline.batches(data, whole, lambda values, _: values, batch_size)
        prepare = pipeline.preparation(data, fetch)
        prepared = batches.map(prepare, machine.cpus(), deterministic=True)
        return prepared.prefetch(2).with_options(without_autotune())

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        phase, strategy = self.recipe.phases(first_epoch)[0], self.placement.strategy
        data, epochs = self.in_epoch(first_epoch), range(phase.start, phase.end)
        per_replica = phase.batch_size // strategy.num_replicas_in_sync

        def make_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            batches = pipeline.batches(data, epochs, pipeline.share(strategy, context), per_replica)
            # 4 batches bridge the time of writing a checkpoint.
            return batches.prefetch(4).with_options(without_autotune())

        return self.placement.distribute(make_pipeline)

    def on_devices(self) -> Callable[..., tuple]:
        held, strategy = self.splits.train.held, self.placement.strategy
        # Images in memory are copied to every device first, so no step waits for the host.
        examples = len(self.splits.train.labels)
        fetch = None if held is None else pipeline.on_each_device(held, strategy, examples)
        return pipeline.preparation(self, fetch)

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        return tested.test_batches(self, batch_size, self._ratios)

    def prepare(self, batch: tf.Tensor) -> tf.Tensor:
        return augment.standardizer(self.recipe, self.placement.data_format)(batch)

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> np.ndarray:
        logits, group = np.concatenate(outputs), tested.group_size(batch_size, self._ratios)
        whole = np.arange(len(logits)) % batch_size < group  # the rest is padding
        logits = logits[whole][: len(self.splits.test.labels)]
        if self._ratios is None:
            return logits
        return logits[np.argsort(np.argsort(self._ratios, kind="stable"))]  # as in `test_batches`

    def examples(self) -> Sequence[Example]:
        test = self.splits.test
        prepare = partial(tested.prepare, test, self.recipe, "NHWC")
        return tested.SingleImages(prepare, range(len(test.labels)))

    def join(self, outputs: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate(list(outputs))

    def score(self, answers: np.ndarray) -> dict[str, float]:
        answers, labels = np.asarray(answers), self.splits.test.labels
        if answers.shape[1:] != (self.recipe.task_row.classes,):
            text = f"`answers` should be logits of {self.recipe.task_row.classes} classes"
            raise ValueError(f"{text}. Received: an array of shape {answers.shape}")
        return scores.SCORES[self.recipe.task_row.scoring](answers, labels)

    @cached_property
    def _ratios(self) -> np.ndarray | None:
        """Aspect ratios (width / height) of the test JPEGs, (examples,), for `rectangular_test`."""
        read = self.splits.test.jpegs
        if not self.recipe.data.rectangular_test or read is None:
            return None
        return jpegs.aspect_ratios(read, len(self.splits.test.labels))

    def training_as_test(self, count: int) -> "ImageData":
        return self._tested_on(self.splits.train.spaced(count)[1])

    def sample(self, count: int = 0) -> tuple[np.ndarray, "ImageData"]:
        chosen, split = self.splits.test.spaced(count or SAMPLE)
        return chosen, self._tested_on(split)

    def unsure(self, answers: np.ndarray) -> tuple[np.ndarray, "ImageData"]:
        shifted = np.exp(answers - answers.max(1, keepdims=True))
        most_probable = 1 / shifted.sum(1)  # probability of each image's answer
        count = max(1, int(round(len(answers) * self.recipe.data.views_share, 6)))
        indices = np.sort(np.argsort(most_probable, kind="stable")[:count])
        return indices, self._tested_on(self.splits.test.take(indices))

    def held_out(self) -> Data:
        held_out = self.splits.held_out
        return super().held_out() if held_out is None else self._tested_on(held_out)

    def _tested_on(self, test: Split) -> "ImageData":
        return replace(self, splits=self.splits._replace(test=test))

    def describe_damage(self) -> str:
        splits = (self.splits.train, self.splits.test)
        return next(filter(None, map(jpegs.describe_damage, splits)), "")

    def network(
        self, precision: str = "", portable: bool = False, folder: Path | None = None
    ) -> tf.keras.Model:
        recipe, task = self.recipe, self.recipe.task_row
        channels_first = self.placement.data_format == "NCHW"
        sides = [recipe.test_side if precision or _one_size(recipe) else None] * 2
        args, variant = _family_args(recipe), models.get(recipe.model)
        _check_sides(recipe, args)
        args = {
            **variant.args,
            **args,
            "num_classes": task.classes,
            "input_shape": (3, *sides) if channels_first else (*sides, 3),
            "data_format": self.placement.data_format,
            "dtype": precision or recipe.precision,
            "synchronized": _synchronizes(recipe, self.placement.strategy),
        }
        layers = factories.KERAS if portable else factories.TRAINING
        try:
            return networks.build(variant, args, layers)
        except ValueError as error:
            if variant.family != "imported":
                raise
            if precision:  # of a run, whose folder --model names
                raise Refusal(f"the network can't be built: {one_line(error)}") from None
            size = "" if all(sides) else "; set --image_sizes and --test_image_size to one size"
            refuse("model", recipe.model, f"{one_line(error)}{size}")

    def adapt(self, model: tf.keras.Model) -> None:
        if file := self.recipe.network.pretrained:
            start_from(model, file, file)
        for layer in model.layers:  # whitening layers are fitted to training images
            if isinstance(layer, Whitening):
                split, data_format = self.splits.train, self.placement.data_format
                first = np.arange(min(layer.examples, len(split.labels)))
                layer.adapt(tested.prepare(split, self.recipe, data_format, first))

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        return views.with_views(model, self.recipe.data.test_views, self.placement.data_format)

    def save(self, folder: Path) -> None:
        # Image models need no file besides recipe and weights; these are for `check_saved`.
        if self.recipe.whole_task.is_own:
            files.write_json(folder / CLASSES, self._names())
            if names := "".join(f"{shown(name)}\n" for name in self.splits.test.names):
                files.write_whole(folder / TEST_IMAGES, names)

    def check_saved(self, folder: Path, trains: bool = False) -> None:
        if self.recipe.whole_task.is_own and not self.recipe.synthetic:
            saved, names = files.read_json(folder / CLASSES), self._names(trains)
            saved.setdefault(_TRAINED, names.get(_TRAINED))  # releases to 0.2 wrote none
            self._compare(folder, saved, names)

    def _names(self, trains: bool = True) -> dict[str, Any]:
        """Returns the names of the classes, and checksums of the test and the training images."""
        test, train = self.splits.test, self.splits.train
        digest = hashlib.sha256(np.asarray(test.labels, np.int64).tobytes())
        digest.update(json.dumps(list(test.names)).encode())
        if test.held is not None:
            digest.update(test.images().tobytes())
        names = {"classes": list(self.splits.classes), "test images": digest.hexdigest()}
        if not trains:
            return names
        # In any order: the caller's tf.data data set may shuffle.
        encoded = [name.encode(errors="surrogatepass") for name in train.names]
        images = encoded or ([b""] * len(train.labels) if train.held is None else train.images())
        return {**names, _TRAINED: sum(map(zlib.crc32, images, train.labels.tolist()))}


DATA = ImageData


def complete(recipe: Recipe, splits: Splits) -> tuple[Recipe, Splits]:
    """Returns the recipe with its task's numbers that are 0 from the data; the data, checked."""
    # Of the training images only those that a recipe with `train_examples` uses.
    task = recipe.whole_task
    held = splits.train.held
    side = 0 if held is None else int(held.shape[1])
    excluded = task.blacklisted * recipe.skip_blacklisted
    completed = replace(
        task,
        train_examples=task.train_examples or len(splits.train.labels),
        test_examples=task.test_examples or len(splits.test.labels) + excluded,
        classes=task.classes or splits.count_classes(task.name),
        image_size=task.image_size or side,
    )
    if task.is_own and not task.classes and not splits.classes:
        _compare_labels(task.name, splits, completed.classes)
    recipe = recipe.with_values(task=completed)
    if not recipe.train_examples or recipe.synthetic:
        check(recipe.task_row, splits)
        return recipe, splits
    check(replace(recipe.task_row, train_examples=completed.train_examples), splits)
    chosen = division.choose(len(splits.train.labels), recipe.train_examples, recipe.seed)
    if len(lost := np.setdiff1d(splits.train.labels, splits.train.labels[chosen])):
        numbers = ", ".join(map(str, lost[:10])) + ", ..." * (len(lost) > 10)
        terminal.say(f"--train_examples={recipe.train_examples}: leaves none of class {numbers}")
    return recipe, splits._replace(train=splits.train.take(chosen))


def _compare_labels(name: str, splits: Splits, classes: int) -> None:
    """Says which classes have no example; raises Refusal if the test alone has one."""
    trained, tested = np.unique(splits.train.labels), np.unique(splits.test.labels)
    if len(alone := np.setdiff1d(tested, trained)):
        text = f"{', '.join(map(str, alone[:10]))} are in the test alone; training should have them"
        raise Refusal(f"{name}: labels {text}")
    if len(empty := np.setdiff1d(np.arange(classes), trained)):
        numbers = ", ".join(map(str, empty[:10])) + ", ..." * (len(empty) > 10)
        terminal.say(f"{name}: {classes} classes by the largest label; without example: {numbers}")


def check(task: Task, splits: Splits) -> None:
    """Raises Refusal if a split has another number of labels than the task, or one out of range."""
    for name, split, examples in (
        ("train", splits.train, task.train_examples),
        ("test", splits.test, task.test_examples),
    ):
        labels, held = split.labels, split.held
        if not len(labels):
            raise Refusal(f"{task.name} {name}: holds no examples")
        if held is not None and not task.jpegs and held.shape[1] != task.image_size:
            sides = f"{held.shape[1]} pixels; {task.name} has {task.image_size}"
            raise Refusal(f"{task.name} {name}: images have {sides}")
        if len(labels) != examples:
            hint = "; a run goes on with the images it began with: put them back, or begin another"
            text = f"should hold {examples} examples, found {len(labels)}{hint * task.is_own}"
            raise Refusal(f"{task.name} {name}: {text}")
        if labels.min() < 0 or labels.max() >= task.classes:
            bad = int(np.argmax((labels < 0) | (labels >= task.classes)))
            text = f"label {labels[bad]} of example {bad} should be in 0..{task.classes - 1}"
            hint = "the file is damaged or of another data set"
            raise Refusal(f"{task.name} {name}: {text}; {hint}")


def _one_size(recipe: Recipe) -> bool:
    return len({*recipe.sizes, recipe.test_side}) == 1 and not recipe.data.rectangular_test


def _check_sides(recipe: Recipe, args: dict[str, Any]) -> None:
    variant = models.get(recipe.model)
    least = networks.family_of(variant).smallest_side({**variant.args, **args})
    for name, side in (("image_sizes", min(recipe.sizes)), ("test_image_size", recipe.test_side)):
        if side < least and (recipe.task_row.jpegs or recipe.data.image_sizes):
            refuse(name, side, f"{recipe.model} sees images of {least} pixels at least")
        if side < least:
            reason = f"sees images of {least} pixels at least; {recipe.task_row.name} has {side}"
            refuse("model", recipe.model, reason)
    if recipe.network.auxiliary_weight and not _one_size(recipe):
        reason = "the head sees images of one size; set --image_sizes to one, or this to 0"
        refuse("auxiliary_weight", recipe.network.auxiliary_weight, reason)


def _family_args(recipe: Recipe) -> dict[str, Any]:
    """Returns the arguments that only some families take; refuses them for other families."""
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


def _synchronizes(recipe: Recipe, strategy: tf.distribute.Strategy) -> bool:
    """Whether BN needs statistics across replicas, to be over the global batch."""
    several = strategy.num_replicas_in_sync > 1 and recipe.network.synchronized_batch_norm
    variant, reason = models.get(recipe.model), ""
    if {**variant.args, **_family_args(recipe)}.get("final_survival", 1) < 1:
        reason = "skips blocks, and BN can't speak across replicas inside one that may be skipped"
    elif variant.family == "imported":
        reason = "has BN of its own, if any"
    if several and reason:
        own = "add --nosynchronized_batch_norm for statistics of each replica's own"
        refuse("synchronized_batch_norm", True, f"{recipe.model} {reason}; {own}")
    return several
