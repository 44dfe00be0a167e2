"""The command, end to end, as a user runs it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from dawnbench_tf import recipes, run_folder, runs, train
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.runs import run_entry
from tests import warm
from tests.conftest import ENTRY

FAST = ("--image_sizes=8", "--peak_tflops=1")  # a sixteenth of the computation of 32 pixels
QUICK = ("--epochs=2", "--output_dir=out", "--threshold=100", *FAST)


def rows(folder):
    """Epochs and accuracies of a run; hours differ from run to run."""
    return [line.split("\t")[::2] for line in (folder / "rows.tsv").read_text().splitlines()]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def entry_of(run):
    """The JSON and the lines of the TSV of a run's entry."""
    home = run / "digits/train"
    name = "ada-l_resnet8-v1-pad_here_tensorflow-2.20"
    assert sorted(os.listdir(home)) == [f"{name}.json", f"{name}.tsv"]
    entry = json.loads((home / f"{name}.json").read_text())
    return entry, (home / f"{name}.tsv").read_text().splitlines()


def test_the_default_reaches_its_threshold_and_leaves_an_entry(trained_digits):
    said = (trained_digits / "stdout").read_text()
    assert "reached top1Accuracy 98" in said or "reached top1Accuracy 99" in said
    entry, lines = entry_of(trained_digits / "run")
    assert entry["misc"]["recipe"]["name"] == "digits/resnet8" and entry["costPerHour"] == 3.6
    clock = entry["misc"]["clockSeconds"]
    assert lines[0] == "epoch\thours\ttop1Accuracy"
    last = [float(value) for value in lines[-1].split("\t")]
    assert last[2] >= 98 > max(float(line.split("\t")[2]) for line in lines[1:-1])
    parts = sum(clock[part] for part in ("load", "build", "compile", "train"))
    assert last[1] * 3600 <= parts + 4 * 0.0005 + 0.001  # the entry rounds each to a millisecond


COUNTING = """
import runpy, sys
reads = []
def audit(event, arguments):
    if event == "open" and str(arguments[0]).endswith("run.json") and arguments[1] in ("r", "rb"):
        reads.append(arguments)
sys.addaudithook(audit)
try:
    runpy.run_module("dawnbench_tf.train", run_name="__main__", alter_sys=True)
finally:
    print("reads of run.json:", len(reads))
"""


def test_a_finished_run_is_read_once_told_again_and_trains_nothing(
    command, trained_digits, tmp_path
):
    entry, lines = entry_of(trained_digits / "run")
    shutil.copytree(trained_digits / "run", tmp_path / "out")
    (path,) = (tmp_path / "out").rglob("train/*.json")
    path.write_text(path.read_text().replace(entry["timestamp"], "2026-01-31"))
    before = (tmp_path / "out/run.json").read_text()
    others = ("--strategy=one_device", "--steps_per_execution=3", "--data_format=NCHW")
    again = command("--output_dir=out", *ENTRY, *others, program=("-c", COUNTING))
    assert again.returncode == 0 and "epoch 1/" not in again.stderr, again.stderr
    assert "reads of run.json: 1" in again.stdout
    entry_again, lines_again = entry_of(tmp_path / "out")
    assert lines_again == lines and entry_again["timestamp"] == "2026-01-31"  # it trained then
    assert (tmp_path / "out/run.json").read_text() == before  # and as it is recorded there
    assert all(entry_again["misc"][name] == entry["misc"][name] for name in run_entry.MEASURED[:-1])
    recipe = recipes.get("digits/resnet8")
    assert train._new_folder(recipe) != train._new_folder(recipe)
    once, more = (item["misc"]["clockSeconds"] for item in (entry, entry_again))
    assert more["load"] == once["load"] and more["import"] == once["import"]


def test_a_run_goes_on_with_its_own_recipe_and_a_miss_can_be_trained_longer(command, tmp_path):
    own = ("--seed=3", "--threshold=60", "--batch_size=32")
    assert command("--epochs=1", "--output_dir=out", *own).returncode == 3
    before = rows(tmp_path / "out")
    again = command("--output_dir=out")
    assert again.returncode == 3 and rows(tmp_path / "out") == before
    assert "dawnbench train --output_dir=out --epochs=2" in again.stdout
    longer = command("--output_dir=out", "--epochs=20")
    assert longer.returncode == 0, longer.stderr
    assert "out: missed 60 in 1 epoch; trained longer, to 20" in longer.stderr
    assert rows(tmp_path / "out")[: len(before)] == before and "epoch 1/" not in longer.stderr
    assert "picture: out/accuracy.png\nto time its answers: dawnbench infer" in longer.stdout
    assert "out --epochs" not in longer.stdout
    (path,) = (tmp_path / "out").rglob("digits/train/*.json")  # an entry if the row is at 98
    misc = json.loads(path.read_text())["misc"]
    assert misc["epochsBefore"] == [1] and misc["recipe"]["epochs"] == 20
    refused = command("--output_dir=out", "--epochs=30")
    line = "--epochs=30: nothing to do: out reached 60 in epoch "
    assert refused.returncode == 1 and line in refused.stderr


