"""From a recipe to a compiled model, and what may go wrong in `fit`, in one line each."""

import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tensorflow as tf

from dawnbench_tf import files, tensorflow_env
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.training import averages, losses, optimizers


def build(data: Data, steps_per_execution: int = 1) -> tf.keras.Model:
    """Builds and compiles the network of a recipe for its data, from the recipe's seed.

    Args:
      data: the recipe's, on the devices where it is trained.
      steps_per_execution: steps in one call into TensorFlow; at most an epoch's.
    """
    with tensorflow_env.silent():  # XLA tells of the first it compiles, at any level
        tf.function(lambda: tf.constant(0), jit_compile=True)()
    recipe, steps = data.recipe, data.steps_per_epoch
    tf.keras.utils.set_random_seed(recipe.seed)
    with data.placement.strategy.scope():
        model = data.network()
        data.adapt(model)
        losses.add_weight_decay(model, recipe)
        model.compile(
            optimizers.build(recipe, steps, model),
            losses.LOSSES[recipe.task_row.loss](recipe),
            steps_per_execution=_steps_at_once(recipe, steps, steps_per_execution),
            jit_compile=False,
        )
        # Now, so that moving averages start from the weights before the first step.
        averages.inner_optimizer(model).build(model.trainable_variables)
    prepare_in_steps(model, data)
    # Else tf-keras logs the sum of all workers' mean losses.
    model.distribute_reduction_method = "first"
    return model


def prepare_in_steps(model: tf.keras.Model, data: Data) -> None:
    """Lets a model's training step make its inputs itself, where the data live on the devices."""
    prepare = data.on_devices()
    step = model.train_step
    if prepare:
        model.train_step = lambda batch: step(prepare(*batch))


def _steps_at_once(recipe, steps, most):
    """Steps in one call; where training ends inside an epoch, calls must end there as well."""
    if recipe.total_steps(steps) % steps == 0:
        return min(most, steps)
    both = math.gcd(steps, recipe.total_steps(steps))
    return max(count for count in range(1, min(most, steps) + 1) if both % count == 0)


def tensorboard(folder: Path, profile_steps: tuple[int, ...]) -> tf.keras.callbacks.Callback:
    """Makes the callback that writes TensorBoard's logs, and a profile, to FOLDER/tensorboard."""
    return tf.keras.callbacks.TensorBoard(
        str(folder / "tensorboard"), profile_batch=profile_steps or 0, write_graph=False
    )


_LOST_WORKER_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


@contextmanager
def refusing(recipe: Recipe, folder: Path | None) -> Iterator[None]:
    """Makes a Refusal of what ends `fit` for reasons that a user can mend."""
    try:
        with dataset.refusing_damage():
            yield
    except (tf.errors.ResourceExhaustedError, MemoryError):
        refuse("batch_size", recipe.batch_size, "does not fit into the device's memory; lower it")
    except _LOST_WORKER_ERRORS:
        raise Refusal("a worker was lost; the same command on all workers continues") from None
    except OSError as error:
        raise files.cannot_write(folder or Path("."), error) from None


def check_agreement(
    strategy: tf.distribute.Strategy, recipe: Recipe, run: RunOptions, epochs_done: int
) -> None:
    """Refuses workers that restored different checkpoints, or were told different things.

    They would wait for one another for ever, or train what nobody asked for.
    """
    if strategy.num_replicas_in_sync == 1:
        return
    own = [
        epochs_done,
        zlib.crc32(json.dumps(recipe.values(), sort_keys=True).encode()) >> 1,
        run.steps_per_execution,
        int(run.data_format == "NCHW"),
    ]

    def gathered():
        of_replica = strategy.run(lambda: tf.constant([own], tf.int32))
        return strategy.gather(of_replica, axis=0)  # (replicas, facts)

    epochs, recipes, steps, layouts = tf.function(gathered)().numpy().T
    why = ""
    if epochs.min() != epochs.max():
        why = (
            f"--output_dir: workers found checkpoints of epochs {sorted(set(epochs.tolist()))}; "
            "it should be one folder that all workers see"
        )
    for facts, what in (
        (recipes, "recipes, or flags that replace their fields"),
        (steps, "--steps_per_execution"),
        (layouts, "--data_format"),
    ):
        if facts.min() != facts.max() and not why:
            why = f"workers were given different {what}; give all of them the same flags"
    if why:
        # A worker comes here when it knows why, so none leaves before all do. A function of its
        # own: another call of the first would meet those who still wait for that one's values.
        with suppress(*_LOST_WORKER_ERRORS):
            tf.function(gathered)()
        raise Refusal(why)
