"""The callback in fits that are not ours: any Keras metric, any cadence, another Keras."""

import csv
import warnings

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.clock import Clock
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.tta import TimeToAccuracy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype("f")
Y = (X[:, 0] > 0).astype("f")


def model(**compiled):
    tf.keras.utils.set_random_seed(0)
    network = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
    network.compile(**{"loss": "binary_crossentropy", "optimizer": "sgd", **compiled})
    return network


def fit(timer, epochs=5, network=None, **kwargs):
    network = network or model(metrics=["accuracy"])
    network.fit(X, Y, batch_size=16, epochs=epochs, verbose=0, callbacks=[timer], **kwargs)
    return timer


def sequence(*values):
    """An `evaluate` that returns these, one a call."""
    left = iter(values)
    return lambda: {"top1": next(left)}


def test_it_stops_at_the_first_row_at_the_threshold():
    timer = fit(TimeToAccuracy(70, "top1", evaluate=sequence(50, 70, 60, 90)))
    assert [row["top1"] for row in timer.rows] == [50, 70]
    assert timer.reached and timer.first_hit["epoch"] == 2 and timer.best == 70


def test_the_metric_joins_keras_s_own_logs():
    timer = TimeToAccuracy(95, "top1", evaluate=sequence(50, 80))
    history = model().fit(X, Y, epochs=2, verbose=0, callbacks=[timer])
    assert history.history["top1"] == [50, 80]


def test_never_reached_is_not_reached():
    timer = fit(TimeToAccuracy(95, "top1", evaluate=sequence(50, 80, 60, 70, 75)))
    assert not timer.reached and timer.first_hit is None and timer.best == 80
    assert [row["epoch"] for row in timer.rows] == [1, 2, 3, 4, 5]


def test_training_can_end_inside_an_epoch():
    timer = TimeToAccuracy(95, "top1", evaluate=sequence(50, 60, 70), last_step=10)
    fit(timer, epochs=3)  # of 4 steps
    assert [row["epoch"] for row in timer.rows] == [1, 2, 2.5] and timer.step == 10


def test_keras_s_own_validation_metric_serves():
    timer = TimeToAccuracy(0.0, "val_accuracy")
    history = []
    network = model(metrics=["accuracy"])
    keep = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: history.append(logs))
    network.fit(X, Y, validation_data=(X, Y), epochs=3, verbose=0, callbacks=[timer, keep])
    assert timer.rows == [
        {
            "epoch": 1,
            "hours": timer.rows[0]["hours"],
            "val_accuracy": pytest.approx(history[0]["val_accuracy"]),
        }
    ]
    assert timer.clock.parts()["eval"] > 0


def test_less_can_be_more():
    timer = fit(
        TimeToAccuracy(0.5, "loss", mode="min"), epochs=200, network=model(optimizer="adam")
    )
    assert timer.reached and timer.rows[-1]["loss"] <= 0.5 < timer.rows[-2]["loss"]
    assert timer.best == timer.rows[-1]["loss"]


@pytest.mark.parametrize(
    ("every", "steps_per_execution", "epochs"),
    [
        (2, 1, [2, 4, 5]),  # the end is measured too
        (0.5, 1, [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]),
        (0.25, 2, [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]),  # at the end of an execution
        (1.5, 1, [1.5, 3, 4.5, 5]),
        (1, 3, [1, 2, 3, 4, 5]),
    ],
)
def test_rows_come_at_the_cadence(every, steps_per_execution, epochs):
    network = model(steps_per_execution=steps_per_execution)
    timer = TimeToAccuracy(2, "top1", evaluate=sequence(*range(-99, 0)), every=every)
    assert [row["epoch"] for row in fit(timer, network=network).rows] == epochs


@pytest.mark.parametrize(
    ("every", "first", "epochs"),
    [
        (1, 3, [3, 4, 5]),
        (2, 3, [4, 5]),
        (0.5, 4, [4, 4.5, 5]),
        (0.5, 3.7, [4, 4.5, 5]),
        (1, 9, [5]),
    ],
)
def test_nothing_is_evaluated_before_the_first_evaluation(every, first, epochs):
    timer = TimeToAccuracy(2, "top1", evaluate=sequence(*range(-99, 0)), every=every, first=first)
    assert [row["epoch"] for row in fit(timer).rows] == epochs


