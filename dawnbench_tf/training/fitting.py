"""Building and compiling a recipe's model, and turning the errors of `fit` into refusals."""

import json
import math
import os
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops

from dawnbench_tf import files, machine, models, refusals, terminal
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.data.placement import Waits
from dawnbench_tf.models import parts
from dawnbench_tf.models.layers import xla
from dawnbench_tf.models.layers.image import GhostBatchNormalization, Whitening
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipe.schedule import Phase, split
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.training import averages, losses, optimizers, selection, strategies, utilization
from dawnbench_tf.tta import TimeToAccuracy


@contextmanager
def freeing_graphs() -> Iterator[None]:
    """Drops what its body leaves in the process: custom gradients, and `build`'s environment."""
    before, autotune = {*ops.gradient_registry._registry}, os.environ.get(_AUTOTUNE)
    try:
        yield
    finally:
        drop_gradients(before)
        if autotune is None:
            os.environ.pop(_AUTOTUNE, None)


def drop_gradients(kept: Container[str] = ()) -> None:
    """Drops the registered custom gradients that are not in `kept`, and so their graphs."""
    # `tf.custom_gradient` registers each trace for good. Its graph holds weights and images.
    registered = ops.gradient_registry._registry
    for name in [*registered]:
        if name.startswith("CustomGradient") and name not in kept:
            del registered[name]


def build(
    data: Data,
    steps_per_execution: int = 1,
    restored: bool = False,
    jit_compile: bool | None = None,
) -> tf.keras.Model:
    """Builds and compiles a recipe's network, with initial weights from the recipe's seed."""
    # If a checkpoint follows, weights that come from data or files are not read (`restored`). XLA
    # compiles the training step if `jit_compile` says so; None: if `xla_pays`. In a short training
    # cuDNN's trials are turned off, in the environment, unless it says whether to try.
    machine.check_keras()
    try:  # also where only activations use XLA, which logs its first compilation at every level
        with terminal.silent():
            _by_xla()
    except tf.errors.NotFoundError as error:  # tensorflow-tpu, for a CPU
        if jit_compile or tf.config.list_physical_devices("GPU"):  # tf-keras compiles there
            text = f"this TensorFlow has no XLA for its device: {error.message}"
            refuse("jit_compile", True, text)
    recipe, steps = data.recipe, data.epoch_steps
    average, total = recipe.average, recipe.total_steps(steps)
    if average.decay and average.every > total:
        text = f"should be at most the {total:,} steps of training: the average would never change"
        refuse("average_every", average.every, text)
    if jit_compile is None:
        jit_compile = xla_pays(data)
    if (gpu_seconds(recipe, steps) or _AUTOTUNED) < _AUTOTUNED:  # each kernel reads it when made
        os.environ.setdefault(_AUTOTUNE, "0")
    tf.keras.utils.set_random_seed(recipe.seed)
    with data.placement.strategy.scope():
        model = data.network()
        if not restored:
            data.adapt(model)
        frozen_from = recipe.optimizer.whitening_bias_epochs
        if frozen_from and not any(isinstance(layer, Whitening) for layer in model.layers):
            reason = f"{recipe.model} has no whitening; airbench's networks have"
            refuse("whitening_bias_epochs", frozen_from, reason)
        if count := recipe.network.frozen_parts:
            with refusals.refusing(f"--frozen_parts={count}", "", ValueError):  # it has fewer
                parts.freeze(model, count)
        layers = model._flatten_layers()
        groups = {x.group for x in layers if isinstance(x, GhostBatchNormalization)}
        for group, size in product(sorted(groups), recipe.batch_sizes):
            trained = round(size * (recipe.data.proxy_share if recipe.data.proxy else 1))
            trained = min(recipe.data.hardest or trained, trained)
            trained //= data.placement.strategy.num_replicas_in_sync
            if trained > group and trained % group:
                name = "batch_size" if size == recipe.batch_size else "later_batch_sizes"
                text = f"{trained} on a device should be a multiple of {recipe.model}'s groups"
                refuse(name, size, f"{text} of {group}")
        losses.add_weight_decay(model, recipe)
        model.compile(
            optimizers.build(recipe, steps, model),
            losses.make_loss(data),
            steps_per_execution=min(steps_per_execution, *steps),
            jit_compile=jit_compile,
        )
        # Built here, so that moving averages start from the initial weights.
        averages.inner_optimizer(model).build(model.trainable_variables)
        if recipe.data.proxy:
            model.proxy = selection.Proxy(cast(ImageData, data), restored)
        if recipe.data.hardest:
            model.hardest = selection.Hardest(cast(ImageData, data))
    prepare_in_steps(model, data)
    model.make_train_function = partial(_make_train_function, model, data.placement.waits)
    # By default tf-keras logs the sum of the workers' mean losses.
    model.distribute_reduction_method = "first"
    return model


