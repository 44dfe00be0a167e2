"""Data sets as training and inference use them: `open(recipe, data_dir)` makes one.

The only place where images and questions are told apart is `of`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.waits import Waits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse

Example = tuple[np.ndarray, ...]  # a model's inputs, each with a batch axis
Splits = Any  # what `load` returns: `images.splits.Splits` or `questions.encoding.Encoded`


class Placement(NamedTuple):
    """Where batches go: the strategy that shares them out, the layout of images on its devices."""

    strategy: tf.distribute.Strategy
    data_format: str = "NHWC"
    waits: Waits | None = None  # counts the seconds that training waits for them

    def distribute(
        self, of_worker: Callable[[tf.distribute.InputContext], tf.data.Dataset]
    ) -> tf.data.Dataset:
        """The batches of each worker's pipeline, shared out over its replicas.

        What TensorFlow hands batches ahead to several devices with is autotuned, whatever the
        pipeline says: two CPU devices took 22 s in place of 15 to the digits' threshold, and up to
        a minute to end `fit`. There each replica has a pipeline of its own, and asks it itself.
        """
        # No pipeline has control flow for AutoGraph, which would look for some for 0.3 s.
        of_worker = tf.autograph.experimental.do_not_convert(of_worker)
        share = self.strategy.distribute_datasets_from_function
        mirrored = isinstance(self.strategy, tf.distribute.MirroredStrategy)
        if not mirrored or tf.config.list_logical_devices("GPU"):
            return share(of_worker)
        mode = tf.distribute.InputReplicationMode.PER_REPLICA
        options = tf.distribute.InputOptions(
            experimental_fetch_to_device=False, experimental_replication_mode=mode
        )
        return share(of_worker, options)

    def count_waits(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Training batches as they are, the time it takes to get one counted."""
        return self.waits.count(batches) if self.waits else batches


class Data(Protocol):
    """A recipe's data set on the devices of a strategy: batches, scores, and the network for them.

    `images.data.ImageData` and `questions.data.QuestionData` are the two. Batches are global ones,
    of all replicas together.
    """

    @property
    def recipe(self) -> Recipe:
        """What is trained on it; its seed decides order and augmentation."""

    @property
    def splits(self) -> Splits:
        """The examples themselves."""

    @property
    def placement(self) -> Placement:
        """Where batches go."""

    @property
    def origin(self) -> Origin:
        """Where the examples came from."""

    @property
    def fixed_shape(self) -> bool:
        """Whether all examples have one shape."""

    @property
    def sample_size(self) -> int:
        """Test examples on which runtimes are compared."""

    # Training.

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""

    def train(self, epoch: int = 0) -> tf.data.Dataset:
        """Returns an epoch's batches, (inputs, targets), for any training loop.

        Inputs are what the network takes: for images float32 (batch, height, width, 3) with labels
        int64 (batch,), augmented; for questions a tuple named by `models.texts`, with spans int32
        (batch, 2). The same batches, bit for bit, as `training_batches` makes on the devices.
        """

    def training_batches(self, first_epoch: int = 0) -> tf.data.Dataset:
        """Returns the batches of all epochs from `first_epoch` on, distributed over replicas.

        `on_devices` makes inputs and targets of them.
        """

    def on_devices(self) -> Callable[..., tuple] | None:
        """Returns what makes (inputs, targets) of a batch of `training_batches` within the step.

        None: its batches are inputs and targets.
        """

    # The test.

    def test_batches(self, batch_size: int) -> tf.data.Dataset:
        """Returns the test's batches, distributed; the last one's end may be padding."""

    def prepare(self, batch: Any) -> Any:
        """Returns the network's inputs of a batch of `test_batches`."""

    def collect(self, outputs: list[np.ndarray], batch_size: int) -> Any:
        """Returns the answer to each test example, from the logits of each of `test_batches`."""

    def examples(self) -> Sequence[Example]:
        """Returns the network's inputs for each test example alone, in a batch of 1."""

    def join(self, outputs: Iterable[np.ndarray]) -> Any:
        """Returns the answer to each test example, from the logits of each of `examples`."""

    def score(self, answers: Any) -> dict[str, float]:
        """Returns `{column: score}` of what `collect` or `join` gave. All examples count."""

    # Parts of it.

    def first(self, count: int) -> "Data":
        """Returns the data set with its first `count` test examples only."""

    def training_as_test(self, count: int) -> "Data":
        """Returns the data set with its first training examples as its test."""

    def held_out(self) -> "Data":
        """Returns the data set with the training examples that are held out as its test."""

    # The network.

    def network(self, precision: str = "") -> tf.keras.Model:
        """Builds the recipe's network, untrained: to be trained, or to answer in a precision."""

    def adapt(self, model: tf.keras.Model) -> None:
        """Sets what an untrained network takes from the data: word vectors, whitening."""

    def with_views(self, model: tf.keras.Model) -> tf.keras.Model:
        """Returns the network as the test sees it, behind the recipe's test-time views."""

    # A run's folder.

    def save(self, folder: Path) -> None:
        """Writes what inference needs besides recipe and weights."""

    def check_saved(self, folder: Path) -> None:
        """Raises Refusal if `save` wrote another data set's."""

    def save_answers(self, answers: Any, folder: Path) -> None:
        """Writes answers in the form that the task's users want them, if there is one."""


