"""Profiles some steps of a training: which operations take the time of a step."""

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from dawnbench_tf import terminal
from dawnbench_tf.tta import TimeToAccuracy

__all__ = ["read", "Profile", "Profiler"]

ROWS = 10  # of a printed table
# Patterns of an operation's type or a kernel's name. A kernel can be of two kinds.
KINDS = {
    "batch normalization": re.compile(r"batch_?norm", re.I),
    "casts": re.compile(r"^cast\b|convert", re.I),
    "transposes": re.compile(r"transpose|SwapDimension|nchwToNhwc|nhwcToNchw", re.I),
}
_OPERATION = re.compile(r"[^:]:_?(?:Mkl)?(?:Native)?([A-Za-z]\w*)$")  # "conv/Conv2D:_MklConv2D"
_CONTAINERS = ("While", "If", "Call", "Case")  # the profile has the operations inside them, too


class Row(NamedTuple):
    """The time of one type of operation in a step, see `Profile`."""

    operation: str
    milliseconds: float
    calls: float


class Profile(NamedTuple):
    """The operations of a training step; `str()` is a table of the costliest.

    Attributes:
      device: "GPU" or "CPU".
      first: number of the first step that was profiled, from 1 on.
      steps: number of steps that were profiled.
      step_ms: duration of a step, in ms.
      busy_ms: GPU: time of a step in which the first GPU runs a kernel. CPU: sum of the operations'
        times; several run at the same time.
      rows: for each type of operation, the costliest first, its `operation`, e.g.
        "Conv2DBackpropFilter", or a kernel's name if XLA or a copy has none, and the sums of its
        `milliseconds` and `calls` in a step.
      kinds: name of a kind, e.g. "casts" -> share of the operations' time, of the kinds that an
        operation's name tells. They may overlap.
      input_share: share of the step in which the host waits for its batch.
    """

    device: str
    first: int
    steps: int
    step_ms: float
    busy_ms: float
    rows: list[Row]
    kinds: dict[str, float]
    input_share: float

    def __str__(self) -> str:
        total = sum(row.milliseconds for row in self.rows) or 1.0
        does = "GPU busy for" if self.device == "GPU" else "operations, some at a time:"
        lines = [
            f"profile of steps {self.first} to {self.first + self.steps - 1}: "
            f"{self.step_ms:.4g} ms a step; {does} {self.busy_ms:.4g} ms",
            f"{'operation':<40}{'ms a step':>12}{'share':>8}{'calls a step':>15}",
        ]
        rest = self.rows[ROWS:]
        times, counts = sum(row.milliseconds for row in rest), sum(row.calls for row in rest)
        others = Row(f"{len(rest)} others", times, counts)
        for name, milliseconds, calls in self.rows[:ROWS] + [others] * bool(rest):
            share = milliseconds / total
            name = terminal.cut(name, 39)
            lines.append(f"{name:<40}{milliseconds:>12.3f}{share:>8.1%}{calls:>15.1f}")
        kinds = ", ".join(f"{name} {share:.1%}" for name, share in self.kinds.items())
        wait = f"host waited for input: {self.input_share:.1%} of the step"
        return "\n".join(filter(None, [*lines, kinds, wait]))


def read(folder: str | Path, steps: int, seconds: float, first: int = 1) -> Profile:
    """Reads the newest profile in a folder that TensorFlow's profiler has written.

    Args:
      folder: the `logdir` of `tf.profiler.experimental.start`.
      steps: number of training steps that were profiled.
      seconds: their duration.
      first: number of the first of them.

    Raises:
      FileNotFoundError: it holds none.
    """
    files = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise FileNotFoundError(f"{folder}: holds no profile (*.xplane.pb)")
    space = xplane_pb2.XSpace.FromString(files[-1].read_bytes())
    host = next(plane for plane in space.planes if plane.name == "/host:CPU")
    gpu = next((plane for plane in space.planes if plane.name.startswith("/device:GPU")), None)
    took, kinds = defaultdict[str, float](float), defaultdict[str, float](float)
    calls = Counter[str]()
    for operation, kernel, milliseconds in _kernels(gpu) if gpu else _operations(host):
        took[operation] += milliseconds
        calls[operation] += 1
        for kind, pattern in KINDS.items():
            if pattern.search(operation) or pattern.search(kernel):
                kinds[kind] += milliseconds
    total = busy = sum(took.values())
    if gpu:  # kernels of several streams overlap
        busy = end = 0
        for begin, length in sorted((b, e.duration_ps) for b, _, e in _events(gpu, "Stream")):
            busy += max(0, begin + length - max(begin, end)) / 1e9
            end = max(end, begin + length)
    # The step waited for its batch in the thread that waits longest.
    waits = re.compile(r"IteratorGetNext\w*::DoCompute")
    ids = {key for key, data in host.event_metadata.items() if waits.match(data.name)}
    waited = [
        sum(event.duration_ps for event in line.events if event.metadata_id in ids)
        for line in host.lines
    ]
    rows = [Row(name, ms / steps, calls[name] / steps) for name, ms in took.items()]
    rows.sort(key=lambda row: -row.milliseconds)
    return Profile(
        "GPU" if gpu else "CPU",
        first,
        steps,
        seconds * 1e3 / steps,
        busy / steps,
        rows,
        {kind: kinds[kind] / total for kind in KINDS if kinds[kind]},
        max(waited) / 1e12 / seconds,
    )


