"""Tests run under tf-keras, as the commands do; tests/models also runs itself under Keras 3."""

import ctypes
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import settings

from dawnbench_tf import terminal
from tests import costs, warm

BEGIN = time.monotonic()

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # as machine.importing sets it

# The default suite repeats its examples, so that a failure comes from the change. The long mode
# draws new ones each time.
settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--seconds", type=float, help="after which no further test is begun")


def pytest_collection_finish():
    """Excludes imported objects from garbage collection, which took a tenth of the suite's time."""
    gc.collect()
    gc.freeze()
    warm.shorten_warm_ups()


def pytest_runtest_setup(item):
    seconds = item.config.getoption("--seconds")
    if seconds and time.monotonic() > BEGIN + seconds:
        pytest.skip(f"not within {seconds:g} seconds")


@pytest.fixture(autouse=True)
def _printing():
    """Functions print in tests what they print for a command."""
    terminal.show()


def pytest_configure():
    """Commands start with the signals' default dispositions, however the suite was started.

    What a shell script starts with `&`, or `nohup` starts, ignores signals, and so would every
    process that it starts. A handler is not inherited: the suite itself goes on ignoring them.
    """
    for number in warm.PASSED_ON:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


KEPT = [0]  # bytes of this process after the last collection
ENOUGH = 100e6  # bytes more than then, to collect again: it takes a second


def _forget_models():
    if "tensorflow" in sys.modules and costs.resident_bytes() > KEPT[0] + ENOUGH:
        sys.modules["tensorflow"].keras.backend.clear_session()
        if fitting := sys.modules.get("dawnbench_tf.training.fitting"):  # the base lacks it
            fitting.drop_gradients()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # or freed graphs stay the process's: 6 GB at the end
        KEPT[0] = costs.resident_bytes()


@pytest.fixture(autouse=True, scope="module")
def without_its_models():
    """After a file of tests what Keras keeps of its models goes: a worker held 15 GB at the end."""
    yield
    _forget_models()


@pytest.fixture
def forgets_models():
    """After a test what Keras keeps of its models goes: a file of tests held 10 GB at the end."""
    yield
    _forget_models()


@pytest.fixture
def command(tmp_path):
    """Runs `python -m dawnbench_tf.train FLAGS` in an empty folder, TensorFlow loaded already."""
    return _command(tmp_path, warm.python)


@pytest.fixture
def cold_command(tmp_path):
    """Runs `python -m dawnbench_tf.train FLAGS` in an empty folder, as a user does."""
    return _command(tmp_path, lambda: [sys.executable])


def _command(folder, python):
    def run(*flags, program=("-m", "dawnbench_tf.train"), **kwargs):
        return subprocess.run(
            [*python(), *program, *map(str, flags)],
            cwd=folder,
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
    flags = ("--recipe=qa_mini/fastfusionnet", "--epochs=0.05", "--batch_size=8")
    flags += ("--threshold=0.01", "--peak_tflops=1")
    return _trained(tmp_path_factory, "reader", *flags)


ENTRY = ("--cost_per_hour=3.6", "--author=Ada L.", "--hardware_tag=here")  # of the digits' run


@pytest.fixture(scope="session")
def trained_digits(tmp_path_factory):
    """The default run, that reached 98 % on the digits. Tests must leave it as it is."""
    return _trained(tmp_path_factory, "digits", *ENTRY)