def test_a_trial_says_what_the_recipe_would_cost_and_saves_it(command, tmp_path):
    flags = ("--max_steps=8", "--instance=c5.2xlarge", "--hardware=c5.2xlarge", "--peak_tflops=1")
    done = command(*flags, "--output_dir=out")
    assert done.returncode == 0, done.stderr
    assert "c5.2xlarge: $0.34 per hour on 2018-04-20" in done.stderr
    assert "without evaluations, $" in done.stdout and "% of the peak" in done.stdout
    assert "1 replica\n" in done.stderr
    facts = json.loads((tmp_path / "out/trial.json").read_text())
    steps = 30 * 21
    assert facts["usd"] == pytest.approx(0.34 * steps * facts["secondsPerStep"] / 3600)
    assert facts["usd"] == pytest.approx(0.34 * facts["hoursOfAllEpochs"]) and facts["steps"] == 8
    assert facts["shareOfPeak"] > 0
    assert not (tmp_path / "out/run.json").exists()  # the folder can be used


def test_a_miss_says_so_and_is_the_same_however_many_steps_go_in_one_call(command, tmp_path):
    curves = []
    for steps in (1, 10):
        flags = ("--epochs=1.2", f"--steps_per_execution={steps}", f"--output_dir={steps}")
        done = command(*QUICK, *flags)
        assert done.returncode == 3
        curves.append(rows(tmp_path / str(steps)))
    assert curves[0] == curves[1]
    assert [row[0] for row in curves[0]] == ["epoch", "1", "1.2381"]  # of 21 steps: 10, 10, 1, 5
    assert "did not converge: best top1Accuracy" in done.stdout and "not an entry" in done.stdout
    assert not (tmp_path / "10/digits").exists()
    assert len(list((tmp_path / "10/not_an_entry/digits/train").iterdir())) == 2


MIRRORED = ("--strategy=mirrored", "--logical_cpus=2")
WORKERS = ("--strategy=multi_worker_mirrored",)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (
            ("--recipe=cifar10/resnet20_tf",),
            "--data_dir: cifar10 needs the data: a folder or an archive (train also takes",
        ),
        ((*MIRRORED, "--batch_size=63"), "--batch_size=63: should divide by the 2 replicas; 62"),
        (("--logical_cpus=2",), "--logical_cpus=2: should have --strategy=mirrored as well"),
        ((*MIRRORED, "--jit_compile"), "--jit_compile=true: XLA can't compile one step for 2 CPU"),
        (("--instance=p9.huge",), "--instance=p9.huge: is not known; --instance=? lists"),
        ((*WORKERS, "--instance=p3.2xlarge"), "--instance=p3.2xlarge: is one machine's price"),
        (("--strategy=tpu",), "--tpu=local: no TPU found there"),
        (("--strategy=tpu", "--tpu=grpc://a:1"), "--tpu=grpc://a:1: should be grpc"),
        (("--strategy=tpu", "--tpu=mine"), "--tpu=mine: can't be used"),
        (WORKERS, "--strategy=multi_worker_mirrored: give --worker_hosts"),
        ((*WORKERS, "--worker_hosts=a:1,b:1"), "--task_index=-1: should be in 0..1"),
        (("--precision=mixed_float16",), "--precision=mixed_float16: float16 needs a GPU"),
    ],
)
def test_bad_input_is_one_line_and_status_1(command, tmp_path, flags, line):
    done = command(*flags, "--output_dir=out")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"dawnbench train: {line}") and "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.long
def test_nchw_where_it_cannot_run_is_refused(cold_command):
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = cold_command("--data_format=NCHW", "--output_dir=out", env=environment)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "--data_format=NCHW: this device can't train in this layout" in done.stderr


