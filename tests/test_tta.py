"""The callback in fits that are not ours: any Keras metric, any cadence, another Keras."""

import copy
import csv
import json
import os
import pickle
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.clock import Clock
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.tta import TimeToAccuracy, _reaches, compare
from tests.test_clock import Seconds

pytestmark = pytest.mark.both_kerases

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype("f")
Y = (X[:, 0] > 0).astype("f")


def model(**compiled):
    tf.keras.utils.set_random_seed(0)
    network = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
    # Eager steps are sooner done than traced.
    defaults = {"loss": "binary_crossentropy", "optimizer": "sgd", "run_eagerly": True}
    network.compile(**{**defaults, **compiled})
    return network


def fit(timer, *others, epochs=5, network=None, **kwargs):
    network = network or model(metrics=["accuracy"])
    callbacks = [timer, *others]
    network.fit(X, Y, batch_size=16, epochs=epochs, verbose=0, callbacks=callbacks, **kwargs)
    return timer


def begun(timer, **params):
    """The timer in a loop of one's own, which calls its hooks."""
    timer.set_model(SimpleNamespace(stop_training=False))
    if params:
        timer.set_params(params)
    timer.on_train_begin()
    return timer


def sequence(*values):
    """An `evaluate` that returns these, one a call."""
    left = iter(values)
    return lambda: {"top1": next(left)}


def test_it_stops_at_the_first_row_at_the_threshold_and_joins_keras_s_logs():
    timer = fit(TimeToAccuracy(70, "top1", evaluate=sequence(50, 70, 60, 90)))
    assert [row["top1"] for row in timer.rows] == [50, 70]
    assert timer.reached and timer.first_hit["epoch"] == 2 and timer.best == 70
    assert timer.model.history.history["top1"] == [50, 70]
    timer = fit(TimeToAccuracy(95, "top1", evaluate=sequence(50, 80, 60)), epochs=3)
    assert not timer.reached and timer.first_hit is None and timer.best == 80
    assert [row["epoch"] for row in timer.rows] == [1, 2, 3]


def test_training_can_end_inside_an_epoch():
    timer = TimeToAccuracy(95, "top1", evaluate=sequence(50, 60, 70), last_step=10)
    fit(timer, epochs=3)  # of 4 steps
    assert [row["epoch"] for row in timer.rows] == [1, 2, 2.5] and timer.step == 10


def test_keras_s_own_validation_metric_serves_where_fit_validates():
    timer, network = TimeToAccuracy(0.0, "val_accuracy"), model(metrics=["accuracy"])
    (row,) = fit(timer, network=network, validation_data=(X, Y), validation_freq=2).rows
    score = pytest.approx(network.history.history["val_accuracy"][0])
    assert row == {"epoch": 2, "hours": row["hours"], "val_accuracy": score}
    assert timer.clock.parts()["eval"] > 0
    words = "Received: metric='val_accuracy'; fit has no validation_data; a callback that logs it"
    with pytest.raises(ValueError, match=words):
        fit(TimeToAccuracy(0.9, "val_accuracy"))


def test_less_can_be_more():
    network = model(optimizer=tf.keras.optimizers.Adam(0.4))
    timer = fit(TimeToAccuracy(0.5, "loss", mode="min"), epochs=200, network=network)
    assert timer.reached and timer.rows[-1]["loss"] <= 0.5 < timer.rows[-2]["loss"]
    assert timer.best == timer.rows[-1]["loss"]


@pytest.mark.parametrize(
    ("arguments", "steps_per_execution", "epochs"),
    [
        ({"every": 2}, 1, [2, 4, 5]),  # the end is measured too
        ({"every": 0.25}, 2, [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]),  # where an execution ends
        ({"every": 1.5}, 1, [1.5, 3, 4.5, 5]),
        ({"every": 1}, 3, [1, 2, 3, 4, 5]),
        ({"every": 0.5, "first": 4}, 1, [4, 4.5, 5]),
        ({"every": 0.5, "first": 3.7}, 1, [4, 4.5, 5]),
    ],
)
def test_rows_come_at_the_cadence_and_from_the_first_evaluation_on(
    arguments, steps_per_execution, epochs
):
    network = model(steps_per_execution=steps_per_execution)
    timer = fit(endless_scores(**arguments), network=network)
    assert [row["epoch"] for row in timer.rows] == epochs


def test_the_log_grows_row_by_row_and_says_what_the_rows_say(tmp_path):
    log, lines = tmp_path / "tta.tsv", []

    def evaluate():
        lines.append(len(log.read_text().splitlines()) if log.exists() else 0)
        return {"top1": len(lines)}

    timer = fit(TimeToAccuracy(4, "top1", evaluate=evaluate, log=log))
    assert lines == [0, 2, 3, 4]  # a header and the rows so far, on disk before the next
    assert (rows := rows_of(log)) == timer.rows
    assert [row["hours"] for row in rows] == sorted(row["hours"] for row in rows)


