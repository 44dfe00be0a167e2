"""Utilization of the machine: model FLOPs utilization, memory, energy, input wait, communication.

Model FLOPs utilization (MFU) is defined as in MLPerf's training policies: operations of the model's
convolutions and matrix products, without recomputation, over the peak of the devices.
"""

import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf import models, terminal
from dawnbench_tf.data.placement import Waits
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipe.schedule import split, steps_before
from dawnbench_tf.training import strategies
from dawnbench_tf.tta import TimeToAccuracy

RAPL = Path("/sys/class/powercap")
# Operations of a step over those of the forward pass, by MLPerf's convention: forward, gradients of
# the layers' inputs, gradients of the weights. The images get no gradient, so a step really does
# 0.1 to 2 % less (2.935 to 2.999), and airbench94's 4 % less where whitening's bias is frozen.
STEP_TO_FORWARD = 3
PEAK_SECONDS = 0.1  # a peak's measurement ends after this time without a faster call
_MOST_SECONDS = 1.0
_SIDES = {"CPU": (1024, 16), "GPU": (8192, 256)}  # side of the matrix, images in the batch
_MATRIX = ("Conv", "MatMul", "Einsum", "RNN", "LSTM", "GRU")  # operations that are counted
_ALL_REDUCES = 5  # timed, of which the median counts


class Utilization(tf.keras.callbacks.Callback):
    """A Keras callback that measures the utilization; the timer precedes it in `callbacks`.

    It adds MFU and input wait to each epoch's logs, where TensorBoard reads them.
    """

    def __init__(
        self,
        recipe: Recipe,
        options: RunOptions,
        strategy: tf.distribute.Strategy,
        timer: TimeToAccuracy,
        waits: Waits | None,
    ):
        super().__init__()
        self._recipe, self._options, self._strategy = recipe, options, strategy
        self._timer, self._waits = timer, waits
        self._workers = strategies.count_workers(strategy)
        local_replicas = strategy.num_replicas_in_sync // self._workers
        self._gpus = min(len(tf.config.list_logical_devices("GPU")), local_replicas)
        self._seconds = self._trained()  # of earlier processes, whose energy nobody recorded

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if hasattr(self, "_energy"):  # a later `fit`, with other batches
            return
        with self._timer.clock.part("measure"):
            changing = self._recipe.data.hardest and self._recipe.later_batch_sizes
            self._flops = None if changing else step_flops(self.model, self._recipe.batch_size)
            self._peak, self._peak_from = self._device_peak()
            self._energy = Energy(self._gpus)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if logs is not None:
            logs |= {name: share for name, share in self._shares().items() if share is not None}

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        last = self._timer.last_step
        if last is None or self._timer.step >= last or self._timer.reached:
            self._timer.clock.switch("other")  # `fit` still has to stop its pipelines: no training

    def tick(self) -> None:
        """Reads the energy counters; call it every few seconds, from any thread."""
        if hasattr(self, "_energy"):
            self._energy.tick()

    def facts(self) -> dict[str, Any]:
        """Returns the measurements in the form of an entry's misc; None stands for unknown."""
        # Call it after `fit`, on every worker: it measures the communication.
        with self._timer.clock.part("measure"):
            exchange = communication_seconds(self.model, self._strategy)
            if self._peak and not self._options.peak_tflops:
                before = self._peak, self._peak_from
                self._peak, self._peak_from = max(before, self._device_peak())
        speed = self._timer.examples_per_second
        joules = None if self._seconds else self._energy.joules
        sources = [] if joules is None else self._energy.sources
        sizes = self._recipe.batch_sizes, self._recipe.sizes
        one_size = all(len(set(numbers)) == 1 for numbers in sizes)
        step_seconds = self._recipe.batch_size / speed if speed and one_size else None
        exceeded = ", which training exceeded: no share of it; --peak_tflops gives a device's own"
        facts: dict[str, Any] = {
            "examplesPerSecond": speed,
            "flopsPerExample": self._flops,
            "flopsPerSecond": self._rate(),
            "peakFlopsPerSecond": self._peak,
            "peakFrom": self._peak_from + exceeded * self._exceeded(),
            **self._shares(),
            "stepSeconds": step_seconds,
            "gradientBytes": sum(
                weight.dtype.size * weight.shape.num_elements()
                for weight in self.model.trainable_variables
            ),
            "communicationSecondsPerStep": exchange,
            "communicationShare": exchange / step_seconds if exchange and step_seconds else None,
            **memory(),
            "energyJoules": joules,
            "energyFrom": [name + ", of worker 0" * (self._workers > 1) for name in sources],
        }
        # 4 significant figures of measured values
        return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in facts.items()}

    def _trained(self) -> float:
        """Returns the seconds of training steps on the clock, with compilation."""
        parts = self._timer.clock.parts()
        return parts.get("train", 0.0) + parts.get("compile", 0.0)

    def _rate(self) -> float | None:
        """Returns the model's operations a second, or None."""
        speed = self._timer.examples_per_second
        return self._flops * speed if self._flops and speed else None

    def _exceeded(self) -> bool:
        """Whether training was faster than the measured peak, which then is wrong: no MFU."""
        return bool(self._peak and (self._rate() or 0) > self._peak)

    def _shares(self) -> dict[str, float | None]:
        """Returns MFU, and input wait over the seconds of training; None where unknown."""
        rate, seconds = self._rate(), self._trained() - self._seconds
        share = rate / self._peak if rate and self._peak else None
        return {
            "shareOfPeak": None if self._exceeded() else share,
            "inputWaitShare": self._waits.seconds / seconds if self._waits and seconds else None,
        }

    def _device_peak(self) -> tuple[float | None, str]:
        """Returns the peak of all devices together in operations a second, and its source."""
        # Replicas on one machine's CPU share its cores, so its peak counts once a machine.
        on_tpu = isinstance(self._strategy, tf.distribute.TPUStrategy)
        devices = self._strategy.num_replicas_in_sync if self._gpus or on_tpu else self._workers
        if self._options.peak_tflops:
            return self._options.peak_tflops * 1e12 * devices, "--peak_tflops"
        if on_tpu:
            return None, "not measured on TPUs; --peak_tflops gives it"
        peak, operation = measure_peak(self._recipe.precision)
        return peak * devices, operation


