"""Processes of a study, with a stand-in for `train` that takes no time."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, outcomes, runner
from dawnbench_tf.studies.runner import Launch, Runner
from tests.studies import samples

STAND_IN = """
import json, sys, os
from pathlib import Path
from dawnbench_tf import files, recipes, runs
flags = dict(f.removeprefix("--").split("=", 1) for f in sys.argv[1:] if "=" in f)
if os.environ.get("FAIL", "none") in flags["output_dir"]:
    sys.exit(os.environ["WHY"])
folder = Path(flags["output_dir"])
folder.mkdir(exist_ok=True)
recipe = recipes.get(flags["recipe"], batch_size=int(flags["batch_size"]), seed=int(flags["seed"]))
files.write_json(folder / runs.RECIPE, recipe.values())
(folder / runs.ROWS).write_text("epoch\\thours\\ttop1Accuracy\\n1\\t0.001\\t99.0\\n")
open(folder / "times", "a").write("ran\\n")
if os.environ.get("HANG", "none") in flags["output_dir"]:
    import time
    time.sleep(60)
"""


@pytest.fixture
def template(tmp_path):
    """A command line that runs the stand-in in place of `train`."""
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(STAND_IN)
    return f'set -- {{command}}; shift 3; {sys.executable} {stand_in} "$@"'


def carry_out(folder, template, **launch):
    study = runner.claim(folder, samples.study(trials=2))
    return Runner(folder, grid.plan(study), Launch(template=template, **launch), False).run()


@pytest.fixture(autouse=True)
def without_lock(monkeypatch):
    """A process may take a folder's lock once; tests claim the same one twice."""
    monkeypatch.setattr(runner.files, "lock", lambda *_: None)


def test_every_run_is_run_once_and_what_is_finished_never_again(tmp_path, template, capsys):
    by_name = carry_out(tmp_path / "s", template, jobs=3)
    assert [o.status for o in by_name.values()] == [outcomes.REACHED] * 4
    again = carry_out(tmp_path / "s", template)
    assert again == by_name
    times = [(tmp_path / "s" / name / "run/times").read_text() for name in by_name]
    assert times == ["ran\n"] * 4
    assert "[4/4]" in capsys.readouterr().err


def test_more_trials_go_on_from_those_that_there_are(tmp_path, template):
    carry_out(tmp_path / "s", template, jobs=2)
    study = runner.claim(tmp_path / "s", samples.study(trials=3))
    planned = grid.plan(study)
    assert len(planned) == 6 and len(runner.finished(tmp_path / "s", planned)) == 4
    assert runner.claim(tmp_path / "s", samples.study(trials=1)).trials == 3


def test_a_crash_and_a_divergence_are_results(tmp_path, template, monkeypatch):
    monkeypatch.setenv("FAIL", "64/seed-1")
    monkeypatch.setenv("WHY", "train.py: training diverged: the loss is nan at step 3")
    by_name = carry_out(tmp_path / "s", template)
    assert by_name["64/seed-1"].status == outcomes.DIVERGED
    assert "nan at step 3" in by_name["64/seed-1"].reason
    assert sum(o.status == outcomes.REACHED for o in by_name.values()) == 3


def test_what_was_refused_is_run_again_if_that_is_asked_for(tmp_path, template, monkeypatch):
    monkeypatch.setenv("FAIL", "64/seed-1")
    monkeypatch.setenv("WHY", "train.py: --batch_size=64: should divide by the 3 replicas")
    assert carry_out(tmp_path / "s", template)["64/seed-1"].status == outcomes.REFUSED
    monkeypatch.delenv("FAIL")
    assert carry_out(tmp_path / "s", template)["64/seed-1"].status == outcomes.REFUSED
    assert carry_out(tmp_path / "s", template, retry=True)["64/seed-1"].status == outcomes.REACHED


def test_a_first_run_that_is_refused_ends_the_study(tmp_path, template, monkeypatch):
    monkeypatch.setenv("FAIL", "seed")
    monkeypatch.setenv("WHY", "train.py: --data_dir=x: does not exist")
    with pytest.raises(Refusal, match="32/seed-0: --data_dir=x: does not exist"):
        carry_out(tmp_path / "s", template)
    assert not list(tmp_path.glob("s/*/*/outcome.json"))


def test_an_interrupt_ends_the_runs_and_keeps_what_is_finished(tmp_path, template, monkeypatch):
    monkeypatch.setenv("HANG", "64/seed-0")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from dawnbench_tf.studies import grid, runner
from tests.studies import samples
from pathlib import Path
folder = Path({str(tmp_path / "s")!r})
study = runner.claim(folder, samples.study(trials=2))
launch = runner.Launch(template={template!r})
runner.Runner(folder, grid.plan(study), launch, False).run()
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "s/64/seed-0/run/times").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode and b"KeyboardInterrupt" in said
    finished = [
        str(path.parent.relative_to(tmp_path / "s")) for path in tmp_path.glob("s/*/*/outcome.json")
    ]
    assert finished == ["32/seed-0"]
    monkeypatch.delenv("HANG")
    assert len(carry_out(tmp_path / "s", template)) == 4
    assert (tmp_path / "s/32/seed-0/run/times").read_text() == "ran\n"
    assert (tmp_path / "s/64/seed-0/run/times").read_text() == "ran\nran\n"


@pytest.mark.parametrize(
    ("status", "ran"),
    [(0, ["dawnbench_tf.train", "dawnbench_tf.infer"]), (3, ["dawnbench_tf.train"])],
)
def test_a_model_that_reached_its_goal_is_timed_too(tmp_path, monkeypatch, status, ran):
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\necho $2 >> {tmp_path}/ran\n[ $2 = dawnbench_tf.infer ] || exit {status}\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr(runner.sys, "executable", str(python))
    (planned, *_) = grid.plan(samples.study())
    runs = Runner(tmp_path / "a b", [planned], Launch(template="nice {command}"), latency=True)
    command = runs._command(planned, tmp_path / "a b" / planned.name, 0)
    assert subprocess.run(command, shell=True).returncode == status
    assert (tmp_path / "ran").read_text().split() == ran


def test_a_study_with_lists_among_its_settings_goes_on(tmp_path):
    study = samples.study(settings={"schedule_epochs": (0.0, 2.0, 30.0)})
    assert runner.claim(tmp_path, study).values() == runner.claim(tmp_path, study).values()


def test_a_folder_of_another_study_or_of_something_else_is_refused(tmp_path):
    runner.claim(tmp_path / "a", samples.study())
    with pytest.raises(Refusal, match="holds study sample with another recipe"):
        runner.claim(tmp_path / "a", samples.study(recipe="cifar10/resnet20_tf"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/thesis.txt").touch()
    with pytest.raises(Refusal, match="holds other files and no study"):
        runner.claim(tmp_path / "b", samples.study())
    with pytest.raises(Refusal, match="holds no study.json"):
        runner.read(tmp_path / "b")


def test_a_template_without_a_place_for_the_command_is_refused():
    runner.check_template("srun {command}")
    with pytest.raises(Refusal, match="--launch=srun: should have {command} in it"):
        runner.check_template("srun")