def test_evaluation_is_off_the_clock_and_training_on_it():
    seconds = Seconds()

    def evaluate():
        seconds.now += 1000
        return {"top1": 0}

    own = {"clock": Clock(now=seconds), "cost_per_hour": 7.2, "step_examples": 16}
    timer = TimeToAccuracy(1, "top1", evaluate=evaluate, every=0.5, **own)
    fit(timer, Slow(seconds), epochs=2)
    assert timer.clock.parts() == {"other": 2000, "compile": 3, "train": 21, "eval": 4000}
    assert [row["hours"] * 3600 for row in timer.rows] == pytest.approx([6, 12, 18, 24])
    assert timer.cost() == pytest.approx(24 / 3600 * 7.2)
    assert timer.examples_per_second == pytest.approx(7 * 16 / 21)  # the first step compiles


@pytest.mark.parametrize(("steps", "words"), [(1, "at step 3"), (4, "at steps 1 to 4")])
def test_a_loss_that_is_not_finite_stops_at_its_step(steps, words):
    bad = X.copy()
    bad[40] = np.nan  # in the third batch of 16
    network = model(steps_per_execution=steps)
    timer = TimeToAccuracy(1, "top1", evaluate=sequence(0, 0))
    with pytest.raises(Refusal, match=f"training diverged: the loss is nan {words}"):
        network.fit(bad, Y, batch_size=16, shuffle=False, epochs=2, verbose=0, callbacks=[timer])
    assert timer.rows == []


def test_wrong_arguments_are_refused():
    for arguments, words in (
        ({"mode": "most"}, "`mode` should be"),
        ({"every": 0}, "`every` should be over 0"),
        ({"every": 0.5}, "whole without `evaluate`"),
        ({"every": float("inf")}, "`every` should be over 0"),
        ({"log": f"{__file__}/tta.tsv"}, "in a folder that exists"),
        ({"every": "2"}, "`every` should be a number. Received: every='2'"),
        ({"threshold": float("nan")}, "`threshold` should be a number"),
        ({"first": -1}, "`first` should be a finite number of at least 0"),
        ({"step_examples": float("inf")}, "`step_examples` should be a finite number"),
        ({"log": os.devnull}, "`log` should be a file in a folder that exists"),
        ({"metric": "val_score"}, "the metric 'val_score' does not tell"),
        ({"last_step": "9"}, "`last_step` should be a finite number"),
        ({"metric": "val_neg_log_loss"}, "the metric 'val_neg_log_loss' does not tell"),
        ({"metric": "accuracy_drop"}, "the metric 'accuracy_drop' does not tell"),
    ):
        with pytest.raises(ValueError, match=words):
            TimeToAccuracy(**{"threshold": 1, **arguments})
    timer = TimeToAccuracy(1)
    for state, names in (({"rows": []}, "epochs, step"), (None, "epochs, rows, step")):
        with pytest.raises(ValueError, match=rf"`state\(\)` returned, with {names}\. Received"):
            timer.restore(state)


def test_the_mode_is_told_by_the_metric_s_name():
    less = "val_loss val_mean_squared_error mae binary_crossentropy auc_loss top1_err error_top1"
    for name in less.split():
        assert TimeToAccuracy(0.1, name).mode == "min", name
    own = {task.metric for task in TASKS.values()}
    more = "val_f1_negative precision_neg val_accuracy acc auc_1 val_AUC topAccuracy f1_score"
    for name in (*own, *more.split()):
        assert TimeToAccuracy(0.1, name).mode == "max", name


def test_a_second_fit_begins_anew_unless_it_was_told_to_go_on():
    timer = TimeToAccuracy(9, "top1", evaluate=sequence(1, 2, 3, 4, 5, 6))
    fit(timer, epochs=2)
    before = timer.clock
    fit(timer, epochs=2)
    assert [row["epoch"] for row in timer.rows] == [1, 2] and timer.best == 4
    assert timer.step == 8 and timer.clock is not before
    assert timer.rows[-1]["hours"] * 3600 <= sum(timer.clock.parts().values())
    timer.restore(timer.state())
    fit(timer, epochs=4, initial_epoch=2)
    assert [row["top1"] for row in timer.rows] == [3, 4, 5, 6]
    assert [row["epoch"] for row in timer.rows] == [1, 2, 3, 4]


