"""TimeToAccuracy: a Keras callback that times training to a threshold, logs it, and stops there.

It works in anybody's `fit`:

    timer = TimeToAccuracy(0.94, metric="val_accuracy", log="tta.tsv")
    model.fit(x, y, validation_data=(x_test, y_test), epochs=100, callbacks=[timer])
    timer.reached, timer.rows[-1]["hours"]
"""

import math
import os
import re
from collections.abc import Callable
from itertools import count
from numbers import Real
from pathlib import Path
from typing import Any

import tensorflow as tf

from dawnbench_tf.clock import Clock
from dawnbench_tf.refusals import Refusal

__all__ = ["TimeToAccuracy"]

Logs = dict[str, Any] | None

# Words of the names of metrics of which more, or less, is better.
_MAX = {"accuracy", "acc", "auc", "precision", "recall", "f1", "iou", "top"}
_MIN = {"loss", "error", "crossentropy", "divergence", "perplexity", "mse", "mae", "rmse", "mape"}
_FRACTIONS = ("accuracy", "acc", "auc", "precision", "recall", "f1_score")  # Keras's, in 0..1


class TimeToAccuracy(tf.keras.callbacks.Callback):
    """Stops training when a metric reaches its threshold; logs time by DAWNBench's rules.

    `rows` has a dict for each evaluation, `{"epoch", "hours", metric, ...}`, with the hours on the
    clock when the training before it ended. The clock counts training and stops during evaluations
    and checkpoints. Its part "compile" lasts from the start of `fit` to the end of the first
    execution.

    Each `fit` begins with no rows, at step 0, and with the clock at 0 unless `clock` was given. To
    go on from an earlier `fit`, call `timer.restore(timer.state())` before the next one.

    Args:
      threshold: value of the metric at which training stops, in the metric's unit; reached when
        the metric is at least the threshold, or at most with mode="min".
      metric: name of the metric, in what `evaluate` returns or in Keras's logs.
      evaluate: function `() -> {name: value}`, called while the clock stops. None: the metric is
        read from Keras's logs at the end of each epoch; val_... then needs validation_data.
      every: epochs between evaluations, over 0. A fraction needs `evaluate`; the evaluation then
        waits for the end of an execution (`steps_per_execution`).
      first: number of epochs before which nothing is evaluated, but the end of `fit` always is.
      mode: "max" if more is better, "min" if less is; "auto" infers it from the metric's name,
        and refuses a name that tells neither.
      clock: a Clock that runs already, to count loading and building too; None: a new one.
      log: path of a TSV file that gets each row, in a folder that exists. An earlier file is
        renamed to NAME.1.tsv and so on. None: no file.
      last_step: number of the step, from 1, after which `fit` ends inside an epoch; None: none.
      step_examples: examples in a step, to measure `examples_per_second`; None: not measured.
      cost_per_hour: price of the machine in USD per hour, for `cost()`; None: no cost.

    Raises:
      ValueError: an argument is out of range or the metric is missing; or, as a Refusal that names
        the step, the loss is not finite.
    """

    def __init__(
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
        if log is not None and (os.path.isdir(log) or not Path(log).absolute().parent.is_dir()):
            raise ValueError(f"`log` should be a file in a folder that exists. Received: log={log}")
        self.threshold, self.metric, self.mode, self.every = threshold, metric, mode, every
        self.first = first
        self._own_clock = clock is None
        self.clock = Clock() if clock is None else clock
        self.cost_per_hour, self.step_examples = cost_per_hour, step_examples
        self.last_step = last_step
        self._evaluate, self._log = evaluate, log
        self._goes_on = True  # with the clock since the construction
        self._begin()

    def _begin(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.step = self._evaluated_at = self._steps_in_epoch = 0
        self.loss: float | None = None
        self.examples_per_second: float | None = None
        self._steps: int | None = None
        self._epochs_before = self._evaluated_epochs = 0.0
        self._timed_from: float | None = None  # seconds of training when the first call had ended
        self._timed_examples = 0

    # What is known so far.

    @property
    def best(self) -> float | None:
        """The best value of the metric so far."""
        values = [row[self.metric] for row in self.rows]
        return (max if self.mode == "max" else min)(values, default=None)

    @property
    def first_hit(self) -> dict[str, float] | None:
        """The first row at the threshold or past it, or None: DAWNBench's time is its hours."""
        sign = 1 if self.mode == "max" else -1
        return next(
            (row for row in self.rows if sign * row[self.metric] >= sign * self.threshold), None
        )

    @property
    def reached(self) -> bool:
        """Whether a row is at the threshold or past it."""
        return self.first_hit is not None

    @property
    def epoch(self) -> float:
        """Epochs trained so far, whole ones as whole numbers."""
        epochs = self._epochs
        return int(epochs) if epochs.is_integer() else round(epochs, 5)

    def cost(self) -> float | None:
        """Returns the cost in USD of the time on the clock; None without `cost_per_hour`."""
        return None if self.cost_per_hour is None else self.cost_per_hour * self.clock.hours()

    def state(self) -> dict[str, Any]:
        """Returns rows, step and epochs as plain values, for `restore` in another process."""
        return {"rows": list(self.rows), "step": self.step, "epochs": self._epochs}

    def restore(self, state: dict[str, Any]) -> None:
        """Makes the next `fit` go on from a state; the log is written again from its rows.

        Args:
          state: what `state()` returned.
        """
        self._goes_on = True
        self.rows, self.step = list(state["rows"]), state["step"]
        self._epochs_before = self._evaluated_epochs = float(state["epochs"])
        self._evaluated_at, self._steps_in_epoch = self.step, 0
        if self._log is not None and (self.rows or os.path.exists(self._log)):
            self._write_log(self._log, only_last=False)

    # What Keras calls.

    def on_train_begin(self, logs: Logs = None) -> None:
        if not self._goes_on:
            self._begin()
            self.clock = Clock() if self._own_clock else self.clock
        self._goes_on = False
        self._steps = self.params.get("steps")  # an epoch's; None until fit has counted them
        if self._steps is None and self._fractional:
            raise ValueError(
                f"`every` should be whole where fit is not told its steps. Received: {self.every}"
            )
        self._before_training = self.clock.switch("compile")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._epochs_before, self._steps_in_epoch = self._epochs, 0

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        # Keras 3 counts on past an epoch's end, to the end of the last call into TensorFlow.
        steps = min(batch + 1, self.params.get("steps") or batch + 1)
        first, self.step = self.step + 1, self.step + steps - self._steps_in_epoch
        executed, self._steps_in_epoch = steps - self._steps_in_epoch, steps
        compiled = self.clock.switch("train") == "compile"  # logs are on the host: it has ended
        self._check_loss(logs, first)
        self._measure_speed(0 if compiled else executed)
        if self._fractional and self._crossed():
            self._add_row(self._values(logs))
        if self.last_step is not None and self.step >= self.last_step:
            self.model.stop_training = True

    def on_test_begin(self, logs: Logs = None) -> None:
        self._before_test = self.clock.switch("eval")

    def on_test_end(self, logs: Logs = None) -> None:
        self.clock.switch(self._before_test)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._steps = self._steps or self._steps_in_epoch
        due = not self._fractional and (epoch + 1) % self.every == 0 and epoch + 1 >= self.first
        if self.last_step is None:
            last = epoch + 1 == self.params["epochs"]
        else:
            last = self.step >= self.last_step
        last = last or self._stopped(logs)
        if due or (last and self.step > self._evaluated_at):  # no last weights are left unmeasured
            self._add_row(self._values(logs))
        if self._evaluated_at == self.step and logs is not None:  # for TensorBoard and History
            logs.setdefault(self.metric, self.rows[-1][self.metric])

    def on_train_end(self, logs: Logs = None) -> None:
        if self._stopped(logs) and self.step > self._evaluated_at:  # by a later callback
            self._add_row(self._values(logs))
        self.clock.switch(self._before_training)

    # How.

    @property
    def _fractional(self) -> bool:
        return self.every != int(self.every)

    @property
    def _epochs(self) -> float:
        return self._epochs_before + self._steps_in_epoch / (self._steps or math.inf)

    def _stopped(self, logs: Logs) -> bool:
        """Whether another callback has ended `fit`, and the metric can be measured."""
        return self.model.stop_training and bool(self._evaluate or self.metric in (logs or {}))

    def _crossed(self) -> bool:
        """Whether a multiple of `every` epochs lies between the last evaluation and now."""
        before, now = self._evaluated_epochs / self.every, self._epochs / self.every
        before = max(before, math.ceil(self.first / self.every - 1e-6) - 1)
        return int(now + 1e-6) > int(before + 1e-6)

    def _check_loss(self, logs: Logs, first: int) -> None:
        self.loss = loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            steps = f"step {self.step}" if first == self.step else f"steps {first} to {self.step}"
            raise Refusal(f"training diverged: the loss is {self.loss} at {steps}; lower the rate")

    def _values(self, logs: Logs) -> dict[str, float]:
        if self._evaluate:
            with self.clock.part("eval"):
                values = self._evaluate()
            if not isinstance(values, dict) or self.metric not in values:
                raise ValueError(
                    f"`evaluate` should return a dict with {self.metric!r}. Received: {values!r}"
                )
            return values
        logs = logs or {}
        if self.metric not in logs:
            names = ", ".join(sorted(logs))
            raise ValueError(
                f"`metric` should be one that fit logs: {names}. Received: metric={self.metric!r}"
            )
        return {self.metric: float(logs[self.metric])}

    def _add_row(self, values: dict[str, float]) -> None:
        self._evaluated_at, self._evaluated_epochs = self.step, self._epochs
        self.rows.append({"epoch": self.epoch, "hours": self.clock.hours(), **values})
        if self._log is not None:
            if len(self.rows) == 1:
                _keep_earlier(Path(self._log))
            self._write_log(self._log, only_last=len(self.rows) > 1)
        if self.reached:
            self.model.stop_training = True

    def _train_seconds(self) -> float:
        return self.clock.parts().get("train", 0.0)

    def _measure_speed(self, steps: int) -> None:
        """Updates the speed after a call of `steps` steps; 0: one that compiled."""
        if self._timed_from is None:
            self._timed_from = self._train_seconds()
        self._timed_examples += steps * (self.step_examples or 0)
        spent = self._train_seconds() - self._timed_from
        if self._timed_examples and spent > 0:
            self.examples_per_second = self._timed_examples / spent

    def _write_log(self, log: str | os.PathLike, only_last: bool) -> None:
        with open(log, "a" if only_last else "w", encoding="utf-8") as file:
            if not only_last and self.rows:
                file.write("\t".join(self.rows[0]) + "\n")
            for row in self.rows[-1:] if only_last else self.rows:
                file.write("\t".join(map(str, row.values())) + "\n")


def _direction(metric: str) -> str:
    """Returns the mode that the last telling word of a metric's name implies. Raises ValueError."""
    words = re.findall("f1|[a-z]+", re.sub("([A-Z])", r"_\1", metric).lower())
    modes = ["max" if word in _MAX else "min" for word in words if word in _MAX | _MIN]
    if not modes:
        raise ValueError(
            f'`mode` should be "max" or "min": the name of the metric {metric!r} does not tell '
            'whether more is better. Received: mode="auto"'
        )
    return modes[-1]


def _check(numbers: dict[str, Any], metric: str, evaluate: Callable | None, mode: str) -> None:
    """Raises ValueError for the first argument of the timer that is wrong."""
    if mode not in ("max", "min"):
        raise ValueError(f'`mode` should be "auto", "max" or "min". Received: mode={mode!r}')
    for name, value in numbers.items():
        if not isinstance(value, Real) or math.isnan(value):
            raise ValueError(f"`{name}` should be a number. Received: {name}={value!r}")
    threshold, every = numbers["threshold"], numbers["every"]
    if not every > 0 or (evaluate is None and every != int(every)):
        raise ValueError(
            f"`every` should be over 0, and whole without `evaluate`. Received: every={every}"
        )
    if evaluate is None and mode == "max" and threshold > 1 and _is_fraction(metric):
        raise ValueError(
            f"`threshold` should be at most 1: Keras's {metric} is a fraction. "
            f"Received: threshold={threshold}"
        )


def _is_fraction(metric: str) -> bool:
    name = metric.removeprefix("val_")
    return any(name == word or name.endswith(f"_{word}") for word in _FRACTIONS)


def _keep_earlier(log: Path) -> None:
    """Renames the log of an earlier run, which this one's would replace."""
    if log.is_file() and log.stat().st_size:
        names = (log.with_name(f"{log.stem}.{number}{log.suffix}") for number in count(1))
        log.rename(next(name for name in names if not name.exists()))