def test_an_epoch_of_unknown_length_counts_as_one():
    batches = tf.data.Dataset.from_generator(
        lambda: iter([(np.ones((2, 1)), np.ones((2, 1)))] * 3),
        output_signature=(tf.TensorSpec((2, 1)), tf.TensorSpec((2, 1))),
    )
    timer = TimeToAccuracy(2, "top1", evaluate=sequence(0, 1))
    network = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's, that the data ran out: so it learns their length
        network.fit(batches, epochs=2, verbose=0, callbacks=[timer])
    assert [row["epoch"] for row in timer.rows] == [1, 2] and timer.step == 6


def test_the_log_grows_row_by_row_and_says_what_the_rows_say(tmp_path):
    log, lines = tmp_path / "tta.tsv", []

    def evaluate():
        lines.append(len(log.read_text().splitlines()) if log.exists() else 0)
        return {"top1": len(lines)}

    timer = fit(TimeToAccuracy(4, "top1", evaluate=evaluate, log=log))
    assert lines == [0, 2, 3, 4]  # a header and the rows so far, on disk before the next
    with open(log, encoding="utf-8") as file:
        rows = [
            {k: float(v) for k, v in row.items()} for row in csv.DictReader(file, delimiter="\t")
        ]
    assert rows == timer.rows
    assert [row["hours"] for row in rows] == sorted(row["hours"] for row in rows)


class Seconds:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_evaluation_is_off_the_clock_and_training_on_it():
    seconds = Seconds()
    network = model()

    def evaluate():
        seconds.now += 1000
        return {"top1": 0}

    class Slow(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seconds.now += 3

    timer = TimeToAccuracy(
        1, "top1", evaluate=evaluate, clock=Clock(now=seconds), cost_per_hour=7.2
    )
    network.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[timer, Slow()])
    assert timer.clock.parts() == {"other": 0.0, "compile": 3.0, "train": 21.0, "eval": 2000.0}
    assert [row["hours"] * 3600 for row in timer.rows] == pytest.approx([12, 24])
    assert timer.cost() == pytest.approx(24 / 3600 * 7.2)


def test_speed_is_examples_over_training_seconds():
    seconds = Seconds()

    class Slow(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seconds.now += 100 if not seconds.now else 2  # the first is compilation

    timer = TimeToAccuracy(
        1, "top1", evaluate=sequence(0, 0), clock=Clock(now=seconds), step_examples=16
    )
    model().fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[timer, Slow()])
    assert timer.examples_per_second == pytest.approx(16 / 2)


def test_another_process_carries_on_from_the_state(tmp_path):
    first = fit(TimeToAccuracy(9, "top1", evaluate=sequence(1, 2)), epochs=2)
    second = TimeToAccuracy(9, "top1", evaluate=sequence(3, 4), log=tmp_path / "log.tsv")
    second.restore(first.state())
    model_, rows = model(), first.rows
    model_.fit(X, Y, batch_size=16, initial_epoch=2, epochs=4, verbose=0, callbacks=[second])
    assert [row["top1"] for row in second.rows] == [1, 2, 3, 4]
    assert [row["epoch"] for row in second.rows] == [1, 2, 3, 4] and second.rows[:2] == rows
    assert len((tmp_path / "log.tsv").read_text().splitlines()) == 5


