"""The command `estimate` and its function: real steps, failures, files."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from dawnbench_tf import estimate, recipes, terminal
from dawnbench_tf.estimates import layout, process
from dawnbench_tf.estimates.prediction import Estimate, predict
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.refusals import Refusal
from tests import warm
from tests.estimates.samples import sample

ESTIMATE = ("-m", "dawnbench_tf.estimate")


@pytest.fixture
def warmed(monkeypatch):
    """Processes that time steps have imported TensorFlow already; none is killed as too slow."""
    monkeypatch.setattr(process, "PYTHON", tuple(warm.python()))
    monkeypatch.setattr(process, "GRACE", 200.0)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("digits/resnet9",), "--recipe=digits/resnet9: no such recipe; did you mean digits"),
        (("--seconds=0",), "--seconds=0.0: should be over 0"),
        (("--max_steps=3",), "--max_steps=3: is for train"),
        (("--data_dir=x",), "--data_dir=x: is one task's data"),
        (("--output=no/x.json",), "--output=no/x.json: should be a file in a folder"),
        (("--compare", "a.json"), "--compare: should be followed by two files"),
        (("--compare", "a.json", "b.json"), "a.json: is no file; `dawnbench estimate --output"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cold_command, tmp_path, flags, line):
    ended = cold_command(*flags, program=ESTIMATE)
    assert ended.returncode == 1 and line in ended.stderr and ended.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_digits_are_estimated_from_steps_of_them(warmed, capfd):
    terminal.show(False)
    options = RunOptions(peak_tflops=1, credits=Credits(cost_per_hour=36.0))
    row = estimate.estimate(recipes.get("digits/resnet8"), options, 2)
    assert capfd.readouterr() == ("", "")
    assert not row.generated and row.runs == row.reached == 10 and row.epochs == 10.5
    assert row.steps_timed > 10 and row.hours_interval[0] < row.hours < row.hours_interval[1]
    steps = row.epochs * 21 * 64 / row.examples_per_second
    assert row.hours * 3600 == pytest.approx(row.start_seconds + steps, rel=0.25)
    assert row.usd == pytest.approx(36 * row.hours)
    assert row.share_of_peak == pytest.approx(6 * 12_239_488 * row.examples_per_second / 1e12)
    assert row.process_gib > 0.3 and row.hardware and row.software["tensorflow"]


def test_a_failure_is_the_reason_of_its_row(warmed):
    wide, slow = recipes.get("digits/resnet8"), recipes.get("imagenet/resnet50_v1_5")
    options = RunOptions(num_gpus=64)
    (row,) = estimate.estimate_all([wide], options, 20)
    assert re.match("--num_gpus=64: this machine has", row.reason)
    assert "resnet8: --num_gpus=64" in layout.format_table([row])
    with pytest.raises(Refusal, match="no step ended within -199 s; give it more --seconds"):
        process.take_sample(slow, RunOptions(), 1 - process.GRACE)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed, as for lack of"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"),
        ("raise ValueError('broken')", "process failed: ValueError: broken"),
    ],
)
def test_a_process_that_dies_is_one_row_s_reason(monkeypatch, program, reason):
    monkeypatch.setattr(process, "PROGRAM", program)
    rows = estimate.estimate_all([recipes.get("digits/resnet8")] * 2, seconds=20)
    assert len(rows) == 2 and all(reason in row.reason for row in rows)


def test_ctrl_c_ends_it_with_the_rows_that_are_done(tmp_path):
    command = [sys.executable, *ESTIMATE, "digits/resnet8", "--num_gpus=64", "qa_mini/bidaf"]
    ended = subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    for line in ended.stderr:
        if line.startswith("qa_mini/bidaf (2 of 2)"):
            break
    time.sleep(0.2)
    ended.send_signal(signal.SIGINT)
    out, err = ended.communicate(timeout=30)
    assert ended.returncode == 130 and "interrupted after 1 of 2 recipes" in err
    assert "digits/resnet8: --num_gpus=64" in out and "bidaf" not in out


def test_the_table_fits_80_columns_and_says_what_is_unknown():
    rows = [
        predict(recipes.get("qa_mini/fastfusionnet"), sample(), 1e4),
        predict(recipes.get("imagenet/resnet50_v1_5"), sample(generated=True)),
        predict(recipes.get("digits/resnet8", precision="mixed_bfloat16"), sample()),
        Estimate("cifar10/airbench94_12ep", reason="no step ended within 5 s; " + "x" * 100),
    ]
    text = layout.format_table(rows)
    assert max(map(len, text.splitlines())) <= 80
    assert "<=" in text and "On generated examples" in text and "digits/resnet8*" in text


def test_json_is_read_back_by_compare(cold_command, tmp_path):
    from dawnbench_tf.estimates import comparison

    for name, speed in (("a", 1.0), ("b", 2.0)):
        row = predict(recipes.get("digits/resnet8"), sample([(1 / speed, 10)] * 3), 1.0)
        own = comparison.Machine("", name, {}, comparison.today(), 1.0, [row])
        comparison.write(tmp_path / f"{name}.json", own)
        assert json.loads((tmp_path / f"{name}.json").read_text())["estimates"][0]["runs"] == 10
    ended = cold_command("--compare", "a.json", "b.json", program=ESTIMATE)
    assert ended.returncode == 0 and "2.00x" in ended.stdout, ended.stderr
