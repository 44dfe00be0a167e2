"""The progress line of a run."""

import io
import re

from dawnbench_tf import recipes, terminal
from dawnbench_tf.run_folder import RunFolder
from dawnbench_tf.training import progress
from dawnbench_tf.tta import TimeToAccuracy
from tests.test_terminal import Terminal


def timer(*scores):
    tta = TimeToAccuracy(98, "top1Accuracy", cost_per_hour=3600)
    tta.loss, tta.examples_per_second = 0.5, 1234.5
    tta.rows = [{"epoch": 1, "hours": 0, "top1Accuracy": score} for score in scores]
    return tta


def test_the_line_shows_best_threshold_clock_speed_and_cost():
    line = progress.format_line(timer(97.0, 96.0), 30)
    assert "top1Accuracy 96.00, best 97.00 of 98" in line and "1,234 examples/s" in line
    assert "  0.0000 h  " in line and re.search(r"\$\d", line)


def test_the_best_is_told_where_it_is_not_the_last():
    assert "top1Accuracy 97.00 of 98" in progress.format_line(timer(96.0, 97.0), 30)
    for threshold, score, text in ((75.9, 75.898, "75.898"), (0.75, 0.7468, "0.7468")):
        tta = timer(score)
        tta.threshold = threshold
        assert f"top1Accuracy {text} of {threshold}" in progress.format_line(tta, 30)  # a miss


def test_a_row_s_line_has_the_parts_that_80_columns_have_room_for():
    for scores, text in (([96.0], "loss 0.500"), ([97.0, 96.0], "2:03:20 left")):
        assert text in progress.format_line(timer(*scores), 100, left=7400, epoch_left=3)[:76]
    whole = progress.format_line(timer(97.0, 38.4), 30, left=39.0, epoch_left=3)
    part = terminal.fitted(whole, Terminal())
    assert len(whole) > 80 >= len(part) and whole.startswith(f"{part}  ")
    assert "39 s left" in part and terminal.fitted(whole, io.StringIO()) == whole


def test_a_pipe_gets_a_line_a_new_row_and_a_terminal_one_that_lives():
    for stream, wanted in ((io.StringIO(), 1), (Terminal(), 2)):
        tta = timer(40.0)  # of an earlier process
        line = progress.Line(tta, 30, stream)
        line.on_train_batch_end(0)
        line.tick()
        tta.rows += timer(50.0).rows
        line.on_epoch_end(0)
        assert stream.getvalue().count("epoch 0/30") == wanted
        assert stream.getvalue().endswith("\n") and ("\r" in stream.getvalue()) == stream.isatty()


def test_a_pipe_gets_a_line_a_minute_too():
    stream = io.StringIO()
    line = progress.Line(timer(), 30, stream)
    line._shown_at -= 54
    line.tick()
    assert stream.getvalue() == ""
    line._shown_at -= 1
    line.tick()
    line.tick()
    assert stream.getvalue().count("\n") == 1


def test_time_left_is_told_at_the_pace_so_far(monkeypatch):
    tta, stream = timer(), io.StringIO()
    line = progress.Line(tta, 2, stream)
    now = iter([100.0, 110.0, 110.0, 110.0]).__next__
    monkeypatch.setattr(progress.time, "monotonic", now)
    tta.restore({"rows": [], "step": 1, "epochs": 0.1})
    line.on_train_batch_end(0)  # at 100 s
    tta.restore({"rows": timer(50.0).rows, "step": 6, "epochs": 0.6})
    line.on_train_batch_end(5)  # at 110 s: 20 s an epoch; 0.4 to its end, 1.4 to that of all
    assert "28 s left" in stream.getvalue() and "8 s to the epoch's end" in stream.getvalue()


def test_before_the_first_step_the_line_says_what_goes_on():
    tta = TimeToAccuracy(98, "top1Accuracy")
    tta.clock.switch("compile")
    assert re.search("compiling .* no step yet", progress.format_line(tta, 30))


def test_a_new_run_says_from_when_on_its_learning_rate_is_0(tmp_path):
    longer = RunFolder(tmp_path, recipes.get("digits/resnet8", epochs=45))
    assert progress.describe_start(longer, None, {}).splitlines()[1] == (
        "the learning rate is 0 from epoch 30 on; "
        "in another folder --schedule_epochs=0,3,45 would stretch its schedule"
    )
    for epochs, factors, idle in (
        ((10, 20), (0, 1), ["the learning rate is 0 from epoch 0 to 10"]),
        ((1, 2, 4, 5), (1, 0, 0, 1), ["the learning rate is 0 from epoch 2 to 4"]),
        ((1, 2, 2.5, 3, 4), (1, 0, 0, 0, 1), ["the learning rate is 0 from epoch 2 to 3"]),
        ((0, 0.5, 1), (0, 0, 1), []),
    ):
        linear = {"schedule_epochs": epochs, "schedule_factors": factors, "schedule": "linear"}
        late = RunFolder(tmp_path, recipes.get("digits/resnet8", **linear))
        assert progress.describe_start(late, None, {}).splitlines()[1:] == idle
    usual = RunFolder(tmp_path, recipes.get("digits/resnet8"))
    assert progress.describe_start(usual, None, {}) == f"in {tmp_path}: a new run"
    late = {"later_batch_sizes": (128,), "batch_size_epochs": (30,)}
    shorter = RunFolder(tmp_path, recipes.get("digits/resnet8", **late))
    assert "\nit ends before epoch 30, when " in progress.describe_start(shorter, None, {})
