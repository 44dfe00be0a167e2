"""What a kind of input, images or questions, offers to training and to inference: one value each.

The only place where the two kinds are told apart is `of`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.waits import Waits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task

Example = tuple[np.ndarray, ...]  # a model's inputs, each with a batch axis
Splits = Any  # a data set: `images.splits.Splits` or `questions.encoding.Encoded`


class Placement(NamedTuple):
    """Where batches go: the strategy that shares them out, the layout of images on its devices."""

    strategy: tf.distribute.Strategy
    data_format: str = "NHWC"
    waits: Waits | None = None  # counts the time that training waits for them

    def distributed(
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

    def timed(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Training batches as they are, the time it takes to get one counted."""
        return self.waits.timed(batches) if self.waits else batches


class Inputs(NamedTuple):
    """Functions of one kind of input. `splits` is a data set of that kind.

    Batches are those of the whole `tf.distribute` strategy; a test batch's last examples may be
    padding, which `collect` cuts off.
    """

    # The data set.
    load_options: Callable[[Recipe], dict[str, Any]]  # of its module's `load`
    check: Callable[[Task, Splits], None]  # raises Refusal if it is not all there
    synthetic: Callable[[Recipe], Splits]  # generated, of the counts of its task
    first: Callable[[Splits, int], Splits]  # with so many test examples only
    of_training: Callable[[Splits, int], Splits]  # with the first training examples as its test
    origin: Callable[[Splits], Origin]  # where it came from
    references: Callable[[Splits], Any]  # what the test's outputs are scored against

    # Training.
    steps: Callable[[Splits, Recipe], int]  # of an epoch
    train: Callable[[Splits, Recipe, Placement, int], tf.data.Dataset]  # (..., first epoch)
    # What makes inputs and targets of a batch of `train` in the step itself; None: they are.
    on_devices: Callable[[Splits, Recipe, Placement], Callable[..., tuple] | None]
    arrange: Callable[[Splits, Recipe], Splits]  # for `test`, `collect` and `references`
    test: Callable[[Splits, Recipe, Placement, int], tf.data.Dataset]  # (..., batch size)
    # From a batch of `test` to the network's input, in the step that evaluates it.
    prepare_test: Callable[[Recipe, Placement], Callable[[Any], Any]]
    collect: Callable[[list[np.ndarray], Splits, Placement, int], Any]  # `test`'s outputs in order
    save: Callable[[Splits, Path], None]  # what inference needs besides recipe and weights
    save_outputs: Callable[[Any, Splits, Path], None]  # what `collect` gave, if people want it

    # Inference.
    check_saved: Callable[[Splits, Path], None]  # raises Refusal if `save` had other data
    one_by_one: Callable[[Splits, Recipe], Sequence[Example]]  # test examples, batches of 1
    join: Callable[[Iterable[np.ndarray], Splits], Any]  # outputs of these, as `collect` gives them
    fixed_shape: bool  # whether all examples have one shape
    trial_size: int  # examples on which runtimes are compared

    # The network.
    network: Callable[..., tf.keras.Model]  # (splits, recipe, placement, precision), untrained
    adapt: Callable[[tf.keras.Model, Splits, Recipe, Placement], None]  # to the training data
    answering: Callable[[tf.keras.Model, Recipe, Placement], tf.keras.Model]  # as it is tested


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


def of(task: Task) -> Inputs:
    """The functions for the task's kind of input."""
    return import_module(f"dawnbench_tf.data.{task.inputs}.inputs").INPUTS


def load(recipe: Recipe, data_dir: str = "", download: bool = False) -> Splits:
    """Loads the data set of a recipe's task, or its synthetic stand-in.

    Args:
      recipe: whose task, seed and `synthetic` decide.
      data_dir: folder or archive of a data set that is not embedded.
      download: let TensorFlow Datasets download and prepare it there.

    Returns:
      A data set of the task's kind of input.

    Raises:
      Refusal: it is not all there, or is not the published data.
    """
    task = recipe.task_row
    inputs = of(task)
    if data_dir and task.embedded:
        refuse("data_dir", data_dir, f"{task.name} is embedded and takes none; name a --recipe?")
    if recipe.synthetic:
        splits = inputs.synthetic(recipe)._replace(origin=Origin("synthetic"))
    else:
        module = import_module(f"dawnbench_tf.data.{task.name}")
        place = () if task.embedded else (data_dir, download)
        splits = module.load(*place, **inputs.load_options(recipe))
    inputs.check(task, splits)
    return splits.holding_out(recipe.held_out) if recipe.held_out else splits
