"""TFRecord shards and their index."""

import os
import struct

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.image_files import jpeg_index, shards
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.refusals import Refusal
from tests.data.image_files import conftest as small

SPLIT = "train"


def test_an_index_is_what_reading_every_record_tells(tmp_path):
    small.write_shards(tmp_path)
    scanned = shards.read(tmp_path, SPLIT)
    names = [str(tmp_path / name) for name in shards.list_shards(tmp_path, SPLIT)]
    parsed = [
        tf.train.Example.FromString(record).features.feature["image/encoded"].bytes_list.value[0]
        for record in tf.data.TFRecordDataset(names).as_numpy_iterator()
    ]
    assert [scanned.read(index) for index in range(9)] == parsed
    shards.write_index(scanned, SPLIT)
    for path in tmp_path.glob("train-*"):
        content = bytearray(path.read_bytes())
        content[8:12] = b"\0\0\0\0"  # a checksum: who scans again would see that
        path.write_bytes(content)
    read = shards.read(tmp_path, SPLIT)
    assert scanned.numbers.dtype == np.int32 and scanned.labels.dtype == np.int64
    for one, other in zip(scanned, read, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [read.read(index) for index in range(9)] == parsed


def indexed(folder):
    """Writes shards and returns their index."""
    shards.write_index(shards.read(small.write_shards(folder), SPLIT), SPLIT)
    return shards.read(folder, SPLIT)


def test_an_index_of_other_shards_is_refused(tmp_path):
    index = indexed(tmp_path)
    numbers = ("offsets", 10**9), ("offsets", 2**63 - 1), ("lengths", -1)
    changes = [(name, np.full_like(getattr(index, name), number)) for name, number in numbers]
    changes += [("labels", index.labels[:1]), ("files", index.files.astype(np.int64))]
    changes += [("files", np.where(index.files, index.files, np.int32(7)))]
    for name, column in changes:
        shards.write_index(index._replace(**{name: column}), SPLIT)
        with pytest.raises(Refusal, match="train.index.npz: is not of the shards beside it"):
            shards.read(tmp_path, SPLIT)
    shards.write_index(index, SPLIT)
    with open(tmp_path / "train-00001-of-00002", "ab") as file:
        file.write(b"more")
    with pytest.raises(Refusal, match="train.index.npz: is not of the shards beside it"):
        shards.read(tmp_path, SPLIT)
    (tmp_path / "train.index.npz").write_bytes(b"no index")
    with pytest.raises(Refusal, match="train.index.npz: can't be read"):
        shards.read(tmp_path, SPLIT)


def test_an_image_damaged_after_its_index_was_written_is_refused(tmp_path):
    index = indexed(tmp_path)
    path = tmp_path / "train-00001-of-00002"
    content = bytearray(path.read_bytes())
    content[index.offsets[5] + index.lengths[5] // 2] ^= 1
    path.write_bytes(content)
    read = shards.read(tmp_path, SPLIT)
    assert read.read(4) == index.read(4)
    words = f"train-00001-of-00002: damaged, the image at byte {index.offsets[5]} has another"
    with pytest.raises(Refusal, match=words):
        read.read(5)
    split = jpeg_index.split(read)
    recipe = recipes.get("imagenette/resnet18", test_image_size=16)
    with pytest.raises(Refusal, match=words):  # in training's and the test's pipelines
        list(dataset.from_splits(recipe, Splits(split, split)).examples())


def test_an_index_without_checksums_says_how_to_get_one_that_has_them(tmp_path):
    indexed(tmp_path)
    path = tmp_path / "train.index.npz"
    with np.load(path) as arrays:
        old = {name: arrays[name] for name in arrays if name != "checksums"}
    np.savez(path, **old)
    words = "an earlier version wrote it: it holds no 'checksums'.; run `prepare` with the same"
    with pytest.raises(Refusal, match=words):
        shards.read(tmp_path, SPLIT)


def test_a_record_that_claims_more_than_its_shard_has_is_refused(tmp_path):
    path = small.write_shards(tmp_path) / "train-00000-of-00002"
    path.write_bytes(struct.pack("<Q", 2**40) + path.read_bytes()[8:])
    words = f"train-00000-of-00002: damaged .the record at byte 0 says it has {2**40} bytes"
    with pytest.raises(Refusal, match=words):
        shards.read(tmp_path, SPLIT)
    os.truncate(path, 2**41)  # a hole, in which that would have room
    with pytest.raises(Refusal, match=words):
        shards.read(tmp_path, SPLIT)


@pytest.mark.parametrize("name", ["train-00000-of-00002", "train.index.npz"])
def test_a_pipe_is_refused_and_not_waited_for(name, tmp_path):
    indexed(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(Refusal, match=f"{name}: "):
        shards.read(tmp_path, SPLIT)


def test_missing_shards_are_named(tmp_path):
    (small.write_shards(tmp_path) / "train-00001-of-00002").unlink()
    with pytest.raises(Refusal, match="shard 1 of 2 of train is missing"):
        shards.read(tmp_path, SPLIT)
    with pytest.raises(Refusal, match="has no test-00000-of-... shards"):
        shards.read(tmp_path, "test")


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_shard_is_named(damage, tmp_path):
    path = small.write_shards(tmp_path) / "train-00001-of-00002"
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes(content[:-9] if damage == "truncated" else content)
    with pytest.raises(Refusal, match="train-00001-of-00002: damaged [^{[]*; copy it again$"):
        shards.read(tmp_path, SPLIT)


def test_records_of_something_else_are_refused(tmp_path):
    for content, reason in (
        (small.example({"text": b"a"}), "should hold .* found text"),
        (b"\xff", "no tf"),
    ):
        with tf.io.TFRecordWriter(str(tmp_path / "train-00000-of-00001")) as writer:
            writer.write(content)
        with pytest.raises(Refusal, match=reason):
            shards.read(tmp_path, SPLIT)


def test_a_million_examples_fit_into_200_megabytes():
    count = 1_281_167
    names = [f"n{index:08}/n{index:08}_{index}.JPEG" for index in range(count)]
    index = jpeg_index.index_files("", names, np.zeros(count))
    assert sum(array.nbytes for array in index[1:]) < 200e6
