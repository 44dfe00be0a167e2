"""`dawnbench doctor`: this machine, a broken TensorFlow, GPUs that only the driver sees, steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from dawnbench_tf import doctor, machine
from tests import warm

READY = {"version": "2.20.0", "cuda": "12.5.1", "cudnn": "9", "cuda build": True, "gpus": []}
READY |= {"wrong": [], "loaded": {}}
SMI = """
Driver Version                            : {driver}
CUDA Version                              : {cuda}

Attached GPUs                             : 2
GPU 00000000:00:1E.0
    Product Name                          : Tesla V100-SXM2-16GB
    Product Brand                         : Tesla
"""
SECOND = "GPU 00000000:00:1F.0\n    Product Name              : Tesla V100-SXM2-16GB\n"


def run(*arguments, **environment):
    command = [sys.executable, "-m", "dawnbench_tf.doctor", *arguments]
    own = {**os.environ, **environment}
    own.pop("TF_USE_LEGACY_KERAS", None)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=own)


def test_this_machine_is_ready():
    done = run("--nosteps")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[-1] == "ready" and "not ready" not in done.stdout
    subjects = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)  # a long path
    assert subjects[:6] == ["Python", "dawnbench_tf", "CPU", "memory", "disk", "TensorFlow"]
    assert ("--precision=float32" in done.stdout) != machine.has_bfloat16()


@pytest.fixture
def warmed(monkeypatch):
    """Processes that train steps have imported TensorFlow already."""
    start = doctor._run
    monkeypatch.setattr(doctor, "_run", lambda command: start([*warm.python(), *command[1:]]))


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.long)])
def test_steps_are_timed_on_each_kind_of_device(warmed, devices):
    finding = doctor._some_steps(doctor.ON_CPUS[devices - 1])
    assert finding.text.endswith(" ms a step") and not finding.problem


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ImportError('libfoo.so.1: no such file')", "ImportError: libfoo.so.1: no such"),
        ("import os; os.kill(os.getpid(), 4)", "its import was ended by signal 4"),
    ],
)
def test_a_tensorflow_that_does_not_import_is_a_line_and_status_1(tmp_path, code, reason):
    (tmp_path / "tensorflow.py").write_text(code)
    done = run(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    assert f"not ready: {reason}" in done.stdout
    assert "pip install --force-reinstall tensorflow" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("steps ")]


@pytest.mark.long
def test_gpus_that_only_the_driver_sees_have_a_reason_and_status_1(tmp_path):
    smi, text = tmp_path / "nvidia-smi", SMI.format(driver="550.54.15", cuda="12.4")
    smi.write_text(f"#!/bin/sh\ncat <<END\n{text}{SECOND}END\n")
    smi.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run("--nosteps", PATH=path)
    assert "GPUs: TensorFlow sees 0, the driver (550.54.15) sees 2: Tesla V100" in done.stdout
    assert done.returncode == 1 and "  not ready: " in done.stdout
    hidden = run("--nosteps", PATH=path, CUDA_VISIBLE_DEVICES="-1")
    assert hidden.returncode == 0 and hidden.stdout.endswith("\nready\n")
    assert "  note: CUDA_VISIBLE_DEVICES=-1 hides the others" in hidden.stdout


def test_a_device_computes_right_values_or_says_what_is_wrong(monkeypatch):
    assert doctor.wrong_values("CPU:0") == ""
    monkeypatch.setattr(tf, "matmul", lambda *_: tf.zeros([64, 64]))
    assert doctor.wrong_values("CPU:0") == "a matrix product on CPU:0 is 0 to 0, should be 64"
    monkeypatch.setattr(tf, "matmul", lambda *_: tf.add(tf.ones(2), tf.ones(3)))  # raises
    assert doctor.wrong_values("CPU:0").startswith("CPU:0 can't compute: ")


class Library:
    def __init__(self, file):
        versions = {"/a/libcudnn.so.9": 91900, "/a/libcudnn.so.8": 8907}
        self.cudnnGetVersion = lambda: versions[file]

    def cudaRuntimeGetVersion(self, number):
        number._obj.value = 12050


@pytest.mark.parametrize(
    ("maps", "versions"),
    [
        ("7f00 r-xp 0 08:01 5  /a/libcudart.so.12\n7f01  /a/libcudnn.so.9\n", "12.5 9.19.0"),
        ("7f01  /a/libcudnn_ops.so.9\n7f01  /a/libcudnn.so.8\n", "8.9.7"),
        ("7f01  /a/libc.so.6\n", ""),
    ],
)
def test_cuda_and_cudnn_are_those_that_were_loaded(monkeypatch, maps, versions):
    monkeypatch.setattr(doctor.ctypes, "CDLL", Library)
    assert " ".join(doctor._loaded(maps).values()) == versions


def gpus(monkeypatch, smi, changes, versions=("nvidia-cudnn-cu12 9.3",)):
    """The line on GPUs with this output of nvidia-smi; "": there is none."""
    monkeypatch.setattr(doctor, "_run", lambda command, seconds: (smi, ""))
    monkeypatch.setattr(doctor, "_versions", lambda *names: [*versions])
    return doctor._gpus(READY | changes)


@pytest.mark.parametrize(
    ("smi", "changes", "reason", "fatal"),
    [
        (("570", "12.9"), {"gpus": ["A"], "wrong": ["should be 36"]}, "36; the CUDA li", True),
        (("470", "11.4"), {}, "the driver runs CUDA 11.4 at most", True),
        (("570", "Not Found"), {}, "TensorFlow's own words: python -c", True),
        (("535", "12.2"), {}, "TensorFlow's own words: python -c", True),
        (("470", "12.9"), {"cuda build": False}, "is built without CUDA", True),
        (("570", "12.9", SECOND), {"gpus": ["A"]}, "it sees 1 of 2; Tens", False),
        (("570", "12.9"), {"gpus": ["A"]}, "", True),
        ((), {}, "", True),
    ],
)
def test_why_tensorflow_sees_fewer_gpus(monkeypatch, smi, changes, reason, fatal):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    text = SMI.format(driver=smi[0], cuda=smi[1]) + "".join(smi[2:]) if smi else ""
    finding = gpus(monkeypatch, text, changes)
    assert reason in finding.problem and bool(finding.problem) == bool(reason)
    assert finding.fatal == fatal
    driver = f"the driver ({smi[0]}) sees {1 + len(smi[2:])}" if smi else "no NVIDIA driver answers"
    assert f", {driver}" in finding.text


def test_gpus_that_the_environment_hides_are_a_note(monkeypatch):
    smi = SMI.format(driver="570", cuda="12.9") + SECOND
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    finding = gpus(monkeypatch, smi, {"gpus": ["A"]})
    assert finding.problem == "CUDA_VISIBLE_DEVICES=0 hides the others" and not finding.fatal
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(doctor, "find_library", lambda name: None)
    finding = gpus(monkeypatch, smi, {}, versions=())
    root = Path(doctor.__file__).parents[1]  # of this clone: no release is published
    assert finding.problem == f'the CUDA libraries are not installed: pip install "{root}[gpu]"'
    assert finding.fatal


def test_steps_that_fail_give_their_last_line(warmed):
    finding = doctor._some_steps("--strategy=tpu")
    assert finding.text == "none" and finding.problem and "\n" not in finding.problem