def test_a_threshold_in_percent_of_a_fraction_is_refused():
    for name in ("accuracy", "sparse_top_k_categorical_accuracy"):
        with pytest.raises(ValueError, match=f"val_{name} is a fraction. Received: threshold=94"):
            TimeToAccuracy(94, metric=f"val_{name}")
    TimeToAccuracy(94, metric="val_loss", mode="min")
    TimeToAccuracy(94, metric="accuracy", evaluate=lambda: {"accuracy": 95.0})  # its own unit


def test_a_metric_of_one_s_own_may_be_in_percent(caplog):
    for scale in (100, 1):
        timer = begun(TimeToAccuracy(99, "val_top1_accuracy"), steps=1, epochs=1)
        timer.on_epoch_begin(0)
        timer.on_train_batch_end(0, {"loss": 1.0, "top1_accuracy": 0.5 * scale})
        timer.on_epoch_end(0, {"val_top1_accuracy": 0.7 * scale})
        assert [row["val_top1_accuracy"] for row in timer.rows] == [0.7 * scale]
        words = "is 0.7: if it is a fraction, it never reaches 99"
        assert (words in caplog.text) == (scale == 1)


def test_a_log_that_can_t_be_written_ends_no_fit(tmp_path, caplog):
    folder = tmp_path / "logs"
    folder.mkdir()

    def evaluate():
        epoch = len(timer.rows) + 1
        if epoch == 2:
            shutil.rmtree(folder)
        elif epoch == 4:
            folder.mkdir()
            (folder / "tta.tsv").touch()  # as a full disk leaves one
        return {"top1": epoch}

    timer = TimeToAccuracy(4, "top1", evaluate=evaluate, log=folder / "tta.tsv")
    fit(timer)
    assert timer.reached and scores_of(folder / "tta.tsv") == [1, 2, 3, 4]
    assert caplog.text.count("tta.tsv: can't be written (No such file or directory)") == 2


def test_a_row_that_is_not_complete_is_left_out_of_a_comparison(tmp_path, caplog):
    log = tmp_path / "tta.tsv"
    log.write_text("epoch\thours\tloss\n1\t0.5\t0.6\n2\t1\t0.")  # 0.45, its writer was killed
    assert compare([log], [log], 0.6, "loss").seconds == ([1800], [1800])
    assert compare([log], [log], 0.1, "loss").seconds == ([np.inf], [np.inf])
    assert "the last row is left out" in caplog.text


def test_the_log_of_an_earlier_run_is_kept(tmp_path):
    logs = []
    for number in range(3):
        fit(TimeToAccuracy(2, "loss", mode="max", log=tmp_path / "tta.tsv"), epochs=number + 1)
        logs.append((tmp_path / "tta.tsv").read_text())
    assert [text.count("\n") for text in logs] == [2, 3, 4]
    kept = [(tmp_path / name).read_text() for name in ("tta.1.tsv", "tta.2.tsv", "tta.tsv")]
    assert kept == logs


