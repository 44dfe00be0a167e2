"""One line while a run goes: epoch, best so far, threshold, hours on the clock, speed, cost."""

import sys
import time
from typing import TextIO

import tensorflow as tf

from dawnbench_tf import terminal
from dawnbench_tf.tta import TimeToAccuracy


class Line(tf.keras.callbacks.Callback):
    """Prints a line for each row, and on a terminal keeps one alive in between.

    Args:
      timer: TimeToAccuracy; it must come before this in `callbacks`.
      epochs: of the recipe.
    """

    SECONDS_BETWEEN_UPDATES = 0.5

    def __init__(self, timer: TimeToAccuracy, epochs: int, stream: TextIO = sys.stderr):
        super().__init__()
        self.timer, self.epochs, self.stream = timer, epochs, stream
        self._shown_at = 0.0

    def on_train_begin(self, logs=None):
        self._rows = len(self.timer.rows)  # those of an earlier process have been shown

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if len(self.timer.rows) > self._rows:
            self._show(end="\n")
        elif self.stream.isatty() and now - self._shown_at > self.SECONDS_BETWEEN_UPDATES:
            self._shown_at = now
            self._show(end="")

    def on_epoch_end(self, epoch, logs=None):
        if len(self.timer.rows) > self._rows:
            self._show(end="\n")

    def _show(self, end):
        self._rows = len(self.timer.rows)
        start = terminal.CLEAR if self.stream.isatty() else ""
        print(f"{start}{text(self.timer, self.epochs)}", end=end, file=self.stream, flush=True)


def text(timer: TimeToAccuracy, epochs: int) -> str:
    """The line itself."""
    parts = [f"epoch {timer.epoch:.4g}/{epochs}", f"loss {timer.loss:.3f}"]
    if timer.rows:
        parts.append(
            f"{timer.metric} {timer.rows[-1][timer.metric]:.2f}, "
            f"best {timer.best:.2f} of {timer.threshold:g}"
        )
    else:
        parts.append(f"{timer.metric} to reach {timer.threshold:g}")
    parts.append(f"{timer.clock.hours():.4f} h on the clock")
    if timer.examples_per_second:
        parts.append(f"{timer.examples_per_second:,.0f} examples/s")
    if timer.cost_per_hour is not None:
        parts.append(f"${timer.cost():.4f}")
    return "  ".join(parts)
