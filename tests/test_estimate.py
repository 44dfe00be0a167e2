"""The command `estimate` and its function: real steps, failures, files."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from dawnbench_tf import estimate, machine, recipes, terminal
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.recipes import speed
from dawnbench_tf.recipes.speed import Estimate, predict
from dawnbench_tf.refusals import Refusal
from tests import warm
from tests.speed_tests import DIGITS, measured, speed_test, with_evidence

ESTIMATE = ("-m", "dawnbench_tf.estimate")


@pytest.fixture
def warmed(monkeypatch):
    """Processes that time steps have imported TensorFlow already; none is killed as too slow."""
    monkeypatch.setattr(machine, "python", warm.python)
    monkeypatch.setattr(speed, "GRACE", 200.0)


def test_bad_input_is_refused_in_a_line(monkeypatch):
    monkeypatch.setattr(estimate.flags, "replacements", lambda settings: {})
    monkeypatch.setattr(estimate.flags, "is_given", lambda name: False)
    for names, values, line in (
        (["digits/resnet9"], {}, "--recipe=digits/resnet9: no such recipe; did you mean digits"),
        ([], {"run": RunOptions(data_dir="x")}, "--data_dir=x: is one task's data"),
        ([], {"output": "no/x.json"}, "--output=no/x.json: should be a file in a folder"),
        ([], {"output": f"{__file__}/x.json"}, ".*/x.json: should be a file in a folder"),
        (["a"], {"compare": True}, "--compare: should be followed by two files"),
        (["a", "b"], {"compare": True, "json": True}, "--compare=true: prints a table; leave"),
        (["a", "b"], {"compare": True, "output": "c"}, "--compare=true: prints a table; leave"),
    ):
        with pytest.raises(Refusal, match=line):
            estimate.main(estimate.Options(**values), names)
    monkeypatch.setattr(estimate.flags, "is_given", "output_dir".__eq__)
    with pytest.raises(Refusal, match="--output_dir=x: is for train"):
        estimate.main(estimate.Options(run=RunOptions(output_dir="x")), [])


def test_the_digits_are_estimated_from_steps_of_them(warmed, capfd):
    terminal.show(False)
    options = RunOptions(peak_tflops=1, credits=Credits(cost_per_hour=36.0))
    row = estimate.estimate(DIGITS, options, 2)
    assert capfd.readouterr() == ("", "")
    assert not row.generated and row.runs == row.reached == 10 and row.epochs == 10.5
    assert row.steps_timed > 10 and row.hours_interval[0] < row.hours < row.hours_interval[1]
    steps = row.epochs * 21 * 64 / row.examples_per_second
    assert row.hours * 3600 == pytest.approx(row.start_seconds + steps, rel=0.25)
    assert row.usd == pytest.approx(36 * row.hours)
    assert row.share_of_peak == pytest.approx(6 * 12_239_488 * row.examples_per_second / 1e12)
    assert row.process_gib > 0.3 and row.hardware and row.software["tensorflow"]


def test_a_failure_is_the_reason_of_its_row(warmed):
    (row,) = estimate.estimate_all([DIGITS], RunOptions(num_gpus=64), 20)
    assert row.reason.startswith("--num_gpus=64: this machine has")
    assert "resnet8: --num_gpus=64" in estimate.table([row])
    with pytest.raises(Refusal, match="no step ended within -199.0 s; give it more --seconds"):
        speed.take(recipes.get("imagenet/resnet50_v1_5"), RunOptions(), 1 - speed.GRACE)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed, as for lack of"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"),
        (
            "from dawnbench_tf.training import process; process.pickle = 0; process.main()",
            "process failed: AttributeError: 'int' object has no attribute 'loads'",
        ),
    ],
)
def test_a_process_that_dies_is_one_row_s_reason(tmp_path, monkeypatch, program, reason):
    monkeypatch.setattr(speed, "COMMAND", ("-c", program))
    (tmp_path / "pickle.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("/an/installed/package")
    rows = estimate.estimate_all([DIGITS] * 2, seconds=20)
    assert len(rows) == 2 and all(reason in row.reason for row in rows)


def test_ctrl_c_ends_it_with_the_rows_that_are_done(tmp_path):
    command = [sys.executable, *ESTIMATE, "digits/resnet8", "--num_gpus=64", "qa_mini/bidaf"]
    ended = subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    next(line for line in ended.stderr if line.startswith("qa_mini/bidaf (2 of 2)"))
    time.sleep(0.2)
    ended.send_signal(signal.SIGINT)
    out, err = ended.communicate(timeout=30)
    assert ended.returncode == 130 and "interrupted after 1 of 2 recipes" in err
    assert "digits/resnet8: --num_gpus=64" in out and "bidaf" not in out


def test_the_table_fits_80_columns_and_says_what_is_unknown():
    fusion, resnet = recipes.get("qa_mini/fastfusionnet"), recipes.get("imagenet/resnet50_v1_5")
    half = recipes.get("digits/resnet8", precision="mixed_bfloat16")
    rows = [
        predict(speed_test(recipe=fusion, cost_per_hour=1e4)),
        predict(speed_test(recipe=replace(resnet, synthetic="jpeg"))),
        predict(speed_test(recipe=half)),
        predict(speed_test(recipe=with_evidence(measured(runs=3)), cost_per_hour=1.0)),
        Estimate("cifar10/airbench94_12ep", reason="no step ended within 5 s; " + "x " * 60),
    ]
    text = estimate.table(rows)
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "On generated examples" in text and "digits/resnet8*" in text
    assert "the time of all 90 epochs; no run of it was measured, so whether it reaches" in words
    assert text.count("never") == 4 and "$inf" not in text  # epochs, clock, in all, USD


def written(folder, name, test, **changes):
    """Writes the file of a machine; returns its path."""
    rows = [predict(test).facts(), Estimate("qa_mini/bidaf", reason="no step ended").facts()]
    values = {"format": 3, "date": "2026-11-23", "estimates": rows, **changes}
    (folder / f"{name}.json").write_text(json.dumps(values))
    return folder / f"{name}.json"


def test_machines_stand_side_by_side(cold_command, tmp_path):
    fast = speed_test([(0.25, 10)] * 2, hardware="b b", cost_per_hour=0.36)
    paths = [written(tmp_path, "a", speed_test()), written(tmp_path, "b", fast)]
    machines = estimate.compare(paths)
    assert [list(own) for own in machines.values()] == [["digits/resnet8"]] * 2  # no failures
    ended = cold_command("--compare", "a.json", "b.json", program=ESTIMATE)
    assert ended.returncode == 0 and "1.00x" in ended.stdout and "4.00x" in ended.stdout
    assert "2  b.json: b b, $0.36 an hour" in ended.stdout and "*" not in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"threshold": 50.0}, "goal top1Accuracy 50 instead of top1Accuracy 98"),
        ({"batch_size": 128}, "batch_size 128 instead of the recipe's"),
        ({"precision": "mixed_bfloat16"}, "precision mixed_bfloat16 instead of the recipe's"),
        ({"learning_rate": 1.0}, "learning_rate 1.0 instead of the recipe's"),
        ({"synthetic": "decoded"}, "examples generated instead of its data"),
        ({"model": "resnet20_tf"}, "model resnet20_tf instead of resnet8_v1_pad"),
    ],
)
def test_another_goal_or_setting_is_marked(tmp_path, changes, note):
    recipe = replace(DIGITS, name="digits/mine") if "model" in changes else DIGITS
    other = speed_test(recipe=recipes.changed(recipe, **changes))
    test = speed_test(recipe=recipe)
    paths = [written(tmp_path, "a", test), written(tmp_path, "b", other)]
    text = estimate.format_comparison(estimate.compare(paths))
    assert "2*" in text and note in " ".join(text.split())
    options = RunOptions(data_format="NCHW", data_dir="mine")
    newer = test._replace(software={"tensorflow": "2.21.0"}, options=options)
    paths[1] = written(tmp_path, "b", newer)
    text = estimate.format_comparison(estimate.compare(paths))
    versions = "data_format NCHW instead of the default, tensorflow 2.21.0 instead of 2.20.0"
    assert versions in " ".join(text.split())


def test_a_machine_that_never_reaches_says_never(tmp_path):
    missed = speed_test(recipe=with_evidence(measured(8, runs=2)), cost_per_hour=1.0)
    paths = [written(tmp_path, "a", speed_test()), written(tmp_path, "b", missed)]
    line = estimate.format_comparison(estimate.compare(paths)).splitlines()[5]
    assert line.split() == ["2", "100", "never", "1.00x", "never"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"format": 1}, "format should be 3"),
        ({"date": 3}, "date should be text"),
        ({"estimates": [{"recipe": "x"}]}, "estimates.0: estimate: '.*' is missing"),
        ({"estimates": [Estimate("x").facts()]}, "estimates.0: examples_per_second should be over"),
        ({"estimates": [3]}, "estimates.0: estimate: '.*' is missing"),
        ({"more": 1}, "'more' is no field"),
        ({"estimates": []}, "no recipe was estimated on two"),
    ],
)
def test_a_file_of_somebody_s_is_refused_by_name_and_key(tmp_path, changes, line):
    paths = [written(tmp_path, name, speed_test()) for name in "ab"]
    written(tmp_path, "b", speed_test(), **changes)
    with pytest.raises(Refusal, match=rf"b.json.*: {line}"):
        estimate.compare(paths)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(Refusal, match="a.json: can't be read .*--output=FILE` writes one"):
        estimate.compare([tmp_path / "a.json"])