def rows_of(log):
    with open(log, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [{name: float(value) for name, value in row.items()} for row in rows]


def scores_of(log):
    return [row["top1"] for row in rows_of(log)]


def test_a_log_has_the_rows_of_one_fit_whatever_happens_to_its_file(tmp_path, monkeypatch, caplog):
    log = tmp_path / "tta.tsv"
    timer, other = (endless_scores(log=log) for _ in range(2))
    monkeypatch.chdir(tmp_path)
    relative = endless_scores(log="relative.tsv")
    for each in (timer, other, relative):
        begun(each, steps=1, epochs=9)

    def epochs(each, *numbers):
        for epoch in numbers:
            each.on_epoch_begin(epoch)
            each.on_train_batch_end(0, {"loss": 1.0})
            each.on_epoch_end(epoch, {})

    epochs(timer, 0, 1)
    epochs(other, 0)  # in the same file: the first one's is renamed
    epochs(timer, 2)
    epochs(other, 1)
    assert "is another timer's now" in caplog.text
    assert scores_of(log) == [-99, -98] and scores_of(tmp_path / "tta.2.tsv") == [-99, -98, -97]
    epochs(relative, 0)
    monkeypatch.chdir("/")
    epochs(relative, 1)
    (tmp_path / "relative.tsv").rename(tmp_path / "moved.tsv")
    epochs(relative, 2)
    assert scores_of(tmp_path / "moved.tsv") == [-99, -98]
    assert scores_of(tmp_path / "relative.tsv") == [-99, -98, -97]


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
    fit(timer, Stop(inside), epochs=9)
    assert [row["val_accuracy"] for row in timer.rows] == [0.5]
    assert (timer.rows[0]["epoch"] < 1) == inside


def test_k_right_of_n_reach_k_of_n_and_one_less_does_not():
    for n in range(1, 1001):
        fractions = [float(single) for single in np.arange(n + 1, dtype="f") / np.float32(n)]
        for k in range(1, n + 1):
            assert _reaches(fractions[k], k / n, 1) and not _reaches(fractions[k - 1], k / n, 1)
            if n == 1000:
                assert _reaches(fractions[k], k / n, -1) and not _reaches(
                    fractions[k], k / n - 1e-3, -1
                )
                assert _reaches(100 * fractions[k], k / 10, 1)
                assert not _reaches(100 * fractions[k - 1], k / 10, 1)
            if n in (100, 1000):
                share, single, goal = k / n, np.float32(k / n), float(f"{100 * k / n:.1f}")
                for percent in (100 * share, float(100 * single)):  # 100 * 0.57 is less than 57
                    assert _reaches(percent, goal, 1) and not _reaches(percent, goal + 0.01, 1)
                goal, errors = float(f"{1 - share:.3f}"), (1 - share, 1 - float(single))
                for error in (*errors, float(1 - single)) if share < 0.999 else ():
                    assert _reaches(error, goal, -1) and not _reaches(error, goal - 1 / n, -1)
                    assert _reaches(100 * error, float(f"{100 * goal:.1f}"), -1)
    assert not _reaches(0.75 - 1e-9, 0.75, 1)  # in float64, as our scores are
    assert not _reaches(float(np.float32(0.500002)), 0.5, -1)
    assert not _reaches(float(np.float32(1.001e-7)), 1e-7, -1)  # a squared error, no share
    assert _reaches(float("inf"), 1e300, 1) and not _reaches(float("nan"), 0.0, 1)


def test_a_threshold_that_is_met_exactly_is_reached():
    x = np.eye(2, dtype="f")[np.arange(100) % 2]
    y = np.arange(100) % 2
    y[:6] ^= 1  # so 94 of 100 are right
    layers = tf.keras.layers
    network = tf.keras.Sequential(
        [layers.Input((2,)), layers.Dense(2, use_bias=False, kernel_initializer="identity")]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(tf.keras.optimizers.SGD(0.0), loss, metrics=["accuracy"])
    evaluate = partial(network.evaluate, x, y, verbose=0, return_dict=True)
    for own in ({}, {"metric": "accuracy", "evaluate": evaluate}):
        timer = TimeToAccuracy(0.94, **own)
        network.fit(x, y, validation_data=(x, y), epochs=2, verbose=0, callbacks=[timer])
        assert timer.first_hit == timer.rows[0] and len(timer.rows) == 1


class Slow(tf.keras.callbacks.Callback):
    """Adds 3 s to each step and 1,000 s to each hook between epochs.

    Raises KeyboardInterrupt in the hook `interrupt`.
    """

    def __init__(self, seconds, interrupt=None):
        super().__init__()
        self.seconds, self.interrupt = seconds, interrupt

    def spend(self, hook, spent):
        self.seconds.now += spent
        if hook == self.interrupt:
            raise KeyboardInterrupt

    def on_train_batch_begin(self, batch, logs=None):
        self.spend(("step", batch), 3)

    def on_epoch_end(self, epoch, logs=None):
        self.spend(("epoch", epoch), 1000)

    def on_test_end(self, logs=None):
        self.spend("test", 1000)


def endless(x, y):
    """Batches whose number Keras does not know."""
    signature = tf.TensorSpec((None, 4)), tf.TensorSpec((None,))
    batches = [(x[begin : begin + 16], y[begin : begin + 16]) for begin in range(0, 64, 16)]
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)


@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_what_callbacks_do_between_epochs_is_off_the_clock(first, has_length):
    seconds = Seconds()
    timer = TimeToAccuracy(1.0, clock=Clock(now=seconds))
    callbacks = [timer, Slow(seconds)] if first else [Slow(seconds), timer]
    data = {"x": X, "y": Y, "batch_size": 16} if has_length else {"x": endless(X, Y)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's, of data that ran out
        model(metrics=["accuracy"]).fit(
            **data, validation_data=(X, Y), epochs=3, verbose=0, callbacks=callbacks
        )
    parts = timer.clock.parts()
    assert parts["compile"] + parts["train"] == 3 * 4 * 3
    assert [row["hours"] * 3600 for row in timer.rows] == pytest.approx([12, 24, 36])
    assert [row["epoch"] for row in timer.rows] == [1, 2, 3] and timer.step == 3 * 4
    assert sum(parts.values()) == seconds.now >= 36 + 3 * 2000


class Behind:
    """A loss whose value is available 5 s after Python has started the step."""

    def __init__(self, seconds):
        self.seconds, self.ready = seconds, seconds.now + 5

    def numpy(self):
        self.seconds.now = max(self.seconds.now, self.ready)
        return 1.0


def test_a_step_lasts_until_the_device_has_finished_it():
    seconds = Seconds()
    timer = TimeToAccuracy(2.0, "loss", mode="max", clock=Clock(now=seconds))
    begun(timer, steps=2, epochs=2)
    for epoch in range(2):
        timer.on_epoch_begin(epoch)
        for step in range(2):
            seconds.now += 1  # of Python
            timer.on_train_batch_end(step, {"loss": Behind(seconds)})
        seconds.now += 1000
        timer.on_epoch_end(epoch, {"loss": 1.0})
    timer.on_train_end()
    assert timer.clock.parts() == {"other": 2000.0, "compile": 6.0, "train": 18.0}


@pytest.mark.parametrize(
    ("interrupt", "trained"),
    [(("step", 2), 6), (("epoch", 0), 12), ("test", 12)],  # to the end of the last step
)
def test_the_clock_stops_when_an_exception_ends_fit(interrupt, trained):
    seconds = Seconds()
    timer = TimeToAccuracy(1.0, clock=Clock(now=seconds), cost_per_hour=3600.0)
    network = model(metrics=["accuracy"])
    fitted = {"network": network, "validation_data": (X, Y)}
    with pytest.raises(KeyboardInterrupt):
        fit(timer, Slow(seconds, interrupt), epochs=2, **fitted)
    for _ in range(2):
        seconds.now += 500
        assert timer.cost() == pytest.approx(trained) and timer.clock.current == "other"
        assert sum(timer.state()["clock"].values()) == timer.clock.now()
    timer.restore(timer.state())
    fit(timer, Slow(seconds), epochs=1, **fitted)
    assert timer.cost() == pytest.approx(trained + 12) == timer.rows[-1]["hours"] * 3600


def test_the_clock_stops_when_an_exception_ends_fit_in_another_thread():
    seconds = Seconds()
    timer = TimeToAccuracy(1.0, "accuracy", clock=Clock(now=seconds), cost_per_hour=3600.0)
    costs = []
    reader = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_, **__: costs.append(readers.submit(timer.cost).result())
    )
    with ThreadPoolExecutor(1) as threads, ThreadPoolExecutor(1) as readers:
        with pytest.raises(KeyboardInterrupt):
            threads.submit(fit, timer, Slow(seconds, ("step", 2)), reader).result()
        seconds.now += 500
        assert threads.submit(lambda: 1).result() and costs == [3, 6]  # its thread lives
        assert timer.cost() == 6 and timer.clock.current == "other"


def test_time_between_an_interrupted_fit_and_the_next_does_not_count():
    seconds = Seconds()
    clock = Clock(now=seconds)  # read by nobody between the two
    timer = TimeToAccuracy(1.0, clock=clock)
    network = model(metrics=["accuracy"])
    for interrupt in (("step", 2), None):
        seconds.now += 500
        with suppress(KeyboardInterrupt):
            others = {"network": network, "validation_data": (X, Y)}
            fit(timer, Slow(seconds, interrupt), epochs=1, **others)
    assert clock.hours() * 3600 == pytest.approx(6 + 12)


@pytest.mark.parametrize("is_given", [True, False])
def test_the_clock_goes_on_in_another_process(is_given, tmp_path):
    first = fit(TimeToAccuracy(9, "top1", evaluate=sequence(1, 2)), epochs=2)
    state = json.loads(json.dumps(first.state()))
    state["clock"]["train"] += 100
    state["rows"][-1]["hours"] += 100 / 3600
    log = tmp_path / "log.tsv"
    clock = {"clock": Clock({"load": 7.0})} if is_given else {}
    second = TimeToAccuracy(
        9, "top1", evaluate=sequence(3, 9), log=log, cost_per_hour=3600, **clock
    )
    second.restore(state)
    fit(second, epochs=4, initial_epoch=2)
    hours = [row["hours"] for row in second.rows]
    assert hours == sorted(hours) and second.first_hit == second.rows[-1]
    assert second.rows[-1]["hours"] * 3600 == pytest.approx(second.cost(), abs=1)
    assert second.cost() > state["clock"]["compile"] + state["clock"]["train"] + 7 * is_given
    assert [row["hours"] for row in rows_of(log)] == hours
    before = second.cost()
    second.restore(second.state())  # on the same clock: nothing is added
    assert second.cost() == pytest.approx(before, abs=1)


def test_an_epoch_without_validation_has_no_row():
    sets = (1, 2, 3, 4, 5, 6), (2, 4, 6), (2, 4), (1, 5, 6), ()
    cases = product(sets, (1, 2, 3), (0, 3, 9), (0, 1, 2, 5), range(1, 7))
    for validated, every, first, begin, epochs in cases:
        if begin < epochs:
            timer = TimeToAccuracy(0.9, every=every, first=first)
            rows = loop(timer, [1] * (epochs - begin), begin, steps=1, validated=validated)
            assert rows == [
                epoch
                for epoch in validated
                if begin < epoch <= epochs
                and ((epoch % every == 0 and epoch >= first) or epoch == epochs)
            ], (validated, every, first, begin, epochs)


class Threads:
    """Keras 3's CallbackList of callbacks=timer, with JAX or PyTorch."""

    _async_train = True

    def on_train_begin(self, timer):
        timer.on_train_begin()


def test_callbacks_that_keras_calls_in_threads_are_refused():
    timer = TimeToAccuracy(1, "loss")
    timer.set_model(SimpleNamespace(stop_training=False))
    with pytest.raises(ValueError, match="`callbacks` should be a list, as callbacks="):
        Threads().on_train_begin(timer)


def test_an_evaluation_inside_an_epoch_leaves_fit_s_metrics_alone():
    network = model(metrics=["accuracy"])

    def evaluate():
        for metric in network.metrics:
            metric.reset_state()  # as Keras's own does
        return {"loss": 2.0}

    timer = TimeToAccuracy(3, "loss", mode="max", evaluate=evaluate, every=0.5)
    fit(timer, network=network, epochs=1)
    counts = [float(v.numpy()) for metric in network.metrics for v in metric.variables]
    assert max(counts) == len(X) and len(timer.rows) == 2  # not of the second half alone


@pytest.mark.parametrize("metric", ["val_acuracy", "f1"])
def test_a_metric_that_never_comes_is_refused_in_the_first_epoch_that_could_have_it(metric):
    timer = TimeToAccuracy(0.9, metric, mode="max", every=5)
    with pytest.raises(ValueError, match=f"fit logs: accuracy, loss.* Received: metric='{metric}'"):
        loop(timer, [1] * 4, steps=1, validated=(2, 4))
    assert timer.step <= 2


def test_a_copy_has_a_clock_of_its_own():
    timer = fit(TimeToAccuracy(1.0, "accuracy", cost_per_hour=1.0), epochs=2)
    other = pickle.loads(pickle.dumps(timer))  # as copy.deepcopy makes it
    assert other.rows == timer.rows and other.model is None and timer.model is not None
    before = timer.clock.parts()
    fit(other, epochs=3)
    assert [row["epoch"] for row in other.rows] == [1, 2, 3] and len(timer.rows) == 2
    assert {**timer.clock.parts(), "other": 0} == {**before, "other": 0}


def test_rows_log_and_state_hold_floats_under_their_names(tmp_path):
    values = [
        {"top1": np.float32(0.5), "a": tf.constant(1.0)},
        {"b": np.array([3]), "top1": 0.25},
        {"a": tf.constant(4.0, tf.bfloat16), "top1": np.float64(0.125)},
    ]
    timer = TimeToAccuracy(9, "top1", evaluate=iter(values).__next__, log=tmp_path / "log.tsv")
    fit(timer, epochs=3)
    assert json.loads(json.dumps(timer.state()))["rows"] == timer.rows
    lines = [line.split("\t") for line in (tmp_path / "log.tsv").read_text().splitlines()]
    assert lines[0] == ["epoch", "hours", "top1", "a", "b"]
    expected = [["0.5", "1.0", ""], ["0.25", "", "3.0"], ["0.125", "4.0", ""]]
    assert [line[2:] for line in lines[1:]] == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"top1": [0.5, 0.5]},
            "metric 'top1' should be a single number. Received: 2 values.*\"macro\"",
        ),
        ({"top1": "0.5"}, "metric 'top1' should be a single number. Received: '0.5'"),
        ({"top1": None}, "Received: None"),
        ({"top1": 0.5, "epoch": 3}, "should not return 'epoch'"),
        ([0.5, 0.5], "`evaluate` should return a dict with 'top1'"),
    ],
)
def test_an_evaluation_that_is_no_number_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        fit(TimeToAccuracy(1, "top1", evaluate=lambda: values))