def memory() -> dict[str, float]:
    """Returns the peak memory so far in GiB: of the process and, with GPUs, of the fullest GPU."""
    used = {"processGiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    if names:
        short = [name.rpartition("device:")[2] for name in names]  # "GPU:10"
        most = max(tf.config.experimental.get_memory_info(name)["peak"] for name in short)
        used["deviceGiB"] = most / 2**30
    return used


def format_line(facts: Mapping[str, Any]) -> str:
    """Formats the measurements in one line; unknown ones are left out."""
    parts = []
    if facts.get("flopsPerSecond"):
        rate, share = facts["flopsPerSecond"], facts.get("shareOfPeak")
        peak = f", {share:.1%} of the peak of {facts['peakFrom']}" if share else ""
        speed = f"{rate / 1e12:,.4g} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:.4g} GFLOP/s"
        parts.append(f"{speed}{peak}")
    if facts.get("inputWaitShare") is not None:
        parts.append(f"waited for input {facts['inputWaitShare']:.1%}")
    if facts.get("communicationShare") is not None:
        parts.append(f"communication {facts['communicationShare']:.1%} of a step at most")
    if facts.get("processGiB"):
        gpu = f", a GPU {facts['deviceGiB']:.2f} GiB" if facts.get("deviceGiB") else ""
        parts.append(f"memory {facts['processGiB']:.2f} GiB{gpu}")
    if facts.get("energyJoules"):
        parts.append(f"energy {facts['energyJoules']:,.0f} J ({', '.join(facts['energyFrom'])})")
    return f"used: {'; '.join(parts) or 'not recorded'}"


def forward_flops(model: tf.keras.Model, side: int = 0) -> int | None:
    """Returns the operations of convolutions and matrix products for one example."""
    # A multiply-add counts as 2. None if the graph does not tell: the input has no fixed shape, or
    # the products are in a loop. `side` is for a network that takes images of any size.
    shape = model.input_shape
    if not isinstance(shape, tuple) or not all(length or side for length in shape[1:]):
        return None
    images = tf.TensorSpec((1, *(length or side for length in shape[1:])), tf.float32)
    function = tf.function(lambda batch: model(batch, training=False), autograph=False)
    graph = function.get_concrete_function(images).graph
    inner = (node.op for f in graph.as_graph_def().library.function for node in f.node_def)
    if any(word in operation for operation in inner for word in _MATRIX):
        return None  # inside a loop or a function, with an unknown number of calls
    builder = tf.compat.v1.profiler.ProfileOptionBuilder
    options = builder(builder.float_operation()).with_empty_output()
    options = options.with_accounted_types([f".*{word}.*" for word in _MATRIX]).build()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # hides advice on migrating to TensorFlow 2
    with terminal.silent():  # it counts operations of unknown shape
        profile = tf.compat.v1.profiler.profile(graph, options=options, cmd="scope")
    logger.setLevel(level)
    return profile.total_float_ops


def step_flops(model: tf.keras.Model, batch_size: int, side: int = 0) -> int | None:
    """Returns the operations of a training step for each example of its batch; None: unknown."""
    if not all(layer.trainable for layer in model.layers):
        return None  # frozen layers have no backward pass
    forward, proxy = forward_flops(model, side), getattr(model, "proxy", None)
    if forward is None or not proxy:
        hardest = getattr(model, "hardest", None)
        count = hardest.count if hardest else batch_size
        return forward and flops_per_example(forward, share=min(count, batch_size) / batch_size)
    selection = forward_flops(proxy.network, side)
    return selection and flops_per_example(forward, selection, proxy.share, proxy.every)


def flops_per_example(forward: float, proxy: float = 0, share: float = 1, every: int = 1) -> int:
    """Returns the operations of a training step for each example of its batch."""
    # A `share` of the batch is trained on, by a network of `forward` operations. One of `proxy`
    # operations selects it, and trains in every Nth step.
    selection = proxy + proxy * (STEP_TO_FORWARD - 1) / every
    return round(forward * STEP_TO_FORWARD * share + selection)


def shape_in(recipe: Recipe, epoch: int) -> tuple[int, int]:
    """Returns batch size and image size of an epoch."""
    changes = getattr(recipe.data, "image_size_epochs", ())
    size = recipe.sizes[sum(epoch >= change for change in changes)]
    return recipe.in_epoch(epoch).batch_size, size


def training_flops(recipe: Recipe, epoch_steps: Sequence[int]) -> float:
    """Returns the operations of all epochs of a recipe with an image network of the catalogue."""
    model, data, total = models.get(recipe.model), recipe.data, 0.0
    proxy = 2 * (models.get(data.proxy).multiply_adds or 0) if data.proxy else 0
    for begin, end in split(recipe.shape_changes, recipe.epochs, 0):
        batch_size, side = shape_in(recipe, begin)
        steps = steps_before(min(end, recipe.epochs), epoch_steps)
        steps = math.ceil(round(steps - steps_before(begin, epoch_steps), 6))
        hardest = min(data.hardest or batch_size, batch_size) / batch_size
        share = data.proxy_share if data.proxy else hardest
        each = flops_per_example(2 * (model.multiply_adds or 0), proxy, share, data.proxy_every)
        total += steps * batch_size * each * (side / model.image_size) ** 2
    return total


def measure_peak(precision: str) -> tuple[float, str]:
    """Measures the peak of the first device: operations a second, and of which operation."""
    # It is the faster of a large matrix product and a 3x3 convolution. On a busy machine the result
    # is below the device's peak; measure several times and keep the largest.
    device = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    dtype = tf.as_dtype(tf.keras.mixed_precision.Policy(precision).compute_dtype)
    side, images = _SIDES[device]
    with tf.device(f"{device}:0"):
        matrix = tf.cast(tf.eye(side), dtype)
        batch = tf.ones([images, 32, 32, 128], dtype)
        kernel = tf.ones([3, 3, 128, 128], dtype)
        product = _rate(lambda: tf.matmul(matrix, matrix), 2 * side**3)
        flops = 2 * 9 * 128 * 128 * 32 * 32 * images
        convolution = _rate(lambda: tf.nn.conv2d(batch, kernel, 1, "SAME"), flops)
    return max((product, "a matrix product"), (convolution, "a convolution"))


def _rate(operation: Callable[[], tf.Tensor], flops: int) -> float:
    """Returns operations a second in the fastest of several calls, each until its result."""
    function = tf.function(lambda: tf.reduce_max(operation()), autograph=False)
    function._omit_frequent_tracing_warning = True
    function().numpy()  # traces and compiles
    begin = latest = now = time.monotonic()
    best = math.inf
    # An idle GPU raises its clock during the first calls, by 6 % of the peak.
    while now < min(latest + PEAK_SECONDS, begin + _MOST_SECONDS):
        function().numpy()
        before, now = now, time.monotonic()
        if now - before < 0.99 * best:
            latest = now
        best = min(best, now - before)
    return flops / best


def communication_seconds(model: tf.keras.Model, strategy: tf.distribute.Strategy) -> float | None:
    """Measures a step's communication alone, without computation: median seconds."""
    # It all-reduces all gradients, and two statistics of each synchronized BN layer, forward and
    # backward. An upper bound of the communication's part in a step, where it may overlap with
    # computation. None with one replica.
    if strategy.num_replicas_in_sync == 1:
        return None
    means = [
        layer.moving_mean
        for layer in model._flatten_layers()
        if getattr(layer, "synchronized", False) and hasattr(layer, "moving_mean")
    ]

    def on_its_device(variable: tf.Variable) -> tf.Tensor:
        with tf.device(variable.device):  # as the all-reduce of several workers requires
            return tf.identity(variable)

    def exchange() -> tf.Tensor:
        # One all-reduce for each BN layer and direction, one for all gradients, as in a step.
        groups = [[on_its_device(mean)] * 2 for mean in (*means, *means)]
        groups.append([on_its_device(weight) for weight in model.trainable_variables])
        all_reduce = tf.distribute.get_replica_context().all_reduce
        sums = [x for group in groups for x in all_reduce(tf.distribute.ReduceOp.SUM, group)]
        return tf.add_n([tf.cast(tf.reshape(x, [-1])[0], tf.float32) for x in sums])

    function = tf.function(lambda: strategy.run(exchange))
    seconds = []
    for _ in range(1 + _ALL_REDUCES):
        begin = time.monotonic()
        for value in strategy.experimental_local_results(function()):
            value.numpy()
        seconds.append(time.monotonic() - begin)
    return float(np.median(seconds[1:]))  # the first call traces and compiles


class Energy:
    """The energy used since the object was created, in joules, with the first GPUs.

    `tick()` has to be called more often than a counter overflows; RAPL's overflow within minutes.
    RAPL counts whole sockets and their memory, so it includes other programs.
    """

    def __init__(self, gpus: int = 0, root: Path = RAPL):
        self._joules = 0.0
        readings = {counter: counter[1]() for counter in (*_rapl(root), *_nvml(gpus))}
        self._readings = {c: last for c, last in readings.items() if not math.isnan(last + c[2])}
        if sum(source == "NVML" for source, _, _ in self._readings) < gpus:
            self._readings = {}  # the energy without that of the GPUs would be no answer
        self.sources = sorted({source for source, _, _ in self._readings})

    def tick(self) -> None:
        """Reads the counters."""
        for counter, last in self._readings.items():
            _, read, highest = counter
            now = read()
            if not math.isnan(now):  # a failed read loses nothing: counters are cumulative
                # A counter that has fallen wrapped, at most once.
                self._joules += now - last if now >= last else now - last + highest
                self._readings[counter] = now

    @property
    def joules(self) -> float | None:
        """Joules so far; None if the machine has no readable counter."""
        return self._joules if self._readings else None


_Counter = tuple[str, Callable[[], float], float]  # source; joules, or nan; the highest value


def _rapl(root: Path) -> Iterator[_Counter]:
    """Yields counters of each socket (AMD's too) and its memory; most need root to be read."""

    def joules(file: Path) -> float:
        try:
            return int(file.read_text()) / 1e6
        except (OSError, ValueError):
            return math.nan

    for folder in sorted(root.glob("intel-rapl:*")):
        # A package includes its "core" and "uncore"; "psys" includes the packages and more.
        name = folder / "name"
        if name.is_file() and name.read_text().startswith(("package", "dram")):
            highest = joules(folder / "max_energy_range_uj")
            yield "RAPL", partial(joules, folder / "energy_uj"), highest


def _nvml(gpus: int) -> list[_Counter]:
    """Returns a counter for each of the first GPUs that CUDA shows; [] if that is not certain."""
    if not gpus:
        return []
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        uuids, models = (
            [*map(f, handles)] for f in (nvml.nvmlDeviceGetUUID, nvml.nvmlDeviceGetName)
        )
    except ImportError:
        return []
    except nvml.NVMLError:  # no driver
        return []

    def joules(handle: Any) -> float:
        try:
            return nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3
        except nvml.NVMLError:  # a GPU without an energy counter, or one that is lost
            return math.nan

    def is_divided(handle: Any) -> bool:
        try:
            return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
        except nvml.NVMLError:  # a GPU without MIG
            return False

    # NVML numbers GPUs by their place on the bus. CUDA does if CUDA_DEVICE_ORDER is PCI_BUS_ID, and
    # puts the fastest first if not: then a number says which GPU it is only among equal ones.
    numbers = [str(number) for number in range(len(handles))]
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    certain = dict(zip(numbers, handles, strict=True)) if by_bus or len({*models}) == 1 else {}
    used = []
    for name in os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(numbers)).split(",")[:gpus]:
        uuid = name.strip()  # or the start of one
        same = [handle for handle, own in zip(handles, uuids, strict=True) if own.startswith(uuid)]
        used += [certain[uuid]] if uuid in certain else same[:1]
    if len(used) < gpus or any(map(is_divided, used)):  # MIG instances share their GPU's counter
        return []
    return [("NVML", partial(joules, handle), 0.0) for handle in used]
