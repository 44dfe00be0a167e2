"""Files that PyTorch 2.13 and safetensors wrote; damaged and hostile ones: ValueError, nothing run.

`torch.save({"state_dict": weights, ...})`, the same weights without zip, `safetensors`' save_file.
"""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dawnbench_tf.models import weight_files

WEIGHTS = Path(__file__).parents[1] / "fixtures/weights"
FILES = ["zip.pth", "old.pth", "some.safetensors"]
BASE = np.arange(24, dtype="f").reshape(2, 3, 4)
WANTED = {
    "module.a.weight": BASE / 8,
    "half": np.arange(6) / 4,
    "bfloat": np.arange(6) / 4,
    "count": np.array(7),
    "view": BASE.transpose(2, 1, 0)[1:, 1:],  # strides and an offset, where PyTorch keeps these
    "parameter": np.array([1.5, -2]),
}


def read(path):
    with open(path, "rb") as file, weight_files.tensors_of(file) as tensors:
        values = {name: tensor.read() for name, tensor in tensors.items()}
        assert all(values[name].shape == tensor.shape for name, tensor in tensors.items())
    return values


@pytest.mark.parametrize("name", FILES)
def test_tensors_come_out_as_they_went_in(name):
    values = read(WEIGHTS / name)
    assert set(values) == set(WANTED)
    for name, value in values.items():
        assert value.dtype == "f"
        np.testing.assert_array_equal(value, WANTED[name])


class Hostile:
    """Leaves a folder where the process stands, if it is ever unpickled."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


def zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", content)
    return file.getvalue()


@pytest.mark.parametrize("wrap", [zipped, lambda content: pickle.dumps(0) * 3 + content])
def test_what_a_file_would_run_is_not_run(tmp_path, monkeypatch, wrap):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pth").write_bytes(wrap(pickle.dumps({"state_dict": Hostile()})))
    with pytest.raises(ValueError, match=r"it would run posix\.mkdir"):
        read(tmp_path / "x.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused_or_read_as_something(tmp_path, name):
    """No byte of a file makes it hang, take much memory, or bring anything but an exception."""
    content, rng = (WEIGHTS / name).read_bytes(), np.random.default_rng(0)
    refused = 0
    for number in range(300):
        damaged = bytearray(content)
        if number % 3:
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        else:
            del damaged[rng.integers(len(damaged)) :]
        (tmp_path / "x").write_bytes(damaged)
        try:
            read(tmp_path / "x")
        except Exception:  # `load_published` makes one line of any
            refused += 1
    assert refused > 100