def _events(plane: Any, lines: str) -> Iterator[tuple[int, str, Any]]:
    """Yields (begin in ps, name, event) of the lines of a plane whose names start with `lines`."""
    for line in plane.lines:
        for event in line.events if line.name.startswith(lines) else ():
            name = plane.event_metadata[event.metadata_id].name
            yield line.timestamp_ns * 1000 + event.offset_ps, name, event


def _operations(plane: Any) -> Iterator[tuple[str, str, float]]:
    """Yields (type, "", ms) of each operation on a CPU's threads."""
    for _, name, event in _events(plane, "tf_Compute"):
        match = _OPERATION.search(name)
        if match and not match[1].endswith(_CONTAINERS):
            yield match[1], "", event.duration_ps / 1e9


def _kernels(plane: Any) -> Iterator[tuple[str, str, float]]:
    """Yields (type, kernel, ms) of each kernel and copy on a GPU's streams."""
    for _, kernel, event in _events(plane, "Stream"):
        operation = ""
        for stat in event.stats:
            if plane.stat_metadata[stat.metadata_id].name in ("tf_op", "name"):
                operation = operation or stat.str_value or plane.stat_metadata[stat.ref_value].name
        match = _OPERATION.search(operation)
        name = match[1] if match else re.sub(r"[._]\d+", "", operation or kernel)
        yield name, kernel, event.duration_ps / 1e9


class Profiler(tf.keras.callbacks.Callback):
    """A Keras callback that profiles some steps of `fit`, of any model, and prints their table.

    It profiles whole calls into TensorFlow. The first one starts at the first step or later. The
    last one contains the last step or ends the epoch. The first call of a `fit` compiles, and is
    never profiled.

    Args:
      folder: where the profile is written, for TensorBoard.
      steps: (first, last) step, from 1 on.
      timer: the timer that precedes this callback in `callbacks`. Its clock stops while the
        profiler starts and while it writes. None: no timer.

    Attributes:
      profile: the `Profile`, once the steps have been trained; else None.
    """

    def __init__(
        self, folder: str | Path, steps: Sequence[int], timer: TimeToAccuracy | None = None
    ) -> None:
        super().__init__()
        self.profile: Profile | None = None
        self._folder, self._timer = str(folder), timer
        self._first, self._last = steps
        self._step = 0  # steps done
        self._begun: tuple[int, float] | None = None  # steps and time at which it began

    def on_train_begin(self, logs: Any = None) -> None:
        self._compiled, self._begun = False, None
        self._step = self._timer.step if self._timer else self._step

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._in_epoch = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        due = self._compiled and self._step + 1 >= self._first
        if due and not self._begun and not self.profile:
            with self._not_counted(), terminal.silent():  # CUPTI logs at every level
                with suppress(tf.errors.UnavailableError):  # of a `fit` that an exception ended
                    tf.profiler.experimental.stop(save=False)
                tf.profiler.experimental.start(self._folder)
            self._begun = self._step, time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        done = batch + 1 - self._in_epoch
        self._step, self._in_epoch = self._step + done, batch + 1
        self._compiled, self._now = True, time.monotonic()
        last = self._in_epoch >= (self.params.get("steps") or math.inf)  # an evaluation may follow
        if self._timer:  # it comes after this one, and evaluates then
            last |= done >= self._timer.steps_to_evaluation
        if last or self._step >= self._last or self.model.stop_training:
            self._finish()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._finish()  # of a data set of unknown length

    def on_train_end(self, logs: Any = None) -> None:
        last_step = self._timer.last_step if self._timer else None
        over = last_step in (None, self._step) or self.model.stop_training  # else a phase follows
        if self.profile or not over:
            return
        reason = f"training ended at step {self._step}, before {self._first}"
        if self._step >= self._first:
            reason = f"no call but the first, which compiles, began at step {self._first} or later"
        terminal.say(f"no steps were profiled: {reason}")

    def _finish(self) -> None:
        if not self._begun:
            return
        (step, begin), self._begun = self._begun, None
        with self._not_counted():
            with terminal.silent():
                tf.profiler.experimental.stop()
            self.profile = read(self._folder, self._step - step, self._now - begin, step + 1)
            if self.profile.device == "CPU" and tf.config.list_logical_devices("GPU"):
                text = "the driver may let only root read a GPU's counters"
                terminal.say(f"the profile is the CPU's: {text}")
        text = str(self.profile)
        if self.profile.device == "CPU" and getattr(self.model, "jit_compile", False):
            text = (
                f"{self.profile.step_ms:.4g} ms a step; no table of it: XLA made the step one "
                "operation, and a CPU's profile has nothing inside it; --nojit_compile has"
            )
        terminal.say(text)

    def _not_counted(self) -> AbstractContextManager[None]:
        return self._timer.clock.part("measure") if self._timer else nullcontext()
