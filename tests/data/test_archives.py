"""Untrusted archives and pickles: read without extraction; no code is run, no link is followed."""

import hashlib
import os
import pickle
import tarfile

import numpy as np
import pytest

from dawnbench_tf.data import archives, cifar10
from dawnbench_tf.refusals import Refusal
from tests.data.image_files import conftest as small
from tests.models.weights.test_files import Hostile


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_arrays_come_out_as_they_went_in(protocol):
    wanted = {b"data": np.arange(6, dtype=np.uint8).reshape(2, 3), b"labels": [1, 2], b"name": b"x"}
    arrays = cifar10.unpickle_arrays("file", pickle.dumps(wanted, protocol))
    np.testing.assert_array_equal(arrays["data"], wanted[b"data"])
    assert arrays["labels"] == [1, 2] and arrays["name"] == b"x"


def test_a_pickle_of_python_2_and_old_numpy_is_read():
    old = pickle.dumps({"data": np.zeros(2, np.uint8)}, 2).replace(b"numpy._core", b"numpy.core")
    assert b"numpy.core.multiarray" in old
    assert cifar10.unpickle_arrays("file", old)["data"].shape == (2,)


@pytest.mark.parametrize("content", [Hostile(), {"data": Hostile()}, eval, os.path.join])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match="batch: not a pickle of plain arrays"):
        cifar10.unpickle_arrays("batch", pickle.dumps(content))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps({"a": 1})[:-3], b"N."])
def test_garbage_is_refused(content):
    with pytest.raises(Refusal, match="^batch: "):
        cifar10.unpickle_arrays("batch", content)


def tar(path, members, form="gz"):
    path.write_bytes(small.tar(*members.items(), form=form))
    return path


def test_nothing_is_extracted_however_a_member_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    path = tar(tmp_path / "in" / "x.tar.gz", {"../../escaped": b"1", "/tmp/absolute-escaped": b"2"})
    assert archives.read_members(path, ["escaped"]) == {"escaped": b"1"}
    assert [p.name for p in tmp_path.rglob("*")] == ["in", "x.tar.gz"]


def test_a_truncated_archive_is_refused(tmp_path):
    path = tar(tmp_path / "x.tar.gz", {"a": np.random.default_rng(0).bytes(10_000)})
    for kept in (200, 10, 0):
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(Refusal, match="damaged or truncated"):
            archives.read_members(path, ["a"])


def test_a_member_too_large_to_be_the_published_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_MEMBER", 99)
    with pytest.raises(Refusal, match="x.tar.gz:a: 100 bytes, should be at most 99"):
        archives.read_members(tar(tmp_path / "x.tar.gz", {"a": b"0" * 100}), ["a"])


@pytest.mark.parametrize("form", ["gz", "bz2", "xz"])
def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(tmp_path, form):
    content = np.random.default_rng(0).bytes(600)
    path = tar(tmp_path / f"x.tar.{form}", {"a": content}, form)
    whole = path.read_bytes()
    refused = 0
    for index in range(len(whole)):
        flipped = bytearray(whole)
        flipped[index] ^= 1 << index % 8
        path.write_bytes(flipped)
        try:
            assert archives.read_members(path, ["a"]) == {"a": content}
        except Refusal as refusal:
            assert "\n" not in str(refusal)
            refused += 1
    assert refused > 0.9 * len(whole)


@pytest.mark.parametrize("form", ["", "gz", "bz2", "xz"])
def test_content_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch, form):
    monkeypatch.setattr(archives, "LARGEST_CONTENT", 20_000)
    path = tmp_path / "x.tar"
    with tarfile.open(path, f"w:{form}", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a")
        info.pax_headers = {"comment": "x" * 50_000}
        archive.addfile(info)
    with pytest.raises(Refusal, match="holds more than the published file can"):
        archives.read_members(path, ["a"])


def test_a_pickle_that_hangs_python_is_refused_at_once():
    """Each tuple holds the previous one twice, so hashing the last as a key takes 2^60 steps."""
    nested = b"\x80\x04}" + b"N" + b"".join(b"\x94h" + bytes([n]) + b"\x86" for n in range(60))
    with pytest.raises(Refusal, match="a key has more than 1,000 values, should be text"):
        cifar10.unpickle_arrays("batch", nested + b"K\x01s.")


def test_more_instructions_than_a_batch_takes_are_refused(monkeypatch):
    monkeypatch.setattr("dawnbench_tf.models.weights.pickles.MOST_INSTRUCTIONS", 50)
    with pytest.raises(Refusal, match="more than 50 instructions"):
        cifar10.unpickle_arrays("batch", pickle.dumps({"labels": list(range(100))}))


def test_only_the_published_file_is_called_that(tmp_path):
    (tmp_path / "x").write_bytes(b"content")
    checksums = {"x": hashlib.sha256(b"content").hexdigest()}
    assert archives.is_published(tmp_path / "x", checksums)
    (tmp_path / "x").write_bytes(b"contents")
    assert not archives.is_published(tmp_path / "x", checksums)
    assert not archives.is_published(tmp_path, checksums)