def test_a_metric_of_each_class_is_refused_in_the_first_step():
    timer = TimeToAccuracy(0.9, "val_f1_score")
    two = np.stack([Y, 1 - Y], axis=-1)
    network = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax")])
    network.compile("sgd", "categorical_crossentropy", metrics=[tf.keras.metrics.F1Score()])
    with pytest.raises(ValueError, match='val_f1_score.*average="macro"'):
        network.fit(X, two, validation_data=(X, two), batch_size=16, verbose=0, callbacks=[timer])
    assert timer.step == 1


def test_a_loss_of_each_example_in_training_has_one_number_in_validation():
    timer = begun(TimeToAccuracy(0.1, "val_loss"), steps=1, epochs=1)
    timer.on_epoch_begin(0)
    timer.on_train_batch_end(0, {"loss": np.array([1.0, 2.0])})
    assert timer.loss == 1.5
    timer.on_epoch_end(0, {"loss": np.array([1.0, 2.0]), "val_loss": Tensor(0.1)})
    assert timer.reached


class Tensor:
    """One of PyTorch on a GPU, with a gradient."""

    def __init__(self, value):
        self.value = value

    def detach(self):
        double = SimpleNamespace(numpy=lambda: np.float64(np.float32(self.value)))
        return SimpleNamespace(cpu=lambda: SimpleNamespace(double=lambda: double))

    def numpy(self):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_jax_evaluates_at_the_ends_of_epochs_only(monkeypatch):
    monkeypatch.setattr(tf.keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="`every` should be whole with Keras's JAX backend"):
        fit(TimeToAccuracy(1, "top1", evaluate=sequence(0), every=0.5))