def start(tmp_path, *flags):
    command = [*warm.python(), "-m", "dawnbench_tf.train", *flags]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def end(process, path, death, status):
    """Ends a run some time after a path has appeared, and holds its last words."""
    wait_for(path, process)
    time.sleep(0.25)  # somewhere into what comes next
    process.send_signal(death)
    _, error = process.communicate()
    assert process.returncode == status, error
    if death != signal.SIGKILL:
        again = shlex.join(["dawnbench", "train", *LONG])
        assert error.splitlines()[-1] == f"dawnbench train: interrupted; to continue: {again}"
        assert "Traceback" not in error


LONG = ("--epochs=4", "--threshold=100", "--output_dir=out", *FAST)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Rows of the run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder, *LONG)
    process.communicate()
    assert process.returncode == 3
    return rows(folder / "out")


@pytest.mark.parametrize(
    ("death", "status", "after"),
    [
        pytest.param(signal.SIGKILL, -signal.SIGKILL, "checkpoint-3", marks=pytest.mark.long),
        (signal.SIGINT, 130, "checkpoint-2"),
    ],
)
def test_a_run_that_dies_goes_on_to_the_same_rows(command, tmp_path, whole, death, status, after):
    end(start(tmp_path, *LONG), tmp_path / "out" / after, death, status)
    spent = json.loads((tmp_path / "out/clock.json").read_text())
    again = command("--output_dir=out")
    assert again.returncode == 3, again.stderr
    assert rows(tmp_path / "out") == whole
    assert "epoch 1/" not in again.stderr  # it went on, it did not begin again
    clock = json.loads((tmp_path / "out/clock.json").read_text())
    assert clock["train"] > spent["train"] > 0 and clock["load"] > spent["load"] * 1.2
    lines = (tmp_path / "out/rows.tsv").read_text().splitlines()[1:]
    hours = [float(line.split("\t")[1]) for line in lines]
    assert hours == sorted(hours)
    lost = sum(spent.get(part, 0) for part in ("load", "build", "compile", "train"))
    assert hours[-1] * 3600 > lost  # what the dead process spent is on the clock


@pytest.mark.long
def test_a_closed_terminal_ends_a_run_as_an_interrupt_does(tmp_path):
    end(start(tmp_path, *LONG), tmp_path / "out/checkpoint-1", signal.SIGHUP, 129)


def test_an_interrupt_that_a_destructor_swallows_comes_again(command):
    program = """
import os, signal, time
from dawnbench_tf import flags
flags.SECONDS_TO_UNWIND = 0.2
signal.signal(signal.SIGINT, flags.interrupt)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except BaseException:
    swallowed = True
try:
    time.sleep(5)
except KeyboardInterrupt as interrupt:
    raise SystemExit(40 + swallowed + interrupt.args[0])
"""
    assert command(program=("-c", program)).returncode == 43


def test_two_processes_in_one_folder(tmp_path, command):
    process = start(tmp_path, *LONG)
    wait_for(tmp_path / "out/checkpoint-1", process)
    done = command(*LONG)
    process.kill()
    process.communicate()
    assert done.returncode == 1 and "another process is training in it" in done.stderr


@pytest.mark.long
def test_a_full_disk_is_one_line_and_loses_nothing(command, tmp_path):
    program = """
import resource, sys
from dawnbench_tf import flags, train
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # weights and momentum are 600 kB
sys.argv[0] = "train.py"
flags.run(train.main, train.Options, replaces=train.Recipe)
"""
    done = command(*LONG, program=("-c", program))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "out: can't be written" in done.stderr.splitlines()[-1]
    assert not list((tmp_path / "out").glob("*checkpoint-*"))
    assert rows(tmp_path / "out")[1][0] == "1"
    assert command(*LONG).returncode == 3


def test_tensorboard_and_profile_are_written(command, tmp_path):
    done = command(*QUICK, "--tensorboard", "--profile_steps=2,4", "--deterministic")
    assert done.returncode == 3, done.stderr
    assert "used: " in done.stdout and "waited for input" not in done.stdout  # not deterministic
    assert "profile of steps 2 to 10: " in done.stderr and "Conv2DBackpropFilter " in done.stderr
    logs = [path.name for path in (tmp_path / "out/tensorboard").rglob("*") if path.is_file()]
    assert any(name.startswith("events") for name in logs)
    assert any(name.endswith(".xplane.pb") for name in logs)


