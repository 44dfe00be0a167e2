"""TimeToAccuracy: a Keras callback that times training to a threshold, logs it, and stops there.

It works in anybody's `fit`:

    timer = TimeToAccuracy(0.94, metric="val_accuracy", log="tta.tsv")
    model.fit(x, y, validation_data=(x_test, y_test), epochs=100, callbacks=[timer])
    timer.reached, timer.rows[-1]["hours"]

`compare` reads the logs of several fits of two kinds.
"""

import contextlib
import copy
import csv
import inspect
import logging
import math
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from numbers import Real
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import files
from dawnbench_tf.clock import Clock, Hit
from dawnbench_tf.refusals import Refusal, refusing

__all__ = ["TimeToAccuracy", "compare", "Versus"]

Logs = dict[str, Any] | None

# Words of the names of metrics of which more, or less, is better.
_MAX = {"accuracy", "acc", "auc", "precision", "recall", "f1", "iou", "top"}
_MIN = {"loss", "error", "err", "crossentropy", "divergence", "perplexity"}
_MIN |= {"mse", "mae", "rmse", "mape"}
_KERAS = {"keras", "tf_keras", "tensorflow"}  # packages
_KERAS_S = {"model", "_model", "validation_data"}  # attributes that Keras gives a callback
_FRACTIONS = "accuracy|acc|auc|precision|recall|f1_score"  # Keras's, in 0..1


