"""How much of the machine a run uses: of its peak, its memory, its energy; and what it waits for.

Model FLOPs utilization as MLPerf's training policies have it: operations of the model's
convolutions and matrix products, recomputation left out, over what the device could have done.
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
_FIGURES = 4  # that are significant, of what is measured


class Utilization(tf.keras.callbacks.Callback):
    """Measures a `fit`; hands TensorBoard the shares with each epoch's logs.

    Args:
      recipe: what is trained.
      run: where; `peak_tflops` is measured if it is 0.
      strategy: that the model was made under.
      timer: TimeToAccuracy; it must come before this in `callbacks`.
      waits: of the training batches; None: they are not timed.
    """

    def __init__(
        self,
        recipe: Recipe,
        run: RunOptions,
        strategy: tf.distribute.Strategy,
        timer: TimeToAccuracy,
        waits: Waits | None,
    ):
        super().__init__()
        self._recipe, self._run, self._strategy = recipe, run, strategy
        self._timer, self._waits = timer, waits
        of_this_machine = strategy.num_replicas_in_sync // self._workers()
        self._gpus = min(len(tf.config.list_logical_devices("GPU")), of_this_machine)

    def on_train_begin(self, logs=None):
        clock = self._timer.clock
        with clock.part("measure"):
            forward = peaks.forward_flops(self.model)
            self._flops = None if forward is None else forward * peaks.STEP_TO_FORWARD
            self._peak, self._peak_from = self._device_peak()
            self._energy = Energy(self._gpus)
        self._step, self._seconds = self._timer.step, self._trained()

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs.update(
                {name: value for name, value in self._shares().items() if value is not None}
            )

    def on_train_end(self, logs=None):
        self._timer.clock.switch("other")  # nothing trains while `fit` takes its pipelines down

    def tick(self) -> None:
        """Reads counters that overflow; to be called every few seconds, from any thread."""
        if hasattr(self, "_energy"):
            self._energy.tick()

    def facts(self) -> dict[str, Any]:
        """What was measured of this process, as an entry's misc has it; what is not known is None.

        Replicas take part in it together, at the end of `fit`.
        """
        with self._timer.clock.part("measure"):
            exchange = communication.seconds_per_step(self.model, self._strategy)
            if self._peak and not self._run.peak_tflops:
                before = self._peak, self._peak_from
                self._peak, self._peak_from = max(before, self._device_peak())
        self._energy.tick()
        steps = self._timer.step - self._step
        step_seconds = (self._trained() - self._seconds) / steps if steps else None
        share = exchange / step_seconds if exchange and step_seconds else None
        facts = {
            "examplesPerSecond": self._timer.examples_per_second,
            "flopsPerExample": self._flops,
            "flopsPerSecond": self._rate(),
            "peakFlopsPerSecond": self._peak,
            "peakFrom": self._peak_from + (EXCEEDED if self._exceeded() else ""),
            **self._shares(),
            "inputWaitSeconds": self._waits and self._waits.seconds,
            "communicationSecondsPerStep": exchange,
            "communicationShare": share,
            **memory(),
            "energyJoules": self._energy.joules,
            "energyFrom": self._energy.sources,
        }
        return {name: _rounded(value) for name, value in facts.items()}

    def _trained(self):
        """Seconds of training steps on the clock."""
        parts = self._timer.clock.parts()
        return parts.get("train", 0.0) + parts.get("compile", 0.0)

    def _rate(self):
        speed = self._timer.examples_per_second
        return self._flops * speed if self._flops and speed else None

    def _exceeded(self):
        """Whether training did more than the peak: then that is none, and there is no share."""
        return bool(self._peak and (self._rate() or 0) > self._peak)

    def _shares(self):
        rate, seconds = self._rate(), self._trained() - self._seconds
        share = rate / self._peak if rate and self._peak else None
        return {
            "shareOfPeak": None if self._exceeded() else share,
            "inputWaitShare": self._waits.seconds / seconds if self._waits and seconds else None,
        }

    def _device_peak(self):
        """Operations a second of all devices together, and where that is from."""
        replicas = self._strategy.num_replicas_in_sync
        if self._run.peak_tflops:
            return self._run.peak_tflops * 1e12 * replicas, "--peak_tflops"
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            return None, "not measured on TPUs; --peak_tflops gives it"
        peak, operation = peaks.measure_peak(self._recipe.precision)
        return peak * (replicas if self._gpus else self._workers()), operation

    def _workers(self):
        """Machines; replicas on one machine's CPU share all of it."""
        resolver = self._strategy.cluster_resolver
        cluster = resolver.cluster_spec().as_dict() if resolver else {}
        return len(cluster.get("worker", [None]))


def memory() -> dict[str, float]:
    """The most memory so far, in GiB: of the process and, where there are any, of a GPU."""
    used = {"processGiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    if names:
        short = [name.rpartition("device:")[2] for name in names]  # "GPU:10"
        peaks_of = [tf.config.experimental.get_memory_info(name)["peak"] for name in short]
        used["deviceGiB"] = max(peaks_of) / 2**30
    return used


def line(facts: Mapping[str, Any]) -> str:
    """What was used, in a line for people; what is not known is left out."""
    parts = []
    if facts.get("flopsPerSecond"):
        rate, share = facts["flopsPerSecond"] / 1e9, facts.get("shareOfPeak")
        of_peak = f", {share:.1%} of the peak of {facts['peakFrom']}" if share else ""
        parts.append(f"{rate:,.4g} GFLOP/s{of_peak}")
    if facts.get("inputWaitShare") is not None:
        parts.append(f"waited for input {facts['inputWaitShare']:.1%}")
    if facts.get("communicationShare") is not None:
        parts.append(f"communication {facts['communicationShare']:.1%} of a step at most")
    if facts.get("processGiB"):
        of_gpu = f", a GPU {facts['deviceGiB']:.2f} GiB" if facts.get("deviceGiB") else ""
        parts.append(f"memory {facts['processGiB']:.2f} GiB{of_gpu}")
    if facts.get("energyJoules"):
        parts.append(f"energy {facts['energyJoules']:,.4g} J ({', '.join(facts['energyFrom'])})")
    return f"used: {'; '.join(parts) or 'not recorded'}"


def _rounded(value):
    return float(f"{value:.{_FIGURES}g}") if isinstance(value, float) else value
