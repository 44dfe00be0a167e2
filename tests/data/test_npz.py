""".npz files: files of np.savez are read, decompression bombs are refused."""

import io
import struct
import zipfile

import numpy as np
import pytest

from dawnbench_tf import npz


def saved(save=np.savez, **arrays):
    content = io.BytesIO()
    save(content, **arrays)
    return content.getvalue()


def test_arrays_come_back():
    arrays = npz.read(saved(a=np.arange(6).reshape(2, 3), b=np.array([b"x"])))
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and arrays["b"].tolist() == [b"x"]


def test_small_files_that_unpack_to_much_are_refused_before_they_are():
    with pytest.raises(ValueError, match="should not be compressed"):
        npz.read(saved(np.savez_compressed, a=np.zeros(2**20)))
    content = saved(a=np.zeros(2**10))
    directory = content.rfind(b"PK\x01\x02")
    entry, end = content[directory:-22], content[-22:]  # many names of one member
    many = struct.pack("<4s4H2LH", end[:4], 0, 0, 500, 500, 500 * len(entry), directory, 0)
    with zipfile.ZipFile(io.BytesIO(content[:directory] + 500 * entry + many)) as archive:
        assert len(archive.infolist()) == 500
    with pytest.raises(ValueError, match="should not be compressed"):
        npz.read(content[:directory] + 500 * entry + many)


@pytest.mark.parametrize(
    "content", [b"", b"PK", saved(a=np.zeros(9))[:-30], b"\x93NUMPY" + b"x" * 99]
)
def test_damaged_files_are_one_kind_of_error(content):
    with pytest.raises(ValueError, match="it is damaged"):
        npz.read(content)


def test_compressed_arrays_are_read_within_a_bound():
    content = saved(np.savez_compressed, a=np.zeros(2**20))
    assert npz.read(content, largest=2**24)["a"].shape == (2**20,)
    with pytest.raises(ValueError, match="its arrays take 0.0 GiB, and 0.0 are free"):
        npz.read(content, largest=2**20)


def test_what_is_not_damaged_is_called_by_its_name():
    objects = saved(a=np.array([None, 1]))
    with pytest.raises(ValueError, match="^its a.npy holds Python objects, not numbers"):
        npz.read(objects)
    alone = io.BytesIO()
    np.save(alone, np.zeros(3))
    with pytest.raises(ValueError, match="^it is an .npy file, one array; np.savez"):
        npz.read(alone.getvalue())
    header = alone.getvalue().replace(b"(3,), } ", b"(99,), }")
    claims = io.BytesIO()
    with zipfile.ZipFile(claims, "w") as archive:
        archive.writestr("a.npy", header)
    with pytest.raises(ValueError, match="a.npy claims .99,. float64, more than it holds"):
        npz.read(claims.getvalue())
