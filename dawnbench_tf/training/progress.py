"""The output of a run: a summary, then lines with epoch, loss, score, speed and time left."""

import time
from itertools import groupby
from typing import TextIO

import tensorflow as tf

from dawnbench_tf import terminal
from dawnbench_tf.clock import duration, seconds_of
from dawnbench_tf.data.dataset import Data
from dawnbench_tf.run_folder import Checkpoint, RunFolder
from dawnbench_tf.terminal import dollars
from dawnbench_tf.tta import TimeToAccuracy

DOING = {"compile": "compiling and first steps", "eval": "evaluating", "checkpoint": "saving"}


def summary(data: Data, model: tf.keras.Model, hardware: str) -> str:
    """Returns lines for people: recipe, model, goal and seed; data and hardware; the loss."""
    recipe, task = data.recipe, data.recipe.task_row
    every, used = task.train_examples - recipe.held_out, data.examples_per_epoch
    examples = f"{every:,}" if used == every else f"{used:,} of {every:,}"
    parameters = sum(weight.shape.num_elements() for weight in model.trainable_variables)
    trained = "trained " * bool(recipe.network.frozen_parts)
    replicas = model.distribute_strategy.num_replicas_in_sync
    steps = data.epoch_steps
    sizes = [f"{steps[part.start]:,} steps of {part.batch_size}" for part in recipe.phases()]
    return (
        f"{recipe.name}: {recipe.model}, {parameters:,} {trained}parameters, {recipe.precision}; "
        f"to {task.metric} {recipe.goal:g} in at most {terminal.counted(recipe.epochs, 'epoch')} "
        f"of {', then '.join(size for size, _ in groupby(sizes))}; seed {recipe.seed}\n"
        f"data: {examples} examples to train on, {task.test_examples:,} to test; "
        f"{data.origin}; on {hardware}, {terminal.counted(replicas, 'replica')}"
        + ", compiled by XLA" * bool(model.jit_compile)
        # Keras logs the loss with what `add_loss` adds.
        + "\nthe printed loss includes the penalty of weight decay" * bool(recipe.optimizer.penalty)
    )


def describe_start(folder: RunFolder, newest: Checkpoint | None, recorded: dict[str, float]) -> str:
    """Returns a line with the run's folder, and the epoch and clock that it starts from."""
    spent, schedule = seconds_of(recorded), folder.recipe.schedule
    if newest is not None:
        on = "ended" if newest.is_last(folder.recipe) else f"goes on after epoch {newest.epochs}"
        return f"in {folder.path}: {on}, {spent:.1f} s on the clock"
    again = f"begins again, {spent:.1f} s on the clock" if spent else "a new run"
    late = [n for n in folder.recipe.shape_changes if n >= folder.recipe.epochs]
    if late:
        again += f"\nit ends before epoch {late[0]}, when its batches or images would change"
    for begin, end in schedule.idle:
        if min(end, folder.recipe.epochs) - begin >= 1:
            again += f"\nthe learning rate is 0 from epoch {begin:g} to {end:g}"
    if schedule.zero_from > folder.recipe.epochs - 1:
        return f"in {folder.path}: {again}"
    epochs = ",".join(f"{epoch:g}" for epoch in schedule.zero_at(folder.recipe.epochs).epochs)
    advice = f"in another folder --schedule_epochs={epochs} would stretch its schedule"
    idle = f"the learning rate is 0 from epoch {schedule.zero_from:g} on; {advice}"
    return f"in {folder.path}: {again}\n{idle}"


class Line(tf.keras.callbacks.Callback):
    """A Keras callback that prints a line for each row; the timer precedes it in `callbacks`.

    Between rows, `tick` updates a status line on a terminal, or prints a line a minute elsewhere.
    """

    SECONDS_BETWEEN_LINES = 55.0  # on a stream that is no terminal

    def __init__(self, timer: TimeToAccuracy, epochs: float, stream: TextIO | None = None):
        super().__init__()
        self.timer, self.epochs, self.stream = timer, epochs, stream
        self._rows = len(timer.rows)  # number of rows shown; earlier processes showed theirs
        self._shown_at = time.monotonic()
        self._first: tuple[float, float] | None = None  # epoch and moment after the first execution

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        if self._first is None:
            self._first = self.timer.epoch, time.monotonic()
        self._show_rows()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._show_rows()

    def tick(self) -> None:
        """Shows the progress, if it is time to; called every second from another thread."""
        if terminal.is_terminal(self.stream):
            terminal.status(terminal.fitted(self._text(), self.stream), stream=self.stream)
        elif time.monotonic() - self._shown_at >= self.SECONDS_BETWEEN_LINES:
            self._say()

    def _show_rows(self) -> None:
        if len(self.timer.rows) > self._rows:
            self._rows = len(self.timer.rows)
            self._say()

    def _say(self) -> None:
        self._shown_at = time.monotonic()
        terminal.say(terminal.fitted(self._text(), self.stream), self.stream)

    def _text(self) -> str:
        epoch, left = self.timer.epoch, self.epochs - self.timer.epoch
        if self._first is None or epoch <= self._first[0] or self.timer.reached or left <= 0:
            return format_line(self.timer, self.epochs)
        # The pace is the mean since the first call into TensorFlow, which compiles.
        pace = (time.monotonic() - self._first[1]) / (epoch - self._first[0])  # s, with evaluations
        return format_line(self.timer, self.epochs, left * pace, min(-epoch % 1, left) * pace)


def format_line(
    timer: TimeToAccuracy, epochs: float, left: float | None = None, epoch_left: float | None = None
) -> str:
    """Returns the progress line, most important parts first: 80 columns show its beginning."""
    parts = [f"epoch {round(timer.epoch, 4):.10g}/{epochs:.10g}"]
    if timer.clock.current in DOING:
        parts.append(DOING[timer.clock.current])
    if timer.rows:
        last = timer.rows[-1][timer.metric]
        best = timer.best if timer.best is not None else last
        and_best = f", best {_score(best, timer.threshold)}" if best != last else ""
        score = _score(last, timer.threshold)
        parts.append(f"{timer.metric} {score}{and_best} of {timer.threshold:g}")
    else:
        parts.append(f"{timer.metric} to reach {timer.threshold:g}")
    parts.append(f"{timer.clock.hours():.4f} h")
    if left is not None:
        parts.append(f"{duration(left)} left")
    parts.append(f"loss {timer.loss:.3f}" if timer.loss is not None else "no step yet")
    if timer.examples_per_second:
        parts.append(f"{timer.examples_per_second:,.0f} examples/s")
    if (cost := timer.cost()) is not None:
        parts.append(dollars(cost))
    if epoch_left:
        parts.append(f"{duration(epoch_left)} to the epoch's end")
    return "  ".join(parts)


def _score(value: float, threshold: float) -> str:
    """Formats a score; a miss is not rounded to its threshold."""
    digits = 2 if abs(threshold) > 1 else 4
    while digits < 9 and (round(value, digits) >= threshold) != (value >= threshold):
        digits += 1
    return f"{value:.{digits}f}"
