"""The command `infer`: timing in one runtime or all, the entry, bad input."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import entries, files, machine, recipes, run_folder, runs
from dawnbench_tf import infer as infer_command
from dawnbench_tf.data.questions import spans
from dawnbench_tf.inference import runtime_choice, runtimes, serving
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission.entry import read_entry
from dawnbench_tf.train import train
from tests import warm


def infer(home, *flags, model="run", python=None, program=("-m", "dawnbench_tf.infer")):
    command = [*(python or warm.python()), *program, f"--model={model}", *flags]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=500)


# The command, with three of the runtimes: tests/inference tries each of them.
FEW = """
import sys
from dawnbench_tf import flags, infer
from dawnbench_tf.data.images import data
from dawnbench_tf.inference import runtime_choice
runtime_choice.ROUNDS, data.SAMPLE = 1, 20
names = ["keras", "function", "litert"]
runtime_choice._candidate_names = lambda _: [(name, "float32") for name in names]
sys.argv[0] = "infer.py"
flags.run(infer.main, infer.Options)
"""


@pytest.fixture(scope="module")
def timed(trained_digits, tmp_path_factory):
    """The output of --runtime=auto, and its folder."""
    home = tmp_path_factory.mktemp("timed")
    flags = ("--instance=c5.2xlarge", "--hardware=8 CPU (c5.2xlarge)", "--passes=1")
    flags += ("--batch_sizes=4", "--threads=1", f"--output_dir={home}")
    done = infer(trained_digits, *flags, program=("-c", FEW))
    assert done.returncode == 0, done.stderr[-2000:]
    return home, done


def test_auto_takes_the_fastest_that_keeps_the_accuracy(timed):
    _, done = timed
    lines = [line for line in done.stdout.splitlines() if line[:1] in "* "]
    tried = [line[2:].split() for line in lines if line[2:].split()[0] in runtimes.RUNTIMES]
    assert sorted(row[0] for row in tried) == ["function", "keras", "litert"]
    assert done.stdout.count("not tried") == 0
    scores = {tuple(row[:2]): float(row[4]) for row in tried}
    least = scores["keras", "float32"] - runtime_choice.LOSS * 100
    kept = [row for row in tried if float(row[4]) >= least]
    fastest = min(kept, key=lambda row: float(row[2]))  # by p50, in ms
    (chosen,) = (line for line in lines if line.startswith("* "))
    assert chosen[2:].split() == fastest
    assert f"{fastest[0]}, {fastest[1]}, on the CPU, 1 thread: " in done.stdout


def test_auto_tries_every_runtime_and_precision(monkeypatch):
    everything = {(name, p) for name, row in runtimes.RUNTIMES.items() for p in row.precisions}
    monkeypatch.setattr(machine, "has_bfloat16", lambda: True)
    assert {*runtime_choice._candidate_names("")} == everything - {("keras", "bfloat16")}
    monkeypatch.setattr(machine, "has_bfloat16", lambda: False)
    assert not [pair for pair in runtime_choice._candidate_names("") if "bfloat16" in pair]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    on_gpu = {name for name, kind in runtime_choice._candidate_names("") if kind == "bfloat16"}
    assert on_gpu == {"function", "xla"}  # OpenVINO answers on the CPU
    monkeypatch.undo()
    assert {pair[1] for pair in runtime_choice._candidate_names("int8")} == {"float32", "int8"}


def test_the_entry_is_valid_and_says_how_it_was_timed(timed):
    home, done = timed
    (path,) = (home / "digits/inference").glob("*.json")
    assert str(path) in done.stdout
    assert "entry of a task outside DAWNBench, ranked apart" in done.stdout
    entry = read_entry(path)
    assert entry.score >= 98 and 0 < entry.latency < 100
    assert (entry.misc["device"], entry.misc["threads"]) == ("CPU", 1)
    if machine.cpus() > 1:
        assert f"_{machine.cpus()}cpu-1-thread_" in entry.name
    assert entry.cost == pytest.approx(0.34 * entry.latency / 3_600_000)
    assert entry.misc["p50Ms"] <= entry.misc["p90Ms"] <= entry.misc["p99Ms"]
    assert entry.misc["loopOverheadMs"] < 0.01 and len(entry.misc["cpus"]) == 1
    assert entries.check_tree(home)[1] == []
    assert entry.hardware.endswith("(c5.2xlarge)")
    assert "c5.2xlarge: $0.34 per hour on 2018-04-20 (Intel_resnet50" in done.stderr


def test_batch_sizes_are_swept_into_a_table_and_a_picture(timed):
    home, done = timed
    head, row = (home / "batch_sizes.tsv").read_text().splitlines()
    assert head == "batch_size\tlatency_ms\texamples_per_second"
    size, milliseconds, throughput = map(float, row.split("\t"))
    assert throughput == pytest.approx(size / milliseconds * 1e3, rel=1e-4)
    assert (home / "batch_sizes.png").stat().st_size > 5_000 and "examples/s" in done.stdout


@pytest.fixture(scope="module")
def digits(trained_digits):
    return serving.load(trained_digits / "run")


@pytest.fixture(scope="module")
def keras_outputs(digits):
    model = digits.served.build("float32")
    images = np.concatenate([image for (image,) in digits.served.examples])
    return np.split(model.predict(images, verbose=0), len(images))


def scored(loaded, outputs):
    return loaded.data.score(loaded.data.join(outputs))


@pytest.mark.parametrize("name", ["litert", "onnx"])
def test_int8_keeps_the_accuracy_within_a_point(digits, keras_outputs, name):
    runtime = runtimes.build(name, digits.served, "int8", 2)
    outputs = [runtime.call(example) for example in digits.served.examples]
    keras, score = (scored(digits, each)["top1Accuracy"] for each in (keras_outputs, outputs))
    assert abs(score - keras) <= 1.0


def test_the_score_is_that_of_the_run_s_last_row(trained_digits, keras_outputs, digits):
    last = (trained_digits / "run/rows.tsv").read_text().splitlines()[-1].split("\t")
    assert scored(digits, keras_outputs)["top1Accuracy"] == pytest.approx(float(last[2]))


@pytest.fixture(scope="module")
def questions(trained_reader):
    return serving.load(trained_reader / "run")


@pytest.mark.parametrize("name", ["function", pytest.param("onnx", marks=pytest.mark.long)])
def test_a_reader_s_answers_one_at_a_time_are_those_of_training(trained_reader, questions, name):
    few = questions.served._replace(examples=questions.served.examples[:60])
    runtime = runtimes.build(name, few, "float32", 2)
    outputs = [runtime.call(example) for example in few.examples]
    written = json.loads((trained_reader / "run/predictions.json").read_text())
    _, first = questions.data.sample(60)
    answers = spans.predictions(first.join(outputs), first.splits)
    assert answers == {key: written[key] for key in answers} and len(answers) == 60
    assert 0 <= first.score(first.join(outputs))["f1Score"] <= 1


def test_a_run_killed_before_its_record_is_recorded_by_the_next_call(trained_reader, tmp_path):
    """On another machine too: the entry names the one that trained, and has the last answers."""
    run = tmp_path / "run"
    shutil.copytree(trained_reader / "run", run)
    answers = (run / "predictions.json").read_bytes()
    for name in ("predictions.json", "utilization.json", "not_an_entry"):
        files.remove(run / name)
    (state,) = run.glob("checkpoint-*/state.json")
    values = files.read_json(state)
    values["machines"][-1]["hardware"] = "1 other GPU"
    files.write_json(state, values)
    again = train(runs.read(run).recipe, runs.read(run).options, run)
    assert (run / "predictions.json").read_bytes() == answers
    assert again.entry.hardware == "1 other GPU"


def test_a_reader_is_timed_by_the_same_command(trained_reader, tmp_path):
    flags = ("--runtime=function", "--examples=20", "--passes=1", f"--output_dir={tmp_path}")
    done = infer(trained_reader, *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not an entry (f1Score is" in done.stdout
    assert "only 20 of 600 examples were timed" in done.stdout
    assert (tmp_path / "not_an_entry/qa_mini/inference").is_dir()


def test_bad_input_is_refused_in_a_line(trained_digits, monkeypatch):
    monkeypatch.chdir(trained_digits)
    priced = Credits(instance="p3.2xlarge", cost_per_hour=1.0)
    for changes, words in (
        ({"model": "nowhere"}, "--model=nowhere: is no folder; should be the --output_dir"),
        ({"model": "."}, ".: holds no run.json; should be the --output_dir of a training run"),
        ({"model": ""}, "--model: should be the --output_dir of a training run"),
        ({"threads": 4096}, "--threads=4096: should be at most the "),
        ({"runtime": "lite"}, "--runtime=lite: should be one of auto, "),
        ({"runtime": "litert", "precision": "bfloat16"}, "--precision=bfloat16: litert has only "),
        ({"credits": priced}, "and --cost_per_hour both give a price"),
        ({"batch_sizes": (0,)}, "--batch_sizes=0: should be at least 1"),
    ):
        with pytest.raises(Refusal, match=words):
            infer_command.infer(infer_command.Options(**{"model": "run", **changes}))


def test_a_model_file_is_refused_and_not_opened(tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04cposix\nsystem\n(S'touch owned'\ntR.")
    done = infer(tmp_path, model="model.pkl")
    words = "--model=model.pkl: is a file; models are not opened from files, which may hold code"
    assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "owned").exists()


def test_a_run_without_weights_is_refused(trained_digits, tmp_path):
    ignored = shutil.ignore_patterns("checkpoint-*")
    shutil.copytree(trained_digits / "run", tmp_path / "run", ignore=ignored)
    with pytest.raises(Refusal, match="holds no checkpoint"):
        serving.load(tmp_path / "run")


def test_weights_of_another_model_are_refused(trained_digits, tmp_path):
    shutil.copytree(trained_digits / "run", tmp_path / "run")
    path = tmp_path / "run/run.json"
    files.write_json(path, {**files.read_json(path), "model": "resnet20_v1_pad"})
    done = infer(tmp_path, "--runtime=function", python=[sys.executable])
    words = "its weights are of another model than its resnet20_v1_pad"
    assert done.returncode == 1 and words in done.stderr


def test_an_interrupt_is_one_line_and_writes_nothing(trained_digits, tmp_path):
    shutil.copytree(trained_digits / "run", tmp_path / "run")
    command = [*warm.python(), "-m", "dawnbench_tf.infer", "--model=run", "--runtime=function"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        next(line for line in process.stderr if "pass 1 of 3" in line)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == "dawnbench infer: interrupted; no entry was written\n"
    assert not (tmp_path / "run/digits/inference").exists()


def test_the_data_are_those_of_the_run_unless_named(tmp_path, monkeypatch):
    def load(folder, data_dir, task, examples):
        raise Refusal(data_dir)

    monkeypatch.setattr(serving, "load", load)
    run_folder.claim(tmp_path, recipes.get("digits/resnet8"), options={"data_dir": "/theirs"})
    for named, used in (("", "/theirs"), ("/mine", "/mine")):
        with pytest.raises(Refusal, match=f"^{used}$"):
            infer_command.infer(infer_command.Options(model=str(tmp_path), data_dir=named))


def test_batch_sizes_before_one_that_fails_are_kept(trained_digits, tmp_path, monkeypatch):
    from dawnbench_tf.inference import batch_sizes

    def sweep(*_):
        yield 1, 0.5, 2000.0
        raise Refusal("--runtime=function: can't run the model")

    monkeypatch.setattr(batch_sizes, "sweep", sweep)
    monkeypatch.setattr("os.sched_setaffinity", lambda process, cpus: None)
    model, output = str(trained_digits / "run"), str(tmp_path)
    few = {"examples": 5, "passes": 1, "batch_sizes": (1, 2)}
    options = infer_command.Options(model=model, runtime="function", output_dir=output, **few)
    with pytest.raises(Refusal, match="^/proc/none: can't be written"):  # before it is timed
        infer_command.infer(dataclasses.replace(options, output_dir="/proc/none"))
    with pytest.raises(Refusal, match="can't run the model"):
        infer_command.infer(options)
    assert len((tmp_path / "batch_sizes.tsv").read_text().splitlines()) == 2