def open(
    recipe: Recipe, data_dir: str = "", download: bool = False, placement: Placement | None = None
) -> Data:
    """Loads a recipe's data set: `of(recipe, load(recipe, data_dir, download), placement)`.

    >>> from dawnbench_tf import recipes
    >>> digits = open(recipes.get("digits/resnet8"))
    >>> images, labels = next(iter(digits.train(epoch=0)))
    >>> images.shape, labels.shape
    (TensorShape([64, 32, 32, 3]), TensorShape([64]))
    """
    return from_splits(recipe, load(recipe, data_dir, download), placement)


def from_splits(recipe: Recipe, splits: Splits, placement: Placement | None = None) -> Data:
    """Places a data set that is loaded.

    Args:
      recipe: of its task.
      splits: what `load` returned, or examples in the same form.
      placement: default: the strategy in whose scope this is, images in NHWC.
    """
    placement = placement or Placement(tf.distribute.get_strategy())
    return _module(recipe).DATA(recipe, splits, placement)


def saved_network(
    recipe: Recipe, folder: Path, placement: Placement, precision: str, portable: bool
) -> tf.keras.Model:
    """Builds the network of a run, untrained, from its recipe and what `save` wrote.

    If `portable`, of Keras's own layers where it has them, in place of faster ones of ours.
    """
    return _module(recipe).saved_network(recipe, folder, placement, precision, portable)


def _module(recipe):
    return import_module(f"dawnbench_tf.data.{recipe.task_row.inputs}.data")


def load(recipe: Recipe, data_dir: str = "", download: bool = False) -> Splits:
    """Loads the examples of a recipe's task, or synthetic ones in their place.

    Args:
      recipe: whose task, seed and `synthetic` decide.
      data_dir: folder or archive of a data set that is not embedded.
      download: let TensorFlow Datasets download and prepare it there.

    Returns:
      `images.splits.Splits` or `questions.encoding.Encoded`.

    Raises:
      Refusal: it is not all there, or is not the published data.
    """
    task = recipe.task_row
    own = _module(recipe)
    if data_dir and task.embedded:
        refuse("data_dir", data_dir, f"{task.name} is embedded and takes none; name a --recipe?")
    if recipe.synthetic:
        splits = own.synthetic(recipe)._replace(origin=Origin("synthetic"))
    else:
        module = import_module(f"dawnbench_tf.data.{task.name}")
        place = () if task.embedded else (data_dir, download)
        splits = module.load(*place, **own.load_options(recipe))
    own.check(task, splits)
    return splits.hold_out(recipe.held_out) if recipe.held_out else splits


def own_replicas(strategy: tf.distribute.Strategy, context: tf.distribute.InputContext) -> slice:
    """Which replicas, of all in the strategy, this worker's pipeline feeds."""
    count = strategy.num_replicas_in_sync // context.num_input_pipelines
    first = context.input_pipeline_id * count
    return slice(first, first + count)


def without_autotune() -> tf.data.Options:
    """The options of every pipeline.

    With autotune on, `fit` lingered until the tuner's next period: 5.1 s for an epoch of 2.9 s.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Makes a Refusal of TensorFlow's error where a pipeline meets examples that are damaged."""
    try:
        yield
    except tf.errors.OpError as error:
        refusal = re.search(r"Refusal: (.+)", error.message)  # of Python inside a pipeline
        if refusal:
            raise Refusal(refusal[1]) from None
        if "JPEG" in error.message:
            what = "an image is damaged; `dawnbench prepare` decodes all, and names it"
            raise Refusal(f"--data_dir: {what}") from None
        raise