def test_what_has_no_number_beside_the_metric_has_no_column(caplog):
    timer = TimeToAccuracy(9, "top1", evaluate=lambda: {"each": np.zeros(3), "top1": 1, "by": "me"})
    assert set(fit(timer, epochs=1).rows[0]) == {"epoch", "hours", "top1"}
    assert "the metric 'each' should be a single number" in caplog.text


def test_a_clock_of_one_s_own_stops_too_and_serves_the_next_timer():
    seconds = Seconds()
    clock = Clock(now=seconds)
    timers = [TimeToAccuracy(1.0, clock=clock) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        fit(timers[0], Slow(seconds, ("step", 2)), validation_data=(X, Y))
    seconds.now += 500
    assert clock.hours() * 3600 == pytest.approx(6) and clock.current == "other"
    seconds.now += 500
    fit(*timers[1:], Slow(seconds), epochs=1, validation_data=(X, Y))
    seconds.now += 500
    assert clock.hours() * 3600 == pytest.approx(6 + 12) and clock.current == "other"
    assert timers[2].rows[0]["hours"] * 3600 == pytest.approx(6 + 12)


def test_who_reads_the_clock_moves_nothing():
    seconds = Seconds()
    timer = TimeToAccuracy(9, "loss", mode="max", clock=Clock(now=seconds))
    reader = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: timer.clock.hours())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's, of data that ran out
        callbacks = [Slow(seconds), reader, timer]
        model().fit(endless(X, Y), epochs=2, verbose=0, callbacks=callbacks)
    assert timer.clock.hours() * 3600 == pytest.approx(2 * 4 * 3)


