"""Files that PyTorch 2.13 and safetensors wrote are read; damaged and hostile ones are refused.

`torch.save({"state_dict": weights, ...})`, the same weights without zip, `safetensors`' save_file.
"""

import argparse
import io
import json
import os
import pickle
import struct
import sys
import time
import types
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from dawnbench_tf.models.weights import files

WEIGHTS = Path(__file__).parents[2] / "fixtures/weights"
FILES = ["zip.pth", "old.pth", "some.safetensors"]
BASE = np.arange(24, dtype="f").reshape(2, 3, 4)
WANTED = {
    "module.a.weight": BASE / 8,
    "half": np.arange(6) / 4,
    "bfloat": np.arange(6) / 4,
    "count": np.array(7),
    "view": BASE.transpose(2, 1, 0)[1:, 1:],  # has strides and an offset, which PyTorch saves
    "parameter": np.array([1.5, -2]),
}


def read(path):
    with open(path, "rb") as file, files.open_tensors(file) as tensors:
        values = {name: tensor.read() for name, tensor in tensors.items()}
        assert all(values[name].shape == tensor.shape for name, tensor in tensors.items())
    return values


@pytest.mark.parametrize("name", FILES)
def test_tensors_are_read_as_they_were_written(name):
    values = read(WEIGHTS / name)
    assert set(values) == set(WANTED)
    for name, value in values.items():
        assert value.dtype == "f"
        np.testing.assert_array_equal(value, WANTED[name])


