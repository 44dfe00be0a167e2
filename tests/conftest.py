"""Tests run under tf-keras, as the commands do; tests/models also runs itself under Keras 3."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parent.parent


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