def test_a_recipe_s_file_is_trained_and_its_run_goes_on_without_it(command, tmp_path):
    text = 'base = "digits/resnet8"\nname = "own/quick"\n[settings]\nepochs = 1\nthreshold = 10.2\n'
    (tmp_path / "my.toml").write_text(text)
    done = command("my.toml", "--output_dir=out", "--seed=3", *FAST)
    assert done.returncode == 0 and "own/quick: resnet8_v1_pad" in done.stderr, done.stderr
    values = json.loads((tmp_path / "out/run.json").read_text())
    keys = ("name", "task", "epochs", "seed")
    assert [values[key] for key in keys] == ["own/quick", "digits", 1, 3]
    before = contents(tmp_path / "out")
    (tmp_path / "my.toml").write_text(text + "batch_size = 32")
    refused = command("--recipe=my.toml", "--output_dir=out", "--seed=3", *FAST)
    line = "holds a run of own/quick with batch_size=64, not 32"
    assert refused.returncode == 1 and line in refused.stderr
    assert contents(tmp_path / "out") == before  # nothing was overwritten
    (tmp_path / "my.toml").unlink()
    assert command("--output_dir=out").returncode == 0


def test_a_wrong_name_of_a_recipe_is_one_line(cold_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1/run.json").touch()
    monkeypatch.setattr(train.flags, "is_given", "recipe".__eq__)
    for arguments, line in (
        (["my.toml"], "--recipe=digits/resnet8: and my.toml both name"),
        (["my.toml", "b.toml"], "b.toml: not a flag; flags are written --name=value, a recipe's"),
        (["my.tml"], "my.tml: not a flag; flags are written --name=value, a recipe's file FILE"),
        (["digits/resnet8"], "digits/resnet8: not a flag; did you mean --recipe=digits/resnet8?"),
        (["run1"], "run1: not a flag; did you mean --output_dir=run1?"),
    ):
        with pytest.raises(Refusal, match="^" + line.replace("?", r"\?")):
            train.main(train.Options(), arguments)
    with pytest.raises(Refusal, match="^--task_name=pets: is for data of your own; this is digits"):
        train._recipe(train.Options(task_name="pets"), {}, False)
    done = cold_command("--task=foldr", "--help")
    line = "dawnbench train: --task=foldr: did you mean folder? should be folder, npz, "
    assert done.returncode == 1 and done.stderr.startswith(line), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_goes_on_with_the_options_of_its_folder(command, tmp_path):
    own = ("--author=Ada L.", "--hardware=it", "--instance=c5.2xlarge", "--steps_per_execution=7")
    assert command(*QUICK, *own, "--epochs=1").returncode == 3
    recorded = json.loads((tmp_path / "out/run.json").read_text())["options"]
    assert recorded.pop("cost_per_hour") == 0.34
    wanted = {"author": "Ada L.", "instance": "c5.2xlarge", "hardware": "it"}
    assert recorded == {**wanted, "steps_per_execution": 7, "peak_tflops": 1.0}
    longer = command("--output_dir=out", "--epochs=2", "--cost_per_hour=3.6")
    assert longer.returncode == 3, longer.stderr
    words = "--steps_per_execution=7 --peak_tflops=1.0 '--author=Ada L.' --hardware=it, as it began"
    assert f"goes on with {words}\n" in longer.stderr
    values = json.loads((tmp_path / "out/run.json").read_text())
    assert values["epochs_before"] == [1] and values["options"]["cost_per_hour"] == 3.6
    entries = [*(tmp_path / "out").rglob("not_an_entry/digits/train/*.json")]
    assert 3.6 in [json.loads(path.read_text())["costPerHour"] for path in entries]


def test_recorded_data_that_are_gone_are_refused_and_a_refused_folder_is_not_recorded(
    command, tmp_path
):
    recipe = recipes.get("cifar10/resnet20_tf")
    run_folder.claim(tmp_path / "out", recipe, options={"data_dir": "/no"}).release()
    for flags, folder in (((), "/no"), (("--data_dir=other",), "other")):
        done = command("--output_dir=out", *flags)
        assert f"dawnbench train: --data_dir={folder}: does not exist" in done.stderr, done.stderr
        assert ("goes on with --data_dir=/no, as it began" in done.stderr) == (not flags)
    assert runs.read(tmp_path / "out").options.data_dir == "/no"


def test_another_strategy_leaves_out_the_devices_of_the_one_before(tmp_path, monkeypatch):
    recorded = {"strategy": "mirrored", "logical_cpus": 2, "steps_per_execution": 7}
    run_folder.claim(tmp_path, recipes.get("digits/resnet8"), options=recorded).release()
    monkeypatch.setattr(train.flags, "is_given", lambda name: name == "strategy")
    for strategy, cpus in (("off", 0), ("mirrored", 2)):
        run = train._as_it_began(RunOptions(strategy=strategy, output_dir=str(tmp_path)))
        assert run.strategy == strategy and run.logical_cpus == cpus
        assert run.steps_per_execution == 7