# Of an H200 without XLA (docs/hardware.md): operations a second of wide networks, the least seconds
# of a step. Of XLA: about the share of its time that a step saves, and the seconds that a shape of
# batches compiles longer.
_RATE, _STEP, _SAVED, _COMPILING = 100e12, 0.007, 0.3, 30
_by_xla = tf.function(lambda: tf.constant(0), jit_compile=True)
_AUTOTUNE, _AUTOTUNED = "TF_CUDNN_USE_AUTOTUNE", 60  # seconds of training from which trials pay


def gpu_seconds(recipe: Recipe, epoch_steps: Sequence[int]) -> float | None:
    """Returns about how long an H200 trains a recipe without XLA; None: unknown for its network."""
    network = models.get(recipe.model)
    if network.multiply_adds:
        flops = utilization.training_flops(recipe, epoch_steps)
    elif network.wordpieces:  # a BERT: each weight is used once for each token
        each = 2 * network.parameters * recipe.data.bucket_boundaries[-1]
        examples = recipe.epochs * recipe.task_row.train_examples
        flops = utilization.flops_per_example(each) * examples
    else:
        return None
    return max(flops / _RATE, recipe.total_steps(epoch_steps) * _STEP)


def xla_pays(data: Data) -> bool:
    """Whether XLA is expected to save more time than it compiles, on one GPU."""
    recipe = data.recipe
    if models.get(recipe.model).family == "amoebanets":  # XLA stopped the process on an H200
        return False
    # Texts of several lengths come in too many shapes.
    lengths = getattr(recipe.data, "bucket_boundaries", ())
    if len(lengths) > 1 or not strategies.is_one_gpu(data.placement.strategy):
        return False
    seconds = gpu_seconds(recipe, data.epoch_steps) or 0.0
    parts = split(recipe.shape_changes, recipe.epochs, 0)
    shapes = {utilization.shape_in(recipe, begin) for begin, _ in parts}
    return seconds * _SAVED > _COMPILING * len(shapes)


def phases(recipe: Recipe, first_epoch: int, strategy: tf.distribute.Strategy) -> list[Phase]:
    """Returns the phases of training from an epoch on; `fit` compiles a training step for each."""
    # On CPUs a second phase starts when the learning rate of whitening's bias is 0: its step does
    # not train the bias. An H100 compiled that step in 1.6 to 9.8 s, to save 3 to 7 % of 2 to 4 s.
    if len(recipe.phases()) > 1 or strategies.accelerators(strategy)[0]:
        return recipe.phases(first_epoch)
    bounds = split([_frozen_from(recipe)], recipe.epochs, first_epoch)
    return [Phase(*bound, recipe.batch_size) for bound in bounds]


def _frozen_from(recipe: Recipe) -> int:
    """Returns the epoch from which steps leave out the gradient of whitening's bias; 0: never."""
    # Its rate is 0 then, but clipping counts it.
    return 0 if recipe.optimizer.clip_norm else math.ceil(recipe.optimizer.whitening_bias_epochs)


def begin_phase(model: tf.keras.Model, recipe: Recipe, epoch: int) -> None:
    """Makes the next `fit` compile a step for the batches and weights from `epoch` on."""
    model.train_function = None  # a second trace of one function has dynamic shapes
    step = model.train_step
    if not 0 < _frozen_from(recipe) <= epoch:
        return
    layers = [layer for layer in model.layers if isinstance(layer, Whitening)]

    # The bias's rate is 0 from here on. Without it the gradient of the layers' output is not
    # computed, which is large: 3 to 7 % of the time of the airbench recipes.
    def frozen_step(batch: Any) -> Any:
        # Only while the step is traced: `fit` resets what has changed since `compile`.
        for layer in layers:
            layer.trainable = False
        try:
            return step(batch)
        finally:
            for layer in layers:
                layer.trainable = True

    model.train_step = frozen_step