def loop(timer, lengths, begin=0, steps=None, epochs=None, validated=()):
    """Calls the callback as Keras's `fit` does; returns the epochs of its rows."""
    timer.set_model(timer.model or SimpleNamespace(stop_training=True))  # as an earlier fit left it
    timer.set_params({"steps": steps, "epochs": epochs or begin + len(lengths)})
    timer.on_train_begin()
    for epoch, length in enumerate(lengths, begin):
        timer.on_epoch_begin(epoch)
        timer.model.stop_training = timer.model.stop_training and not length
        for step in range(length):
            timer.on_train_batch_end(step, {"loss": 1.0, "accuracy": 0.5})
        logs = {"loss": 1.0, "accuracy": 0.5}
        if epoch + 1 in validated:
            timer.on_test_begin()
            timer.on_test_end()
            logs["val_accuracy"] = 0.5
        timer.on_epoch_end(epoch, logs)
    timer.on_train_end(logs)
    return [row["epoch"] for row in timer.rows]


def endless_scores(**arguments):
    return TimeToAccuracy(9, "top1", evaluate=sequence(*range(-99, 0)), **arguments)


def test_loops_of_one_s_own_and_epochs_of_any_length():
    seconds = Seconds()
    timer = endless_scores(clock=Clock(now=seconds))
    timer.set_model(SimpleNamespace(stop_training=True))
    timer.set_params({"steps": 4, "epochs": 1})
    timer.on_train_begin()
    timer.on_epoch_begin(0)
    for step in range(4):
        seconds.now += 3
        timer.on_train_batch_end(step, {"loss": [1.0, 2.0]})  # a loss for each example
    assert timer.clock.hours() * 3600 == pytest.approx(12) and timer.loss == 1.5
    assert loop(endless_scores(), [10, 15, 5, 10]) == [1, 2, 3, 4]
    for steps in (None, 4):  # only the hooks of epochs are called
        assert loop(endless_scores(), [0, 0], steps=steps) == [1, 2]
    assert loop(endless_scores(), [4, 0, 0]) == [1]  # a generator that has ended
    assert loop(endless_scores(every=0.5), [4, 4], begin=5, steps=4) == [5.5, 6, 6.5, 7]
    seconds.now = 0.0
    bare = begun(endless_scores(clock=Clock(now=seconds)))
    bare.on_epoch_begin(0)
    seconds.now += 3
    bare.on_epoch_end(0)
    assert [row["epoch"] for row in bare.rows] == [1]
    assert bare.rows[0]["hours"] * 3600 == pytest.approx(3)
    # Keras gives the timer the parameters of an evaluation, whose steps do not count.
    timer, network = endless_scores(), model()
    evaluate = partial(network.evaluate, X[:8], Y[:8], verbose=0, callbacks=[timer])
    for _ in range(2):
        evaluates = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: evaluate())
        fit(timer, evaluates, epochs=2, network=network)
        assert timer.step == 8 and [row["epoch"] for row in timer.rows] == [1, 2]