class Hostile:
    """Creates a folder in the working directory if it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


def zipped(content, method=zipfile.ZIP_STORED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x/data.pkl", content)
        for name, member in members.items():
            archive.writestr(f"x/{name}", member)
    return file.getvalue()


def with_shape(dimensions, tensors):
    """Returns a .safetensors file whose tensors have N huge dimensions each."""
    facts = {"dtype": "F32", "shape": [2**62] * dimensions, "data_offsets": [0, 0]}
    header = json.dumps({str(number): facts for number in range(tensors)}).encode()
    return struct.pack("<Q", len(header)) + header


def pickled_shape(dimensions):
    """Returns a .pth file whose tensor has N huge dimensions, in pickle protocol 2."""
    huge = b"\x8a\x08" + struct.pack("<q", 2**62)  # LONG1
    storage = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQ"
    sides = b"(" + huge * dimensions + b"t"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + sides + sides
    return zipped(b"\x80\x02}U\x01w" + tensor + b"tRs.")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped(b"", zipfile.ZIP_DEFLATED, byteorder=bytes(2**20)), "should not be compressed"),
        (zipped(b"").replace(b"data.pkl", b"config.j"), "a zip file, but none of PyTorch"),
        (with_shape(4_000, 300), "its tensor 0 has impossible dimensions"),
        (pickled_shape(40_000), "its tensor .* exceeds its storage"),
        (zipped(b"\x80\x02\x8b" + struct.pack("<i", 2**20) + b"\1" * 2**20 + b"."), "bits"),
        (zipped(b"\x80\x02Nr" + struct.pack("<I", 2**32 - 1) + b"."), "it stores value 4,294,967"),
        (zipped(b"\x80\x02}N" + b"\x85" * 400_000 + b"Ns."), "a key has more than 1,000 values"),
        (zipped(b"\x80\x04(N" + b"\x85" * 400_000 + b"\x91."), "a key has more than 1,000 values"),
        (zipped(b"(" + b"".join(b"cm\nn%d\n" % n for n in range(2000)) + b"l."), "more than 1,000"),
    ],
)
def test_small_files_that_need_much_time_or_memory_are_refused(tmp_path, content, words):
    (tmp_path / "x.pth").write_bytes(content)
    start = time.process_time()
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "x.pth")
    assert time.process_time() - start < 5


def test_a_storage_cut_short_is_refused(tmp_path):
    (tmp_path / "x.pth").write_bytes((WEIGHTS / "old.pth").read_bytes()[:-4])
    with pytest.raises(ValueError, match="is shorter than it should be"):
        read(tmp_path / "x.pth")


@pytest.mark.parametrize("wrap", [zipped, lambda content: pickle.dumps(0) * 3 + content])
def test_code_in_a_file_is_not_run(tmp_path, monkeypatch, wrap):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pth").write_bytes(wrap(pickle.dumps({"state_dict": Hostile()})))
    with pytest.raises(ValueError, match=r"it would run posix\.mkdir"):
        read(tmp_path / "x.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "function", ["m\nf", "collections\nOrderedDict", "torch._utils\n_rebuild_tensor_v2"]
)
def test_a_pickle_sets_no_attributes_of_a_class(tmp_path, function):
    """BUILD, `b`, sets the attributes of an object without __setstate__."""
    build = b"(N}X\x07\x00\x00\x00__new__NstbN}X\x01\x00\x00\x00wNsb."
    (tmp_path / "x.pth").write_bytes(zipped(b"\x80\x02c" + function.encode() + b"\n" + build))
    with pytest.raises(TypeError, match="__setstate__.* missing 1 required positional argument"):
        read(tmp_path / "x.pth")


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused_or_read(tmp_path, name):
    """No changed byte makes the reader hang, use much memory or crash."""
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
        except Exception:  # `load_published` turns any exception into one line
            refused += 1
    assert refused > 100


def torch_saved(path, values, monkeypatch):
    """Writes values as torch.save does; arrays in it become tensors. Needs no PyTorch."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def named(module, name, value):
        value.__module__, value.__qualname__ = module.__name__, name
        setattr(module, name, value)

    named(torch, "FloatStorage", type("FloatStorage", (), {}))
    named(utils, "_rebuild_tensor_v2", lambda *_: None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    storages = []

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            if not isinstance(value, np.ndarray):
                return NotImplemented
            strides = tuple(step // 4 for step in value.strides)
            arguments = (memoryview(value), 0, value.shape, strides, False, OrderedDict())
            return utils._rebuild_tensor_v2, arguments

        def persistent_id(self, value):
            if not isinstance(value, memoryview):
                return None
            storages.append(bytes(value))
            return "storage", torch.FloatStorage, str(len(storages) - 1), "cpu", value.nbytes // 4

    content = io.BytesIO()
    Pickler(content, 2).dump(values)
    members = {f"data/{number}": storage for number, storage in enumerate(storages)}
    path.write_bytes(zipped(content.getvalue(), **members))


LAYERS = {"conv.weight": BASE, "fc.weight": BASE[0]}
OPTIMIZER = {"state": {0: {"step": np.ones(1, "f"), "exp_avg": BASE}}, "param_groups": [{}]}


@pytest.mark.parametrize(
    "values",
    [
        LAYERS,
        {"net": LAYERS, "acc": 95.2, "epoch": 3},
        {"model": LAYERS, "args": argparse.Namespace(lr=0.1), "optimizer": OPTIMIZER},
        {"state_dict": LAYERS, "state_dict_ema": LAYERS, "best": np.float64(70.1)},
        {"state_dict": LAYERS, "milestones": Counter([30, 60]), "path": PurePosixPath("/x")},
        {"optimizer": defaultdict(dict, OPTIMIZER), "teacher": LAYERS, "seen": {1, 2}},
        {"a": {"b": {"weights": LAYERS}}, "acc1": np.ones(1, "f")},
    ],
)
def test_the_weights_are_found_in_any_wrapper(tmp_path, monkeypatch, values):
    torch_saved(tmp_path / "x.pth", values, monkeypatch)
    tensors = read(tmp_path / "x.pth")
    assert list(tensors) == list(LAYERS)
    for name, value in LAYERS.items():
        np.testing.assert_array_equal(tensors[name], value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"teacher": LAYERS, "student": dict(LAYERS)}, "several sets of weights: teacher, student"),
        ({"epoch": 3, "args": argparse.Namespace()}, "no tensors by name; it has epoch .a int., a"),
        ([BASE], "no tensors by name; it has a list; torch.save"),
    ],
)
def test_a_file_without_one_set_of_weights_says_what_it_has(tmp_path, monkeypatch, values, words):
    torch_saved(tmp_path / "x.pth", values, monkeypatch)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "x.pth")


def test_a_small_pickle_of_many_aliases_is_read_in_no_time(tmp_path, monkeypatch):
    values = {"w.weight": BASE}
    for _ in range(5):
        values = {str(number): values for number in range(500)}
    torch_saved(tmp_path / "x.pth", values, monkeypatch)
    start = time.process_time()
    assert list(read(tmp_path / "x.pth")) == ["w.weight"]
    nested = b"]" + b"".join(b"q%c](h%ch%ce" % (n, n, n) for n in range(28)) + b"\x8c\x01a\x93."
    (tmp_path / "x.pth").write_bytes(zipped(b"\x80\x04" + nested))  # a module of 2^28 lists
    with pytest.raises(pickle.UnpicklingError, match="STACK_GLOBAL requires str"):
        read(tmp_path / "x.pth")
    assert time.process_time() - start < 5