def prepare_in_steps(model: tf.keras.Model, data: Data) -> None:
    """Makes a model's training step prepare its batches, if the data set has `on_devices`."""
    # With a proxy or `hardest` it trains on the selected examples only.
    prepare, step = data.on_devices(), model.train_step
    if prepare and data.recipe.data.proxy:
        model.train_step = lambda batch: step(
            model.proxy.select(*prepare(*batch), model.optimizer.iterations)
        )
    elif prepare and data.recipe.data.hardest:
        whole = model.compute_loss

        def compute_loss(x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> tf.Tensor:
            model.hardest.record(y, y_pred)
            return whole(x, y, y_pred, sample_weight)

        model.compute_loss = compute_loss
        model.train_step = lambda batch: step(prepare(*model.hardest.select(batch)))
    elif prepare:
        model.train_step = lambda batch: step(prepare(*batch))
    # AutoGraph takes a second to convert each layer's `call` and the loss. None of them has control
    # flow that depends on tensors.
    model.train_step = tf.autograph.experimental.do_not_convert(model.train_step)


def _make_train_function(
    model: tf.keras.Model, waits: Waits | None, force: bool = False
) -> Callable[[Any], Any]:
    """Returns a function that runs training steps, and traces the step once."""
    # tf-keras's loop does not define a step's outputs before its first step. AutoGraph infers them
    # by tracing the step again: 0.5 s for a ResNet, 6 s for FastFusionNet, on the clock.
    if model.train_function is not None and not force:
        return model.train_function
    steps, count = model._steps_per_execution, model._steps_per_execution.numpy()
    steps.assign(1)
    keras_step = tf.keras.Model.make_train_function(model, force=True).python_function
    steps.assign(count)

    def one(batch: Any) -> Any:
        return keras_step(iter([batch]))

    sizes = [1]  # steps of an iteration
    if model.jit_compile and model.distribute_strategy.num_replicas_in_sync == 1:
        # An iteration of the loop begins when a GPU has ended the one before: with a step each, an
        # H200 waited for the host for 4.5 of 42 ms, with XLA and ResNet-50. XLA's step is a
        # function, traced and compiled once, so an iteration has ten; what is left goes one by one.
        sizes = [min(count, 10), 1]

        @partial(tf.function, jit_compile=True, autograph=False)
        def step_of_xla(batch: Any) -> Any:
            logs = model.train_step(batch)
            model._train_counter.assign_add(1)
            return logs

        def one(batch: Any) -> Any:
            return model.distribute_strategy.run(step_of_xla, args=(batch,))

    def several(iterator: Any, size: int) -> Any:
        first = waits.next(iterator, size) if waits else next(iterator)
        batches = [first, *(next(iterator) for _ in range(size - 1))]
        return [one(batch) for batch in batches][-1]

    @tf.function(reduce_retracing=True, autograph=False)
    def call(iterator: Any) -> Any:
        if count == 1:
            return several(iterator, 1)
        # `fit` lowers `steps` for an epoch's last call. TensorFlow computes int32 on the host.
        end = tf.cast(steps.read_value(), tf.int32)
        state = 0, {"loss": tf.zeros([])}
        for size in sizes:
            state = tf.while_loop(
                lambda step, _, size=size: step + size <= end,
                lambda step, _, size=size: (step + size, several(iterator, size)),
                state,
            )
        return state[1]

    def run(iterator: Any) -> Any:
        one_gpu = strategies.is_one_gpu(model.distribute_strategy)
        if one_gpu and not (model.jit_compile or call.experimental_get_tracing_count()):
            before = xla.traces()
            call.get_concrete_function(iterator)
            xla.compile_at_once([trace for trace in xla.traces() if trace not in before])
        return call(iterator)

    call._omit_frequent_tracing_warning = True  # each phase has a function of its own

    model.train_function, model.train_tf_function = run, call
    return run


class Calls(tf.keras.callbacks.Callback):
    """A Keras callback that sets the number of steps of the next call into TensorFlow.

    The first call of a `fit` compiles, and has one step, so that "compile" is little else. The
    second has the rest. A call ends early where an evaluation is due inside an epoch, as with the
    training's last step. The timer precedes it.
    """

    def __init__(self, timer: TimeToAccuracy) -> None:
        super().__init__()
        self._timer = timer

    def on_train_begin(self, logs: Any = None) -> None:
        self._usual = int(self.model._steps_per_execution.numpy())
        # For callbacks of the user's: made while a call has one step, these would have no loop.
        self.model.make_predict_function()
        self.model.make_test_function()
        self._begin = self._timer.step

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._set()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._set()

    def on_train_end(self, logs: Any = None) -> None:
        self.model._steps_per_execution.assign(self._usual)

    def _set(self) -> None:
        done, count = self._timer.step - self._begin, self._usual
        if done < self._usual:  # the first call of this `fit`, or the second
            count = self._usual - done if done else 1
        self.model._steps_per_execution.assign(min(count, self._timer.steps_to_evaluation))


@contextmanager
def refusing(
    recipe: Recipe,
    strategy: tf.distribute.Strategy,
    folder: Path | None = None,
    advice: Callable[[], str] = lambda: "lower it",
) -> Iterator[None]:
    """Raises Refusal for errors of `fit` that a user can fix: memory, lost workers, disk, data."""
    try:
        with dataset.refusing_damage():
            yield
    except (tf.errors.ResourceExhaustedError, MemoryError):
        text = f"does not fit into the device's memory; {advice()}"
        refuse("batch_size", recipe.batch_size, text)
    except strategies.LOST_WORKER:
        is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        if strategies.count_workers(strategy) == 1 and not is_tpu:
            raise  # of a bucket, or of the user's own code
        text = "a worker has ended, and its output says why; the same command on all workers "
        raise Refusal(text + "continues") from None
    except OSError as error:
        # Of the log. Any other is of a callback or of data of the user's.
        path = Path(os.fsdecode(error.filename or folder or "."))
        full = error.errno in terminal.OF_A_FULL_DISK
        if not (folder and path.is_relative_to(folder) if error.filename else full):
            raise
        raise files.cannot_write(path, error) from None


def checksum(values: Any) -> int:
    """Returns a checksum of the texts and arrays of a nest, less than 2^31 to fit int32."""
    digest = 0
    for leaf in tf.nest.flatten(values):
        if isinstance(leaf, str):
            digest = zlib.crc32(leaf.encode(errors="surrogatepass"), digest)
        elif isinstance(leaf, np.ndarray | tf.Tensor):
            digest = zlib.crc32(np.ascontiguousarray(leaf), digest)  # type: ignore[arg-type]
    return digest >> 1


def check_agreement(
    strategy: tf.distribute.Strategy,
    recipe: Recipe,
    options: RunOptions,
    epochs_done: int = 0,
    data: Data | None = None,
    model: tf.keras.Model | None = None,
) -> None:
    """Raises Refusal if workers have different checkpoints, recipes, flags, data or weights."""
    # Such workers would wait for each other forever, or train a mixture of recipes.
    if strategies.count_workers(strategy) == 1:
        return
    names = ("max_steps", "steps_per_execution", "data_format", "jit_compile", "deterministic")
    settings = recipe.values() | {name: getattr(options, name) or False for name in names}
    flags = {"name": "--recipe", "task": "--task or --task_name"}
    own = {
        "releases of dawnbench_tf": checksum([*settings]),
        "examples in --data_dir": checksum(data.splits) if data else 0,
        "weights, of --pretrained or a checkpoint": checksum(model.get_weights()) if model else 0,
        **{
            flags.get(name, f"--{name}"): checksum(json.dumps(value, sort_keys=True))
            for name, value in settings.items()
        },
    }
    facts = [epochs_done, *own.values()]
    facts += [0] * (256 - len(facts))  # a release with other settings gathers as many

    def gathered() -> tf.Tensor:
        own_facts = strategy.run(lambda: tf.constant([facts], tf.int32))
        return strategy.gather(own_facts, axis=0)  # (replicas, 256)

    epochs, *others = tf.function(gathered)().numpy().T.tolist()
    different = [source for source, each in zip(own, others, strict=False) if len({*each}) > 1]
    if len({*epochs}) > 1:
        reason = f"--output_dir: workers found checkpoints of epochs {sorted({*epochs})}; "
        reason += "it should be one folder that all workers see"
    elif different:
        listed = ", ".join(different[:3])
        reason = f"workers were given different {listed}; give all of them the same"
    else:
        return
    # A barrier: no worker exits before all have read the facts. It is a new tf.function: a second
    # call of the first one would meet workers that still wait for that one's values.
    with suppress(*strategies.LOST_WORKER):
        tf.function(gathered)()
    raise Refusal(reason)