@pytest.mark.parametrize(("steps", "words"), [(1, "at step 3"), (4, "at steps 1 to 4")])
def test_a_loss_that_is_not_finite_stops_at_its_step(steps, words):
    bad = X.copy()
    bad[40] = np.nan  # in the third batch of 16
    network = model(steps_per_execution=steps)
    timer = TimeToAccuracy(1, "top1", evaluate=sequence(0, 0))
    with pytest.raises(Refusal, match=f"training diverged: the loss is nan {words}"):
        network.fit(bad, Y, batch_size=16, shuffle=False, epochs=2, verbose=0, callbacks=[timer])
    assert timer.rows == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "most"}, "`mode` should be"),
        ({"every": 0}, "`every` should be over 0"),
        ({"every": 0.5}, "whole without `evaluate`"),
        ({"every": "2"}, "`every` should be a number. Received: every='2'"),
        ({"threshold": "0.9"}, "`threshold` should be a number. Received: threshold='0.9'"),
        ({"threshold": float("nan")}, "`threshold` should be a number"),
        ({"log": "nowhere/tta.tsv"}, "`log` should be a file in a folder that exists"),
        ({"log": "."}, "`log` should be a file in a folder that exists"),
        ({"metric": "val_score"}, "the metric 'val_score' does not tell"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        TimeToAccuracy(**{"threshold": 1, **arguments})


def test_an_evaluation_without_the_metric_is_refused():
    timer = TimeToAccuracy(1, "top1", evaluate=lambda: {"top5": 1.0})
    with pytest.raises(
        ValueError, match="`evaluate` should return a dict with 'top1'. Received: {"
    ):
        fit(timer)


METRICS = (
    "val_loss",
    "loss",
    "val_mean_squared_error",
    "mae",
    "top1_error",
    "binary_crossentropy",
    "auc_loss",
)


def test_the_mode_is_told_by_the_metric_s_name():
    for name in METRICS:
        assert TimeToAccuracy(0.1, name).mode == "min", name
    own = {task.metric for task in TASKS.values()}
    for name in (*own, "val_accuracy", "acc", "auc_1", "sparse_categorical_accuracy", "f1_score"):
        assert TimeToAccuracy(0.1, name).mode == "max", name


def test_a_loss_over_its_threshold_is_not_reached():
    timer = fit(TimeToAccuracy(0.01, metric="val_loss"), epochs=2, validation_data=(X, Y))
    assert not timer.reached and len(timer.rows) == 2
    assert timer.best == min(row["val_loss"] for row in timer.rows)


def test_a_second_fit_begins_anew_unless_it_was_told_to_go_on():
    timer = TimeToAccuracy(9, "top1", evaluate=sequence(1, 2, 3, 4, 5, 6))
    fit(timer, epochs=2)
    before = timer.clock.parts()
    fit(timer, epochs=2)
    assert [row["epoch"] for row in timer.rows] == [1, 2] and timer.best == 4
    assert timer.step == 8 and timer.clock.parts()["other"] < sum(before.values())
    assert timer.rows[-1]["hours"] * 3600 <= sum(timer.clock.parts().values())
    timer.restore(timer.state())
    fit(timer, epochs=4, initial_epoch=2)
    assert [row["top1"] for row in timer.rows] == [3, 4, 5, 6]
    assert [row["epoch"] for row in timer.rows] == [1, 2, 3, 4]


def test_a_metric_that_fit_does_not_log_is_named():
    with pytest.raises(
        ValueError, match="fit logs: accuracy, loss. Received: metric='val_accuracy'"
    ):
        fit(TimeToAccuracy(1))


def test_it_works_under_keras_3(under_keras_3):
    program = """
import numpy as np, tensorflow as tf
from dawnbench_tf.tta import TimeToAccuracy
assert tf.keras.__version__.startswith("3.")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"], steps_per_execution=2)
timer = TimeToAccuracy(1e9, "val_mae", mode="min")
x = np.ones((64, 3))
data = (x, x[:, 0])
model.fit(*data, validation_data=data, batch_size=16, epochs=3, verbose=0, callbacks=[timer])
assert [row["epoch"] for row in timer.rows] == [1], timer.rows
assert set(timer.clock.parts()) == {"other", "compile", "train", "eval"}
"""
    under_keras_3(program)


def test_a_threshold_in_percent_of_a_fraction_is_refused():
    with pytest.raises(ValueError, match="val_accuracy is a fraction. Received: threshold=94"):
        TimeToAccuracy(94, metric="val_accuracy")
    TimeToAccuracy(94, metric="val_loss", mode="min")
    TimeToAccuracy(94, metric="accuracy", evaluate=lambda: {"accuracy": 95.0})  # its own unit


def test_the_log_of_an_earlier_run_is_kept(tmp_path):
    logs = []
    for number in range(3):
        fit(TimeToAccuracy(2, "loss", mode="max", log=tmp_path / "tta.tsv"), epochs=number + 1)
        logs.append((tmp_path / "tta.tsv").read_text())
    assert [text.count("\n") for text in logs] == [2, 3, 4]
    kept = [(tmp_path / name).read_text() for name in ("tta.1.tsv", "tta.2.tsv", "tta.tsv")]
    assert kept == logs


class Stop(tf.keras.callbacks.Callback):
    """Ends `fit` in the first epoch, after its second step or at its end."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def on_train_batch_end(self, batch, logs=None):
        if self.inside and batch == 1:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


@pytest.mark.parametrize("inside", [True, False])
def test_the_last_weights_are_measured_when_another_callback_ends_fit(inside):
    timer = TimeToAccuracy(2.0, evaluate=lambda: {"val_accuracy": 0.5}, every=5)
    model().fit(X, Y, batch_size=16, epochs=9, verbose=0, callbacks=[timer, Stop(inside)])
    assert [row["val_accuracy"] for row in timer.rows] == [0.5]
    assert (timer.rows[0]["epoch"] < 1) == inside
