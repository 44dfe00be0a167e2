"""Tests run under tf-keras, as the commands do; tests/models also runs itself under Keras 3."""

import fcntl
import gc
import os
import subprocess
import sys

import pytest

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(autouse=True, scope="module")
def without_its_models():
    """After a file of tests what Keras keeps of its models goes: a worker held 15 GB at the end."""
    yield
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].keras.backend.clear_session()
        gc.collect()


@pytest.fixture
def command(tmp_path):
    """Runs `python -m dawnbench_tf.train FLAGS` in an empty folder."""

    def run(*flags, program=("-m", "dawnbench_tf.train"), **kwargs):
        return subprocess.run(
            [sys.executable, *program, *map(str, flags)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            **kwargs,
        )

    return run


@pytest.fixture
def under_keras_3():
    """Runs a program in a process where `tf.keras` is Keras 3, and holds it to end well."""

    def run(program):
        environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0"}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]

    return run


def _trained(factory, name, *flags):
    """A folder with "run", of a training, and what it printed; made once for all workers."""
    shared = factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    home = shared / name
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            home.mkdir()
            command = [sys.executable, "-m", "dawnbench_tf.train", "--output_dir=run", *flags]
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            (home / "stdout").write_text(done.stdout)
            (home / "stderr").write_text(done.stderr)
    return home


@pytest.fixture(scope="session")
def trained_reader(tmp_path_factory):
    """A run on qa_mini that ended after its first evaluation. Tests must leave it as it is."""
    flags = ("--recipe=qa_mini/bidaf", "--epochs=1", "--threshold=0.01")
    return _trained(tmp_path_factory, "reader", *flags)


@pytest.fixture(scope="session")
def trained_digits(tmp_path_factory):
    """A run on the digits that reached 98 %. Tests must leave it as it is."""
    return _trained(tmp_path_factory, "digits", "--recipe=digits/resnet8")
