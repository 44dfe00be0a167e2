"""CIFAR-10 in every published format, and refusals."""

import pickle
import shutil

import numpy as np
import pytest

from dawnbench_tf.data import cifar10, dataset
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal
from tests.data.conftest import store

SMALL = Recipe(task="cifar10", model="resnet20_tf")


@pytest.mark.parametrize(
    "location",
    [
        "cifar-10-python.tar.gz",
        "cifar-10-binary.tar.gz",
        "python",
        pytest.param("binary/cifar-10-batches-bin", marks=pytest.mark.long),
        pytest.param("python/cifar-10-batches-py", marks=pytest.mark.long),
        pytest.param("binary", marks=pytest.mark.long),
        pytest.param("", marks=pytest.mark.long),
    ],
)
def test_every_published_form_is_read(published, batches, location):
    splits = cifar10.load(SMALL, str(published / location))
    wanted = np.concatenate([batches[f"data_batch_{i}"][0] for i in range(1, 6)])
    images = splits.train.images()
    assert images.shape == (50_000, 32, 32, 3) and images.dtype == np.uint8
    for index in (0, 9_999, 10_000, 49_999):
        for row, column, channel in ((0, 0, 0), (3, 7, 1), (31, 31, 2)):  # 1,024 bytes a channel
            flat = wanted[index, channel * 1024 + row * 32 + column]
            assert images[index, row, column, channel] == flat
    np.testing.assert_array_equal(splits.test.labels, batches["test_batch"][1])
    assert splits.test.images().shape == (10_000, 32, 32, 3)
    # Made-up pixels: an archive of them is not what was published; of a folder nobody can say.
    assert splits.origin.verified is (False if splits.origin.source.endswith(".gz") else None)


def test_a_folder_of_tensorflow_datasets_is_read(tmp_path, batches):
    names = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    images = {  # 60 of 60,000: reading them all is TFDS's own matter
        split: np.concatenate([batches[name][0][::1000] for name in several])
        for split, several in names.items()
    }
    pairs = {
        split: (flat.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.arange(len(flat)) % 10)
        for split, flat in images.items()
    }
    store(tmp_path, "cifar10", "3.0.2", [*"0123456789"], pairs)
    splits = cifar10.load(SMALL, str(tmp_path))
    stored = splits.train.images()
    assert stored.shape == (50, 32, 32, 3) and stored.dtype == np.uint8
    rows = stored.transpose(0, 3, 1, 2).reshape(50, -1)
    assert sorted(map(bytes, rows)) == sorted(map(bytes, images["train"]))
    assert splits.test.labels.dtype == np.int64 and len(splits.test.labels) == 10
    with pytest.raises(Refusal, match="cifar10 train: should hold 50000 examples, found 50"):
        dataset.open(SMALL, str(tmp_path))


def load(path):
    return dataset.open(SMALL, str(path)).splits


def test_damaged_batches_are_named(published, tmp_path):
    folder = shutil.copytree(published / "binary" / "cifar-10-batches-bin", tmp_path / "data")
    path = folder / "data_batch_2.bin"
    content = bytearray(path.read_bytes())
    content[3073 * 5] = 77
    path.write_bytes(content)
    with pytest.raises(Refusal, match=r"train: label 77 of example 10005 should be in 0\.\.9"):
        load(folder)
    path.write_bytes(content[:-1])
    with pytest.raises(Refusal, match="data_batch_2.bin: 30729999 bytes, should be 30730000"):
        load(folder)
    path.unlink()
    with pytest.raises(Refusal, match="data_batch_2.bin is missing"):
        load(folder)


def test_a_batch_of_cifar_100_is_refused(published, tmp_path):
    copy = shutil.copytree(published / "python" / "cifar-10-batches-py", tmp_path / "data")
    batch = {b"fine_labels": [0], b"coarse_labels": [0], b"data": np.zeros((1, 3072), np.uint8)}
    (copy / "data_batch_1").write_bytes(pickle.dumps(batch))
    with pytest.raises(Refusal, match="should have data and labels, has fine_labels, coarse_l"):
        load(copy)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (None, "does not exist; give the data's folder or archive"),
        ("", "holds no CIFAR-10"),
        ("cifar-10-python.tar.gz", "damaged or truncated"),
    ],
)
def test_a_place_without_the_data_is_refused_by_its_flag(tmp_path, make, words):
    root = tmp_path / "somewhere"
    if make is not None:
        root.mkdir()
    if make:
        (root / make).touch()
    with pytest.raises(Refusal, match=words):
        cifar10.load(SMALL, str(root))


def test_without_data_dir_the_flags_that_help_are_named():
    with pytest.raises(Refusal, match="--data_dir: cifar10 needs .*--download, --synthetic"):
        cifar10.load(SMALL, "")


def test_download_without_a_network_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "HOME", "http://localhost:1/")
    with pytest.raises(Refusal, match="--download=true: http://localhost:1/ can't be reached"):
        cifar10.load(SMALL, str(tmp_path / "new"), download=True)
    assert not (tmp_path / "new").exists()
    prepared = tmp_path / "cifar10/3.0.2/dataset_info.json"
    prepared.parent.mkdir(parents=True)  # interrupted, or a run's folder: nothing is prepared
    with pytest.raises(Refusal, match="can't be reached"):
        cifar10.load(SMALL, str(tmp_path), download=True)
    prepared.touch()  # prepared before: a run that goes on needs no network
    assert cifar10.tfds.check_reachable("http://localhost:1/", tmp_path / "cifar10") is None


def test_runs_in_a_folder_cifar10_beside_the_data_are_not_in_the_way(published, tmp_path):
    (tmp_path / "cifar-10-batches-bin").symlink_to(published / "binary/cifar-10-batches-bin")
    (tmp_path / "cifar10/airbench94-2026").mkdir(parents=True)
    (tmp_path / "cifar10/airbench94-2026/run.json").touch()
    assert cifar10.load(SMALL, str(tmp_path)).origin.source == "cifar-10-batches-bin"


def test_download_asks_tensorflow_datasets_to_prepare_the_folder(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    monkeypatch.setattr(cifar10.tfds, "check_reachable", lambda *_: None)
    with tfds.testing.mock_data(num_examples=3):
        splits = cifar10.load(SMALL, str(tmp_path), download=True)
    assert splits.train.images().shape == (3, 32, 32, 3) and splits.test.labels.shape == (3,)
