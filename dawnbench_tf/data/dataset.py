"""The data set of a recipe: `open(recipe, data_dir)` returns batches, examples, scores, network.

`Data` is the interface; `images.data` and `questions.data` implement it. `open` and `from_splits`
choose the implementation from the recipe's task.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
import tensorflow as tf

from dawnbench_tf import models, terminal
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.placement import Placement
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.tasks import GIVEN

__all__ = ["open", "from_splits", "Data", "Placement"]

Example = tuple[np.ndarray, ...]  # a model's inputs, each with a batch axis
Splits = Any  # `images.splits.Splits` or `questions.encoding.Encoded`


@dataclass(frozen=True)
class Data(Protocol):
    """A recipe's data set under a distribution strategy: batches, scores and the network.

    `open` returns one: `images.data.ImageData` or `questions.data.QuestionData`. A batch size is
    that of the global batch, of all replicas together. The columns of scores are those of the
    recipe's task, e.g. top1Accuracy.

    Args:
      recipe: the recipe that is trained; its seed decides order and augmentation.
      splits: the training and test examples.
      placement: distribution strategy and image layout of the batches.
    """

    recipe: Recipe
    splits: Splits
    placement: Placement
    answers_file: ClassVar[str] = ""  # name of the file that `save_answers` writes, if it does
    fixed_shape: ClassVar[bool] = True  # whether all examples have one shape

    @property
    def origin(self) -> Origin:
        """Source of the files, and whether their SHA-256 is the published one."""
        return self.splits.origin

    # Training.

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch of the recipe's first batch size."""

    @property
    def examples_per_epoch(self) -> int:
        """Number of training examples in an epoch; of questions only those within the limits."""

    @property
    def epoch_steps(self) -> list[int]:
        """Number of batches in each epoch; epochs beyond the list's have the last number."""
        return [self.steps_per_epoch]

    def in_epoch(self, epoch: int) -> "Data":
        """Returns the data set with one batch size and one image size: those of an epoch.

        Args:
          epoch: index from 0.
        """
        return self

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        """Returns one epoch's training batches, for any training loop.

        The batches are equal, bit for bit, to those that `training_batches` yields on the devices.

        Args:
          epoch: index from 0; with the recipe's seed it decides order and augmentation.

        Returns:
          A data set of (inputs, targets). For images: augmented images float32 (batch, height,
          width, 3), or (batch, 3, height, width) in NCHW; labels int64 (batch,), with mixup float32
          (batch, classes). For questions: a tuple of the network's inputs, in the order of its
          family's `reads` (shapes in `models.texts`); answer spans int32 (batch, 2), first and last
          token.
        """

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        """Returns the distributed training batches of the epochs from `first_epoch` on.

        They end with the training, or where the shape of batches changes.
        `on_devices` returns the function that turns a batch into inputs and targets.
        """

    def on_devices(self) -> Callable[..., tuple] | None:
        """Returns a function from a batch of `training_batches` to (inputs, targets).

        It runs inside the training step, on each replica. None if the batches already are
        (inputs, targets).
        """
        return None

    # The test.

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        """Returns the distributed test batches; the last one may end in padding.

        Args:
          batch_size: of the global batch; a multiple of the number of replicas.
        """

    def prepare(self, batch: Any) -> Any:
        """Returns the network's inputs for `batch`, which `test_batches` yielded."""
        return batch

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> Any:
        """Returns the answers to all test examples, padding removed, in the test set's order.

        Args:
          outputs: logits of each batch of `test_batches(batch_size)`, in order.
          batch_size: of the global batch.

        Returns:
          Logits (examples, classes) for images, `questions.spans.Answers` for questions.
        """

    def examples(self) -> Sequence[Example]:
        """Returns the network's inputs for single test examples.

        Each has a batch axis of 1; that of a question for BERT has its windows.
        """

    def join(self, outputs: Iterable[np.ndarray]) -> Any:
        """Returns the answers to all test examples, as `collect` does.

        Args:
          outputs: logits of each of `examples`, in order.
        """

    def score(self, answers: Any) -> dict[str, float]:
        """Returns {column: score} over all test examples.

        Args:
          answers: the value that `collect` or `join` returned.

        Raises:
          ValueError: the number of answers differs from the number of test examples, or the
            number of their classes from the task's.
        """

    # Parts of it.

    def unsure(self, answers: Any) -> "tuple[np.ndarray, Data]":
        """Returns the test examples with the least probable answers, a share that the recipe sets.

        Args:
          answers: the value of `collect`, without test-time augmentation.

        Returns:
          Their indices, and the data set with only them as the test set.

        Raises:
          ValueError: the examples are questions, which have no views.
        """
        raise ValueError(f"{self.recipe.name} has no test-time augmentation")

    def sample(self, count: int = 0) -> tuple[Any, "Data"]:
        """Returns an index of `examples`, and the data set with only them.

        Images are evenly spaced, as files may be in the order of their classes.

        Args:
          count: number of examples; 0: enough to compare runtimes.
        """

    def training_as_test(self, count: int) -> "Data":
        """Returns the data set with `count` training examples as the test set, to calibrate."""

    def held_out(self) -> "Data":
        """Returns the data set with its held-out training examples as the test set.

        Raises:
          ValueError: the recipe holds no examples out.
        """
        raise ValueError(f"{self.recipe.name} holds no examples out")

    def describe_damage(self) -> str:
        """Returns a line that names the first example that can't be decoded; "" if it has none."""
        return ""

    # The network.

    def network(
        self, precision: str = "", portable: bool = False, folder: Path | None = None
    ) -> tf.keras.Model:
        """Builds the recipe's network with untrained weights.

        Args:
          precision: of inference, e.g. "float32"; "": the recipe's, for training.
          portable: with Keras's own layers only, in place of this package's faster ones.
          folder: of the run whose vocabulary a network of questions has; None: that of `splits`.
        """

    def adapt(self, model: tf.keras.Model) -> None:
        """Sets the weights of `model` that come from data: whitening, word vectors, BERT's."""

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        """Returns `model` with the recipe's test-time augmentation: mean logits of the views."""
        return model

    # A run's folder.

    def save(self, folder: Path) -> None:
        """Writes to `folder` what inference needs besides recipe and weights: a vocabulary."""

    def check_saved(self, folder: Path, trains: bool = False) -> None:
        """Raises Refusal if the files that `save` wrote to `folder` belong to another data set.

        With `trains` the run goes on, which needs the same training examples too.
        """

    def _compare(self, folder: Path, saved: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Raises Refusal for the first of its `own` names and checksums that is not as `saved`."""
        if different := [key for key in own if saved.get(key) != own[key]]:
            name = "data" if self.origin.source == GIVEN else "--data_dir"
            text = f"holds other {different[0]} than {folder} was trained on"
            raise Refusal(f"{name}: {text}; restore them, or train in a new folder")

    def save_answers(self, answers: Any, folder: Path) -> None:
        """Writes `answers` to `folder` in the task's published format, if it has one."""


def open(
    recipe: Recipe,
    data_dir: str = "",
    download: bool = False,
    placement: Placement | None = None,
    examples: Any = None,
) -> Data:
    """Loads the data set of a recipe's task, or synthetic examples in its place.

    Args:
      recipe: its task, seed and `synthetic` decide which examples are loaded.
      data_dir: folder or archive of the data; "" for an embedded data set, which takes none.
      download: let TensorFlow Datasets download and prepare the data in `data_dir`.
      placement: strategy and image layout; None: the current strategy, NHWC.
      examples: examples to use in place of those in `data_dir`, as `train` takes them.

    Returns:
      An `ImageData` or a `QuestionData`; its recipe's task has the numbers of examples and classes
      that were 0, from the data.

    Raises:
      Refusal: files are missing, or hold other examples than the recipe's task says. `train` takes
        any part of SQuAD, and so does this function for
        `recipe.with_values(task=recipe.whole_task.without_counts())`.

    >>> from dawnbench_tf import recipes
    >>> digits = open(recipes.get("digits/resnet8"))
    >>> images, labels = next(iter(digits.train(epoch=0)))
    >>> images.shape, labels.shape
    (TensorShape([64, 32, 32, 3]), TensorShape([64]))
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe should be a Recipe, as recipes.get(NAME) returns, not {recipe!r}")
    modality, task = _module(recipe), recipe.whole_task
    if download and (task.embedded or recipe.synthetic or examples is not None):
        refuse("download", True, f"{task.name}'s examples are here already; leave it out")
    if examples is not None:
        if task.is_whole:  # these examples are not the library's
            recipe = recipe.with_values(task=task.without_counts())
        splits = import_module("dawnbench_tf.data.own.arrays").to_splits(examples, recipe)
        splits = splits._replace(origin=Origin(GIVEN))
    elif recipe.synthetic and not recipe.task_row.test_examples:
        text = f"needs numbers of examples, which {recipe.task_row.name} has from its data only"
        refuse("synthetic", recipe.synthetic, text)
    elif recipe.synthetic:
        splits = modality.synthetic(recipe)._replace(origin=Origin("synthetic"))
    elif data_dir and task.embedded:
        refuse("data_dir", data_dir, f"{task.name} is embedded and takes none; drop it?")
    elif task.is_own and not task.reader:
        text = f"{task.name} has no files; pass its examples to train or infer as `data`"
        refuse("data_dir", data_dir, text)
    elif download and task.is_own and not task.reader.startswith("tfds"):
        refuse("download", True, "is for TensorFlow Datasets; name your own data as --data_dir")
    else:
        splits = import_module(f"dawnbench_tf.data.{task.module}").load(recipe, data_dir, download)
    recipe, splits = modality.complete(recipe, splits)
    task = recipe.whole_task
    if task.is_own and not task.threshold:
        recipe = recipe.with_values(task=replace(task, threshold=recipe.goal))
    splits = splits.hold_out(recipe.held_out) if recipe.held_out else splits
    return from_splits(recipe, splits, placement)


def from_splits(recipe: Recipe, splits: Splits, placement: Placement | None = None) -> Data:
    """Makes the data set of a recipe from examples that are already loaded.

    Args:
      recipe: a recipe of the examples' task.
      splits: `images.splits.Splits` or `questions.encoding.Encoded`: `splits` of `open`.
      placement: strategy and image layout; None: the current strategy, NHWC.

    Returns:
      An `ImageData` or a `QuestionData`.
    """
    placement = placement or Placement(tf.distribute.get_strategy())
    return _module(recipe).DATA(recipe, splits, placement)


def _module(recipe: Recipe) -> ModuleType:
    return import_module(f"dawnbench_tf.data.{recipe.task_row.inputs}.data")


@contextmanager
def refusing_damage(describe: Callable[[], str] = str) -> Iterator[None]:
    """Raises Refusal for TensorFlow's errors about damaged examples; `describe` names the first."""
    try:
        yield
    except tf.errors.OpError as error:
        refusal = re.search(r"Refusal: (.+)", error.message)  # raised by Python in the pipeline
        if refusal:
            raise Refusal(refusal[1]) from None
        if "JPEG" in error.message:
            reason = "an image is damaged; `dawnbench prepare` decodes all, and names it"
            raise Refusal(f"--data_dir: {describe() or reason}") from None
        raise


def load_published(
    model: tf.keras.Model, file: str | Path, flag: str, name: str = "", new_head: bool = False
) -> bool:
    """Loads published weights, as `models.load_published`; refuses the flag that names the file."""
    try:
        return models.load_published(model, Path(file).expanduser(), new_head)
    except OSError as error:
        refuse(flag, name or file, f"can't be read ({error.strerror})")
    except ValueError as error:
        refuse(flag, name or file, one_line(error, 300).replace("`file`", str(file)))


def start_from(model: tf.keras.Model, file: str | Path, name: str) -> None:
    """Loads a recipe's weights; a head of another number of classes is left as it is, and said."""
    with_head = load_published(model, file, "pretrained", name, new_head=True)
    terminal.say(f"starts from {Path(file).name}{'' if with_head else '; the head is new'}")