class TimeToAccuracy(tf.keras.callbacks.Callback):
    """Stops training when a metric reaches its threshold; logs time by DAWNBench's rules.

    `rows` has a dict for each evaluation, `{"epoch", "hours", metric, ...}`, with the hours on the
    clock when the training before it ended.

    On the clock: compiling, that is from `on_train_begin` to the end of the first execution, and
    each epoch from its begin to the end of its last step on the device, with its input and what
    callbacks do inside it: a checkpoint every 100 steps counts, and `on_epoch_begin` of callbacks
    that stand after this one in `callbacks`. Off the clock: all that follows, until the next epoch
    begins: validation, `evaluate`, and what other callbacks do at the end of an epoch, whatever
    their order. Also off it: `evaluate` inside an epoch, the time between two
    calls of `fit`, and, if an exception ends `fit`, all after the last step or epoch before it; and
    what `fit` does before it calls callbacks: it copies arrays, and draws a generator's first item.

    Each `fit` begins with no rows, at step 0, and with the clock at 0 unless `clock` was given. To
    go on from an earlier `fit`, call `timer.restore(timer.state())` before the next one; in another
    process, `restore` what `state` returned in the first. A copy, by `copy.deepcopy` or `pickle`,
    has a clock of its own, and no model.

    Under Keras 3 it works with each backend; a fraction in `every` does not with JAX, whose weights
    cannot be evaluated inside an epoch.

    Args:
      threshold: value of the metric at which training stops, in the metric's unit; reached when
        the metric is at least the threshold, or at most with mode="min", but for rounding: Keras's
        metrics are float32, in which 94 of 100 is less than 0.94. An error below 0.3 % is rounded
        by more, and may be missed.
      metric: name of the metric, in what `evaluate` returns or in Keras's logs; a single number,
        not one a class.
      evaluate: function `() -> {name: value}` with single numbers, called while the clock stops.
        None: the metric is read from Keras's logs at the end of each epoch; val_... then needs
        validation_data, and an epoch that `validation_freq` leaves out has no row.
      every: epochs between evaluations, over 0. A fraction needs `evaluate`; the evaluation then
        waits for the end of an execution (`steps_per_execution`), and one alone counts of several
        that were due in it.
      first: number of epochs before which nothing is evaluated, but after the last epoch.
      mode: "max" if more is better, "min" if less is; "auto" infers it from the metric's name,
        and refuses a name that tells neither.
      clock: a Clock that runs already, to count loading and building too; None: a new one.
      log: path of a TSV file that gets each row, with a column for each name, in a folder that
        exists. An earlier file is renamed to NAME.1.tsv and so on. None: no file.
      last_step: number of the step, from 1, after which `fit` ends inside an epoch; None: none.
        Another `fit` is expected after one that ends before it: its last weights are not measured.
      step_examples: examples in a step, to measure `examples_per_second`; None: not measured.
      cost_per_hour: price of the machine in USD per hour, for `cost()`; None: no cost.

    Raises:
      ValueError: an argument is out of range; in the first epoch, or when `evaluate` is first
        called, the metric is missing or no single number; `callbacks` is no list, where Keras calls
        it in threads; or, as a Refusal that names the step, the loss is not finite.
    """

    def __init__(  # noqa: PLR0913, each has a default, and a use in somebody's fit
        self,
        threshold: float,
        metric: str = "val_accuracy",
        *,
        evaluate: Callable[[], dict[str, float]] | None = None,
        every: float = 1,
        first: float = 0,
        mode: str = "auto",
        clock: Clock | None = None,
        log: str | os.PathLike | None = None,
        last_step: int | None = None,
        step_examples: int | None = None,
        cost_per_hour: float | None = None,
    ):
        super().__init__()
        mode = _direction(metric) if mode == "auto" else mode
        _check({"threshold": threshold, "every": every, "first": first}, metric, evaluate, mode)
        amounts: dict[str, Any] = {"first": first, "last_step": last_step}
        amounts |= {"step_examples": step_examples, "cost_per_hour": cost_per_hour}
        for name, value in amounts.items():
            least = int(name == "last_step")
            is_number = isinstance(value, Real) and least <= float(value) < math.inf
            if value is not None and not is_number:
                text = f"`{name}` should be a finite number of at least {least}"
                raise ValueError(f"{text}. Received: {name}={value!r}")
        path = None if log is None else Path(log).absolute()
        folder = path.parent if path else Path()
        is_other = bool(path and path.exists() and not path.is_file())  # each row opens it anew
        if path and (is_other or not folder.is_dir() or not os.access(folder, os.W_OK)):
            text = "`log` should be a file in a folder that exists and can be written"
            raise ValueError(f"{text}. Received: log={log}")
        self.threshold, self.metric, self.mode, self.every = threshold, metric, mode, every
        self.first = first
        self._own_clock = clock is None
        self.clock = Clock() if clock is None else clock
        self.cost_per_hour, self.step_examples = cost_per_hour, step_examples
        self.last_step = last_step
        self._evaluate, self._log = evaluate, path
        self._goes_on = True  # with the clock since the construction
        self._params: dict[str, Any] = {}  # of the call of `fit`
        self._begin()

    def _begin(self) -> None:
        self._fit: _Fit | None = None  # the call of `fit` that runs
        self._first_hit: Hit | None = None
        self._columns: list[str] = []  # of the log
        self.rows: list[dict[str, float]] = []
        self.step = self._steps_in_epoch = 0
        self._measured = True  # there is nothing to measure
        self._step_end = self.clock.now()  # end of the last step, or begin of an epoch
        self._inside = self._warned = False
        self.loss: float | None = None
        self.examples_per_second: float | None = None
        self._steps: int | None = None
        self._epochs_before = self._evaluated_epochs = 0.0
        self._timed_from: float | None = None  # seconds of training when the first call had ended
        self._timed_examples = 0

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a copy needs, without the model and the call of `fit`."""
        clock = copy.copy(self.clock)
        clock.switch("other")
        state = {**self.__dict__, "clock": clock, "_fit": None}
        return {name: None if name in _KERAS_S else value for name, value in state.items()}

    # What is known so far.

    @property
    def best(self) -> float | None:
        """The best value of the metric so far."""
        values = [row[self.metric] for row in self.rows if not math.isnan(row[self.metric])]
        return (max if self.mode == "max" else min)(values, default=None)

    @property
    def first_hit(self) -> Hit | None:
        """The first row at the threshold or past it, or None; `first_hit.seconds` is the result."""
        return self._first_hit

    @property
    def reached(self) -> bool:
        """Whether a row is at the threshold or past it."""
        return self.first_hit is not None

    @property
    def compile_seconds(self) -> float:
        """Seconds on the clock that compiling took: to the end of `fit`'s first execution."""
        return self.clock.parts().get("compile", 0.0)

    @property
    def epoch(self) -> float:
        """Epochs trained so far, whole ones as whole numbers."""
        epochs = self._epochs
        return int(epochs) if epochs.is_integer() else round(epochs, 5)

    @property
    def steps_to_evaluation(self) -> float:
        """Steps to the next evaluation inside an epoch, or at `last_step`; inf without either."""
        left = math.inf if self.last_step is None else self.last_step - self.step
        if self.every % 1 and self._steps:
            done = max(int(self._epochs / self.every + 1e-6), self._left_out)
            epochs = (done + 1) * self.every - self._epochs
            left = min(left, math.ceil(epochs * self._steps - 1e-6))
        return max(1, left)

    def cost(self) -> float | None:
        """Returns the cost in USD of the time on the clock; None without `cost_per_hour`."""
        return None if self.cost_per_hour is None else self.cost_per_hour * self.clock.hours()

    def state(self) -> dict[str, Any]:
        """Returns rows, step, epochs and clock as plain values, for `restore` in another process.

        `json.dumps` takes them. The clock is seconds by part.
        """
        rows, parts = [dict(row) for row in self.rows], self.clock.parts()
        return {"rows": rows, "step": self.step, "epochs": self._epochs, "clock": parts}

    def restore(self, state: dict[str, Any]) -> None:
        """Makes the next `fit` go on from a state; the log is written again from its rows.

        The clock goes on from the state's: the time of steps that are trained once more counts
        twice, the time between two processes does not. A `clock` that was given gets the state's
        seconds added, unless it has them: it is the one that the state was made with.

        Args:
          state: what `state()` returned; with an empty "clock" the clock stays as it is.
        """
        names = state.keys() if isinstance(state, Mapping) else ()
        if missing := {"rows", "step", "epochs"}.difference(names):
            text = f"`state` should be what `state()` returned, with {', '.join(sorted(missing))}"
            raise ValueError(f"{text}. Received: state={state}")
        rows = [dict(row) for row in state["rows"]]
        if wrong := [row for row in rows if not {"hours", self.metric} <= row.keys()]:
            text = f"`state` should have rows of 'hours' and {self.metric!r}"
            raise ValueError(f"{text}. Received: {wrong[0]}")
        hours = rows[-1]["hours"] if rows else 0.0  # of versions whose state had no clock
        parts, now = state.get("clock", {"train": 3600 * hours}), self.clock.parts()
        lacks = any(now.get(name, 0.0) < seconds for name, seconds in parts.items())
        same_run = rows == self.rows[: len(rows)] and 0 < state["step"] <= self.step
        if lacks or not same_run:
            self._timed_from, self._timed_examples = None, 0
            if self._own_clock and parts:
                self.clock = Clock(parts)
            elif lacks:
                self.clock.carry_on(parts)
        self._goes_on, self._measured = True, True
        self.rows, self.step = rows, state["step"]
        self._first_hit = next((Hit(row) for row in rows if self._is_hit(row)), None)
        self._epochs_before = self._evaluated_epochs = float(state["epochs"])
        self._steps_in_epoch, self._columns = 0, []
        if self._log is not None and self.rows:
            if not _begins_with(self._log, self.rows[0]):
                _keep_earlier(self._log)
            self._write_log(self._log, whole=True)

    # What Keras calls.

    def on_train_begin(self, logs: Logs = None) -> None:
        # Its own: `evaluate(callbacks=)` sets others.
        self._params = dict(getattr(self, "params", None) or {})
        steps = self._param("steps")  # an epoch's; None until fit has counted them
        if steps is None and self.every % 1:
            text = "`every` should be whole where fit is not told its steps"
            raise ValueError(f"{text}. Received: {self.every}")
        if self.every % 1 and tf.keras.backend.backend() == "jax":
            raise ValueError(
                "`every` should be whole with Keras's JAX backend, whose weights cannot be "
                f"evaluated inside an epoch. Received: every={self.every}"
            )
        if self._fit:  # ended by an exception
            self._end_fit(self._step_end)
        if not self._goes_on:
            self._begin()
            self.clock = Clock() if self._own_clock else self.clock
        self._goes_on, self._steps = False, steps
        before = self.clock.switch("compile")
        # "compile": another timer with this clock has begun before.
        self._fit = fit = _Fit.running(self, "other" if before == "compile" else before)
        self._compiled = self._validated = False
        self._step_end = self.clock.now()
        self.clock.watch(lambda: (fit.part_before, self._step_end) if fit.has_ended() else None)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        # `fit` repeats an epoch that an exception interrupted.
        self._epochs_before = epoch if int(self._epochs) <= epoch else self._epochs
        self._steps_in_epoch, self._validated = 0, False
        if not self._compiled:
            self._measured = False
            self._evaluated_epochs = max(self._evaluated_epochs, self._epochs_before)
        self.clock.switch("train" if self._compiled else "compile")
        self._step_end = self.clock.now()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        # Keras 3 counts on past an epoch's end, to the end of the last call into TensorFlow.
        in_epoch = self._param("steps")
        steps = min(batch + 1, in_epoch or batch + 1)
        first, self.step = self.step + 1, self.step + steps - self._steps_in_epoch
        executed, self._steps_in_epoch = steps - self._steps_in_epoch, steps
        # A device works behind Python: it has finished the step when the loss is on the host.
        self.loss = float(np.mean(np.asarray(_array((logs or {}).get("loss", 0.0)), float)))
        self.clock.switch("train")
        self._step_end, self._measured = self.clock.now(), False
        trained = self.clock.parts().get("train", 0.0)
        self._timed_from = trained if self._timed_from is None else self._timed_from
        self._timed_examples += executed * self._compiled * (self.step_examples or 0)
        if self._timed_examples and trained > self._timed_from:
            self.examples_per_second = self._timed_examples / (trained - self._timed_from)
        if not self._compiled and self._evaluate is None and self.metric != "val_loss":
            name = self.metric.removeprefix("val_")
            _number(self.metric, (logs or {}).get(name, 0.0))  # no epoch is lost to a wrong one
        self._compiled = True
        if not math.isfinite(self.loss):
            since = "step" if first == self.step else f"steps {first} to"
            text = f"the loss is {self.loss} at {since} {self.step}; "
            # The first is that of the weights as they were built.
            text += "lower the rate" if self.step > 1 else "check the inputs, or leave out XLA"
            raise Refusal(f"training diverged: {text}")
        if self.every % 1:
            before = max(self._evaluated_epochs / self.every, self._left_out)
            # A multiple of `every` epochs lies between the last evaluation and now.
            if int(self._epochs / self.every + 1e-6) > int(before + 1e-6):
                self._measure(logs)
        if self.last_step is not None and self.step >= self.last_step:
            self.model.stop_training = True
        self._inside = bool(self.model.stop_training)  # fit ends inside this epoch
        if steps == in_epoch or self.step == self.last_step:
            self._pause()

    def on_test_begin(self, logs: Logs = None) -> None:
        self._validated = True
        self._pause()
        self._before_test = self.clock.switch("eval")

    def on_test_end(self, logs: Logs = None) -> None:
        self.clock.switch(self._before_test)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if not self._steps_in_epoch and not self._validated:  # a loop without hooks of batches
            self._step_end = self.clock.now()
        self._pause()
        self._steps = self._steps or self._steps_in_epoch
        in_epoch = self._param("steps")
        least = in_epoch or (math.inf if self._inside else 1)
        # An epoch is whole, too, in a loop that calls no hooks of batches.
        if self._steps_in_epoch >= least or not self._compiled:
            self._epochs_before, self._steps_in_epoch = self._epochs_before + 1, 0
        epochs = math.ceil(self._epochs)  # Keras 3 goes on after an epoch whose data ended early
        due = self.every % 1 == 0 and epochs % self.every == 0 and epochs >= self.first
        if self.last_step is None:
            last = epoch + 1 == self._param("epochs")
        else:
            last = self.step >= self.last_step
        last = last or self.model.stop_training
        if not self.rows and not self._evaluate and self.metric not in (logs or {}):
            self._refuse_metric(logs or {})
        if due or last:  # no last weights are left unmeasured
            self._measure(logs)
        if self._measured and logs is not None and self.rows:
            # For TensorBoard and History.
            logs.setdefault(self.metric, self.rows[-1][self.metric])

    def on_train_end(self, logs: Logs = None) -> None:
        if self.model.stop_training or self.last_step is None:  # by a later callback, or the data
            self._measure(logs)
        ends = self.last_step is None or self.step >= self.last_step  # if not, another fit follows
        if not self.rows and not self._evaluate and self.step and ends:
            _warn("no row: fit logged %s in none of these epochs", self.metric)
        self._end_fit()

    # How.

    @property
    def _left_out(self) -> int:
        """Number of multiples of `every` before `first`, at which nothing is evaluated."""
        return math.ceil(self.first / self.every - 1e-6) - 1

    @property
    def _epochs(self) -> float:
        return self._epochs_before + self._steps_in_epoch / (self._steps or math.inf)

    def _is_hit(self, row: Mapping[str, float]) -> bool:
        return _reaches(row[self.metric], self.threshold, 1 if self.mode == "max" else -1)

    def _pause(self) -> None:
        """Takes what followed the last step off the clock, until the next epoch begins."""
        if self._fit and self.clock.current in ("compile", "train"):
            self.clock.switch("other", since=self._step_end)

    def _end_fit(self, since: float | None = None) -> None:
        """Stops the clock; since the last step if an exception has ended `fit`."""
        self.clock.watch(None)
        if self._fit:
            self.clock.switch(self._fit.part_before, since)
        self._fit = None

    def _param(self, name: str) -> Any:
        """Returns one of `fit`'s parameters; None in a loop that gives none."""
        return (self._params or getattr(self, "params", None) or {}).get(name)

    def _refuse_metric(self, logs: Mapping[str, Any]) -> None:
        """Raises ValueError unless the metric may be one of a later epoch's validation."""
        plain = self.metric.removeprefix("val_")
        validates = self._fit is None or self._fit.validates
        if plain != self.metric and plain in logs and validates and not self._validated:
            return  # `validation_freq` leaves this epoch out
        text = f"`metric` should be one that fit logs: {', '.join(sorted(logs))}. "
        text += f"Received: metric={self.metric!r}"
        if plain != self.metric and not validates:
            text += "; fit has no validation_data"
        if self._fit is None or self._fit.is_kerass:
            hint = "a callback that logs it should stand before the timer in `callbacks`"
            raise ValueError(f"{text}; {hint}")
        if not self._warned:
            _warn("%s. No row until it does", text)
            self._warned = True

    def _measure(self, logs: Logs) -> None:
        """Adds a row for the weights of now, unless they have one or `fit` has not validated."""
        if not self._measured:
            if self._evaluate:
                self._add_row(self._evaluated(self._evaluate))
            elif logs and self.metric in logs:
                self._add_row({self.metric: _number(self.metric, logs[self.metric])})

    def _evaluated(self, evaluate: Callable[[], Any]) -> dict[str, float]:
        with self.clock.part("eval"):
            # Inside an epoch Keras's `evaluate` resets the metrics that `fit` accumulates.
            metrics = getattr(self.model, "metrics", []) if self.every % 1 else []
            accumulated = [(v, v.numpy()) for metric in metrics for v in metric.variables]
            values = evaluate()
            for variable, value in accumulated:
                variable.assign(value)
        if not isinstance(values, Mapping) or self.metric not in values:
            text = f"`evaluate` should return a dict with {self.metric!r}"
            raise ValueError(f"{text}. Received: {values!r}")
        if clash := {"epoch", "hours"} & set(values):
            raise ValueError(f"`evaluate` should not return {clash.pop()!r}, a column of the timer")
        row = {self.metric: _number(self.metric, values[self.metric])}
        for name, value in values.items():
            try:
                row[str(name)] = _number(name, value)
            except ValueError as error:  # an error would end `fit` after hours of training
                _warn("%s; it has no column", error)
        return {name: row[name] for name in map(str, values) if name in row}

    def _add_row(self, values: dict[str, float]) -> None:
        if clash := {"epoch", "hours"} & set(values):
            name = clash.pop()
            raise ValueError(f"a metric should not be called {name!r}, a column of the timer")
        if not self.rows and self.mode == "max":
            facts = self.metric, values[self.metric], self.threshold
            is_fraction = self._evaluate is None and re.search(f"_({_FRACTIONS})$", self.metric)
            if self.threshold <= 1 < values[self.metric]:
                _warn("%s is %g: with values in percent, %g should be a percentage too", *facts)
            elif is_fraction and values[self.metric] <= 1 < self.threshold:
                _warn("%s is %g: if it is a fraction, it never reaches %g", *facts)
        self._measured, self._evaluated_epochs = True, self._epochs
        row = {"epoch": self.epoch, "hours": self.clock.hours(), **values}
        self.rows.append(row)
        if self._first_hit is None and self._is_hit(row):
            self._first_hit = Hit(row)
        if self.reached:
            self.model.stop_training = True
        if self._log is None:
            return
        try:
            if len(self.rows) == 1:
                _keep_earlier(self._log)
            is_there = _has_content(self._log)  # False: somebody has moved it, or the disk was full
            if len(self.rows) > 1 and is_there and not _begins_with(self._log, self.rows[0]):
                other, self._log, is_there = self._log, _free(self._log), False
                _warn("%s is another timer's now; the log goes on as %s", other, self._log)
            self._write_log(self._log, whole=not is_there or not set(row) <= set(self._columns))
        except OSError as error:  # hours of training are not lost for it
            _warn("%s: can't be written (%s); `rows` has its rows", self._log, error.strerror)
            self._columns = []  # the next row writes all again

    def _write_log(self, log: Path, whole: bool) -> None:
        """Writes all rows, or adds the last one, under a column for each name in any row."""
        if whole:
            self._columns = list(dict.fromkeys(name for row in self.rows for name in row))
        with open(log, "w" if whole else "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self._columns, delimiter="\t", lineterminator="\n")
            if whole and self.rows:
                writer.writeheader()
            writer.writerows(self.rows if whole else self.rows[-1:])


class Versus(NamedTuple):
    """Times to a threshold of two kinds of fits; `str()` gives lines for people.

    Attributes:
      names: of the two kinds.
      seconds: seconds on the clock to the threshold of each fit, inf for a miss; of both kinds.
      medians: median seconds of each kind; inf if no more than half of its fits reach it.
      intervals: 95 % intervals of the medians, by order statistics; None with fewer than 5 fits.
      speed_up: the second's median over the first's; None if one of them is infinite.
      speed_up_interval: its 95 % interval, by bootstrap; None without it, or with under 5 fits.
      faster: probability that a fit of the first kind takes less time than one of the second; None
        with fewer than 5 fits of a kind, as the two after it.
      p_value: of Mann and Whitney's test that neither is faster, two-sided.
      fits_needed: fits of each kind to tell the two apart at 5 % with 80 % power.
    """

    names: tuple[str, str]
    seconds: tuple[list[float], list[float]]
    medians: tuple[float, float]
    intervals: tuple[tuple[float, float] | None, tuple[float, float] | None]
    speed_up: float | None
    speed_up_interval: tuple[float, float] | None
    faster: float | None
    p_value: float | None
    fits_needed: float | None

    def __str__(self) -> str:
        from dawnbench_tf.time_statistics import Comparison, certainty, format_interval  # of SciPy

        lines = []
        for name, times, middle, interval in zip(
            self.names, self.seconds, self.medians, self.intervals, strict=True
        ):
            reached = sum(map(math.isfinite, times))
            text = f"median {middle:.4g} s" if math.isfinite(middle) else "never in half of them"
            text += format_interval(interval, "{:.4g} s".format)
            lines.append(f"{name}: {reached} of {len(times)} fits reached it, {text}")
        first, second = self.names
        if self.faster is None:
            text = "too few fits to say which is faster: 5 of each are the least"
            return "\n".join([*lines, text])
        if self.speed_up:
            limits = format_interval(self.speed_up_interval, "{:.3g}".format)
            lines.append(f"{first} is {self.speed_up:.3g} times as fast as {second}{limits}")
        text = f"a fit of {first} is faster than one of {second} with probability {self.faster:.2f}"
        lines.append(f"{text}, {certainty(Comparison(*self[4:]))}")
        return "\n".join(lines)


def compare(
    first: Sequence[str | os.PathLike[str]],
    second: Sequence[str | os.PathLike[str]],
    threshold: float,
    metric: str = "val_accuracy",
    *,
    names: tuple[str, str] = ("first", "second"),
    mode: str = "auto",
    plot: str | os.PathLike[str] | None = None,
) -> Versus:
    """Compares the times to a threshold of two kinds of fits, by the logs of their timers.

    Args:
      first: paths of the logs (`log=`) of the fits of one kind, each with another seed.
      second: paths of the logs of the other kind.
      threshold: value of the metric; a log that has none at it or past it is a miss.
      metric: name of the metric, a column of the logs.
      names: of the two kinds, for the lines and the plot.
      mode: "max", "min" or "auto", as for `TimeToAccuracy`.
      plot: file for a picture with a dot for each fit and the medians; None: no picture.

    Returns:
      Medians, their intervals, the speed-up, and the probability that one kind is faster.

    Raises:
      ValueError: a log has no rows or no such metric; the message names the file.
      Refusal: SciPy or, for `plot`, matplotlib is not installed, or the picture
        can't be written.
    """
    if plot is not None:
        files.check_figure(Path(plot))
    with refusing("compare", "needs SciPy", ImportError, hint="pip install scipy matplotlib"):
        from dawnbench_tf import time_statistics
    for paths in (first, second):
        if isinstance(paths, str | os.PathLike):
            raise ValueError(f"`first` and `second` should be lists of paths. Received: {paths}")
    mode = _direction(metric) if mode == "auto" else mode
    # As of a timer with `evaluate`: logs may be in percent.
    _check({"threshold": threshold, "every": 1}, metric, dict, mode)
    sign = 1 if mode == "max" else -1

    def times_of(paths: Sequence[str | os.PathLike[str]]) -> list[float]:
        return [_seconds_to(Path(path), metric, threshold, sign) for path in paths]

    seconds = times_of(first), times_of(second)
    if not all(seconds):
        raise ValueError("`first` and `second` should have a log each, at least")
    one, other = (time_statistics.Times(np.array(own), np.zeros(len(own), bool)) for own in seconds)
    result = Versus(
        names,
        seconds,
        (time_statistics.median(one), time_statistics.median(other)),
        (time_statistics.median_interval(one), time_statistics.median_interval(other)),
        *time_statistics.compare(one, other),
    )
    if plot is not None:
        _draw(result, Path(plot))
    return result


def _seconds_to(log: Path, metric: str, threshold: float, sign: int) -> float:
    """Returns the seconds of a log's first row at the threshold; inf if there is none."""
    rows = list[dict[str, str]]()
    try:
        with open(log, encoding="utf-8", newline="") as file:
            lines = file.readlines()
        if lines and not lines[-1].endswith("\n"):  # its writer was killed, or runs
            _warn("%s: the last row is left out, as it is not complete: no line ends there", log)
            del lines[-1]
        rows = list(csv.DictReader(lines, delimiter="\t"))
        values = [(float(row["hours"]) * 3600, float(row[metric] or "nan")) for row in rows]
    except (KeyError, TypeError, ValueError):
        values = []
    if not values or not all(seconds >= 0 for seconds, _ in values):
        columns = ", ".join(map(str, rows[0])) if rows else "none"
        text = f"{log}: should be a timer's log, with rows of hours and {metric}"
        raise ValueError(f"{text}. Received columns: {columns[:200]}")
    return next((s for s, value in values if _reaches(value, threshold, sign)), math.inf)


def _draw(result: Versus, path: Path) -> None:
    with refusing("plot", "needs matplotlib", ImportError, hint="pip install matplotlib"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(7, 2.6), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for row, (times, middle) in enumerate(zip(result.seconds, result.medians, strict=True)):
        reached = [s for s in times if math.isfinite(s)]
        axes.plot(reached, [row] * len(reached), "o", color=f"C{row}", alpha=0.6)
        if math.isfinite(middle):
            axes.plot([middle] * 2, [row - 0.25, row + 0.25], color=f"C{row}", linewidth=2)
    labels = [
        f"{name}\n{sum(map(math.isfinite, times))} of {len(times)}"
        for name, times in zip(result.names, result.seconds, strict=True)
    ]
    axes.set(yticks=[0, 1], yticklabels=labels, ylim=(1.6, -0.6))
    axes.set(xlabel="seconds on the clock to the threshold; line: median")
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.25)
    files.save_figure(figure, path)


class _Fit(NamedTuple):
    """A call of `fit`. Keras calls no hook when an exception ends it, so its frame is watched."""

    part_before: str  # part of the clock that ran before it
    validates: bool  # False: it has no data to validate on
    is_kerass: bool  # model and callbacks before the timer are Keras's own
    thread: int
    frame: FrameType | None  # None: a loop of one's own

    @classmethod
    def running(cls, timer: TimeToAccuracy, part_before: str) -> "_Fit":
        """Returns the call that is on this thread's stack."""
        frame, callbacks = inspect.currentframe(), list[Any]()
        while frame:
            owner = frame.f_locals.get("self")
            callbacks = callbacks or getattr(owner, "callbacks", [])
            if getattr(owner, "_async_train", False):  # Keras 3 looks for hooks in lists alone
                raise ValueError("`callbacks` should be a list, as callbacks=[timer]")
            if frame.f_code.co_name == "fit" and owner is timer.model:
                break
            frame = frame.f_back
        model = type(timer.model)
        before = callbacks[: callbacks.index(timer)] if timer in callbacks else []
        own = [getattr(model, name, None) for name in ("fit", "train_step", "test_step")]
        modules = [type(item).__module__ for item in before]
        modules += [getattr(item, "__module__", "keras") for item in own]
        is_kerass = all(module.partition(".")[0] in _KERAS for module in modules)
        validates = not frame or frame.f_locals.get("validation_data", True) is not None
        return cls(part_before, validates, is_kerass, threading.get_ident(), frame)

    def has_ended(self) -> bool:
        """Whether its frame has left the stack of its thread."""
        frame = inspect.currentframe()
        while frame and frame is not self.frame:
            frame = frame.f_back
        if frame or self.frame is None:
            return False
        if threading.get_ident() != self.thread:
            try:
                self.frame.clear()  # which Python refuses for one that its thread executes
            except RuntimeError:
                return False
        return True


def _warn(text: str, *values: object) -> None:
    logging.getLogger("dawnbench_tf").warning(text, *values)


def _array(value: Any) -> Any:
    # NumPy lacks bfloat16, which a tensor of PyTorch may have.
    value = value.detach().cpu().double() if hasattr(value, "detach") else value
    return value.numpy() if hasattr(value, "numpy") else value


def _number(name: str, value: Any) -> float:
    """Returns a metric's value, a number, array or tensor, as a float. Raises ValueError."""
    plain = _array(value)
    several = np.size(plain) > 1
    if not several and not isinstance(plain, str):
        with contextlib.suppress(TypeError, ValueError):
            return float(np.reshape(plain, ())[()])
    received = f"{np.size(plain)} values" if several else repr(value)
    hint = ', one a class? Make the metric with average="macro", or another mean' if several else ""
    raise ValueError(f"the metric {name!r} should be a single number. Received: {received}{hint}")


def _reaches(value: float, threshold: float, sign: int) -> bool:
    """Whether a value is at the threshold or past it; `sign` is -1 if less is better."""
    # Keras's metrics are float32: 94 of 100 is 0.93999998, less than 0.94. A value v comes from
    # float32 if v, 1 - v, v / 100 or 1 - v / 100 is a float32. Its relative tolerance is 1e-6, the
    # error of 1 - 0.94. A smaller difference has float32's absolute error at 1 or 100; its relative
    # tolerance is at most 1e-5, as a squared error may be 1e-7. Other values have 1e-12: 100 * 0.57
    # is less than 57.
    single = [whole for whole in (1.0, 100.0) if _is_single(value, whole)]
    error = 1e-5 if value > 1 else 6e-8 * max(single, default=0.0)
    absolute = min(error, 1e-5 * abs(threshold)) if single else 0.0
    relative = 1e-6 if single else 1e-12
    near = math.isclose(value, threshold, rel_tol=relative, abs_tol=absolute)
    return near or sign * value >= sign * threshold


def _is_single(value: float, whole: float) -> bool:
    """Whether value / whole or 1 - value / whole is a float32."""
    shares = (value / whole, 1 - value / whole)
    with np.errstate(over="ignore"):
        return any(abs(float(np.float32(share)) - share) < 1e-15 for share in shares)


def _direction(metric: str) -> str:
    """Returns the mode that the last telling word of a metric's name implies. Raises ValueError."""
    words = re.findall("f1|[a-z]+", re.sub("([a-z0-9])([A-Z])", r"\1_\2", metric).lower())
    turned = re.match("(val_)?neg_|.*_drop$", metric)  # scikit-learn's neg_log_loss; accuracy_drop
    words = [word for word in words if word in _MAX | _MIN and not turned]
    words = [word for word in words if word != "top"] or words  # top1_err, error_top1
    modes = ["max" if word in _MAX else "min" for word in words]
    if not modes:
        raise ValueError(
            f'`mode` should be "max" or "min": the name of the metric {metric!r} does not tell '
            'whether more is better. Received: mode="auto"'
        )
    return modes[-1]


def _check(numbers: dict[str, Any], metric: str, evaluate: Callable | None, mode: str) -> None:
    """Raises ValueError for the first argument of the timer that is wrong."""
    if evaluate is not None and not callable(evaluate):
        raise ValueError(f"`evaluate` should be a function. Received: evaluate={evaluate!r}")
    if mode not in ("max", "min"):
        raise ValueError(f'`mode` should be "auto", "max" or "min". Received: mode={mode!r}')
    for name, value in numbers.items():
        if not isinstance(value, Real) or math.isnan(value):
            raise ValueError(f"`{name}` should be a number. Received: {name}={value!r}")
    threshold, every = numbers["threshold"], numbers["every"]
    if not 0 < every < math.inf or (evaluate is None and every != int(every)):
        text = "`every` should be over 0, and whole without `evaluate`"
        raise ValueError(f"{text}. Received: every={every}")
    is_fraction = re.fullmatch(f"(val_|(binary|sparse|top_k|categorical)_)*({_FRACTIONS})", metric)
    if evaluate is None and mode == "max" and threshold > 1 and is_fraction:
        raise ValueError(
            f"`threshold` should be at most 1: Keras's {metric} is a fraction. "
            f"Received: threshold={threshold}"
        )


def _begins_with(log: Path, row: Mapping[str, float]) -> bool:
    """Whether a log's first row is this one; False if there is no log."""
    try:
        with open(log, encoding="utf-8", newline="") as file:
            first = next(csv.DictReader(file, delimiter="\t"), {})
    except (OSError, ValueError):
        return False
    return first.get("hours") == str(row["hours"])


def _keep_earlier(log: Path) -> None:
    """Renames the log of an earlier run, which this one's would replace."""
    if _has_content(log):
        log.rename(_free(log))


def _has_content(log: Path) -> bool:
    return log.is_file() and log.stat().st_size > 0


def _free(log: Path) -> Path:
    """Returns the first of NAME.1.tsv and so on that does not exist."""
    names = (log.with_name(f"{log.stem}.{number}{log.suffix}") for number in count(1))
    return next(name for name in names if not name.exists())
