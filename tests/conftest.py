"""Tests run under tf-keras, as the commands do; tests/models also runs itself under Keras 3."""

import os
import subprocess
import sys

import pytest

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


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