def test_a_restored_timer_counts_on():
    timer = endless_scores(first=3)
    loop(timer, [4, 4, 4])
    timer.restore(timer.state())
    assert loop(timer, [4, 4]) == [3, 4, 5]  # though Keras counts from 0
    lost = endless_scores()
    lost.restore({"rows": [], "step": 6, "epochs": 1.5})
    assert loop(lost, [4, 4], begin=1, steps=4) == [2, 3]  # BackupAndRestore's second epoch anew
    part = endless_scores()
    part.restore({"rows": [], "step": 6, "epochs": 1.5})
    assert loop(part, [4, 4], steps=4) == [2.5, 3.5] and part.step == 14  # steps from 0 follow


def test_the_weights_are_measured_where_the_data_ends_before_the_last_epoch():
    assert loop(endless_scores(every=4), [4, 4], steps=4, epochs=8) == [2]
    # Keras 3 goes on where each epoch's data end early: 3 of 4 steps.
    assert loop(endless_scores(), [3, 3, 3], steps=4) == [0.75, 1.75, 2.75]


class Sometimes(tf.keras.callbacks.Callback):
    """Logs a metric of its own in every second epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch % 2:
            logs["bleu"] = 0.5


def test_a_metric_that_another_callback_logs_later_is_waited_for(caplog):
    timer = TimeToAccuracy(0.9, "bleu", mode="max")
    model().fit(X, Y, epochs=4, verbose=0, callbacks=[Sometimes(), timer])
    assert [row["epoch"] for row in timer.rows] == [2, 4]
    assert "fit logs: loss. Received: metric='bleu'. No row until it does" in caplog.text


def test_what_restore_must_not_lose(tmp_path):
    log = tmp_path / "tta.tsv"
    log.write_text("of an earlier run")
    timer = endless_scores(log=log, every=0.5)
    timer.restore({"rows": [], "step": 3, "epochs": 0, "clock": {"train": 360.0}})
    assert log.read_text() == "of an earlier run"
    with pytest.raises(ValueError, match="`every` should be whole"):
        loop(timer, [4])  # of unknown length: refused, and what was restored is kept
    assert loop(timer, [4], steps=4) == [0.5, 1] and timer.rows[0]["hours"] > 0.1
    rows = [{"epoch": 1, "hours": 1e-9, "top1": 0}]  # of another run
    timer.restore({"rows": rows, "step": 1, "epochs": 1, "clock": {"train": 1e-5}})
    assert timer.clock.hours() < 0.1
    for _ in range(300):
        timer = copy.deepcopy(timer)
    rows = [{"epoch": n, "hours": n, "top1": value} for n, value in ((1, float("nan")), (2, 0.5))]
    timer.restore({"rows": rows, "step": 2, "epochs": 2})  # of a version without a clock
    assert timer.best == 0.5 and timer.clock.hours() == pytest.approx(2)
    for row in ({"epoch": 1, "hours": 1, "loss": 2}, {"epoch": 1, "top1": 2}):
        with pytest.raises(ValueError, match="`state` should have rows of 'hours' and 'top1'"):
            timer.restore({"rows": [row], "step": 2, "epochs": 1})
    other = endless_scores(log=log)  # whose file has another run's rows
    other.restore({"rows": rows[1:], "step": 2, "epochs": 2})
    assert scores_of(log) == [0.5] and scores_of(tmp_path / "tta.4.tsv")[1] == 0.5
    fold = endless_scores(log=tmp_path / "fold.tsv", clock=None, step_examples=16)
    begin = fold.state()
    for _ in range(2):  # each fold from the begin: its own clock, a whole log
        fold.restore(begin)
        fit(fold, epochs=1)
        assert scores_of(tmp_path / "fold.tsv") == [row["top1"] for row in fold.rows]
        speed = (64 - 16) / fold.clock.parts()["train"]  # the first step compiles
        assert len(fold.rows) == 1 and fold.examples_per_second == pytest.approx(speed, rel=0.05)
