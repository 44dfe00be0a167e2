"""Utilization of the machine: model FLOPs utilization, memory, energy, input wait, communication.

Model FLOPs utilization (MFU) is defined as in MLPerf's training policies: operations of the model's
convolutions and matrix products, without recomputation, over the peak of the devices.
"""

import resource
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from dawnbench_tf.data.waits import Waits
from dawnbench_tf.options import RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.training import communication, peaks
from dawnbench_tf.training.energy import Energy
from dawnbench_tf.tta import TimeToAccuracy

EXCEEDED = ", which training exceeded: no share of it; --peak_tflops gives a device's own"
_FIGURES = 4  # significant figures of measured values


class Utilization(tf.keras.callbacks.Callback):
    """A Keras callback that measures the utilization during `fit`.

    It adds MFU and input wait to each epoch's logs, where TensorBoard reads them.

    Args:
      recipe: the recipe that is trained.
      options: the run's options; a `peak_tflops` of 0 is measured.
      strategy: strategy of the model.
      timer: TimeToAccuracy; it has to precede this callback in `callbacks`.
      waits: input wait of the training batches; None: not measured.
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
        local_replicas = strategy.num_replicas_in_sync // self._workers()
        self._gpus = min(len(tf.config.list_logical_devices("GPU")), local_replicas)

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if hasattr(self, "_energy"):  # a later `fit`, with other batches
            return
        clock = self._timer.clock
        with clock.part("measure"):
            changing = self._recipe.data.hardest and self._recipe.later_batch_sizes
            size = self._recipe.batch_size
            self._flops = None if changing else peaks.step_flops(self.model, size)
            self._peak, self._peak_from = self._device_peak()
            self._energy = Energy(self._gpus)
        self._seconds = self._trained()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if logs is not None:
            logs.update(
                {name: value for name, value in self._shares().items() if value is not None}
            )

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        last = self._timer.last_step
        if last is None or self._timer.step >= last or self._timer.reached:
            self._timer.clock.switch("other")  # `fit` still has to stop its pipelines: no training

    def tick(self) -> None:
        """Reads the energy counters; call it every few seconds, from any thread."""
        if hasattr(self, "_energy"):
            self._energy.tick()

    def facts(self) -> dict[str, Any]:
        """Returns the measurements in the form of an entry's misc; None stands for unknown.

        Call it after `fit`, on every worker: it measures the communication.
        """
        with self._timer.clock.part("measure"):
            exchange = communication.seconds_per_step(self.model, self._strategy)
            if self._peak and not self._options.peak_tflops:
                before = self._peak, self._peak_from
                self._peak, self._peak_from = max(before, self._device_peak())
        self._energy.tick()
        speed, sources = self._timer.examples_per_second, self._energy.sources
        sizes = self._recipe.batch_sizes, self._recipe.sizes
        one_size = all(len(set(numbers)) == 1 for numbers in sizes)
        step_seconds = self._recipe.batch_size / speed if speed and one_size else None
        facts = {
            "examplesPerSecond": speed,
            "flopsPerExample": self._flops,
            "flopsPerSecond": self._rate(),
            "peakFlopsPerSecond": self._peak,
            "peakFrom": self._peak_from + (EXCEEDED if self._exceeded() else ""),
            **self._shares(),
            "inputWaitSeconds": self._waits and self._waits.seconds,
            "stepSeconds": step_seconds,
            "gradientBytes": sum(map(_bytes, self.model.trainable_variables)),
            "communicationSecondsPerStep": exchange,
            "communicationShare": exchange / step_seconds if exchange and step_seconds else None,
            **memory(),
            "energyJoules": self._energy.joules,
            "energyFrom": [name + ", of worker 0" * (self._workers() > 1) for name in sources],
        }
        return {name: _rounded(value) for name, value in facts.items()}

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
        replicas = self._strategy.num_replicas_in_sync
        if self._options.peak_tflops:
            return self._options.peak_tflops * 1e12 * replicas, "--peak_tflops"
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            return None, "not measured on TPUs; --peak_tflops gives it"
        peak, operation = peaks.measure_peak(self._recipe.precision)
        # Replicas on one machine's CPU share its cores, so its peak counts once a machine.
        return peak * (replicas if self._gpus else self._workers()), operation

    def _workers(self) -> int:
        """Returns the number of machines."""
        resolver = self._strategy.cluster_resolver
        cluster = resolver.cluster_spec().as_dict() if resolver else {}
        return len(cluster.get("worker", [None]))


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


def _bytes(variable: tf.Variable) -> int:
    return variable.dtype.size * variable.shape.num_elements()


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_FIGURES}g}") if isinstance(value, float) else value
