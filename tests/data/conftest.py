"""CIFAR-10 in its exact published formats, with made-up pixels."""

import pickle
import tarfile

import numpy as np
import pytest

NAMES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


@pytest.fixture(scope="module")
def batches():
    """Six batches of 10,000: flat uint8 (10000, 3072) and labels, by file name; 180 MB."""
    return made_up()


def made_up():
    """Six batches of 10,000: flat uint8 (10000, 3072) and labels, by file name."""
    pattern = np.random.default_rng(0).integers(0, 256, (10, 3072), np.uint8)
    by_name = {}
    for index, name in enumerate(NAMES):
        labels = (np.arange(10_000) + index) % 10
        data = pattern[labels].copy()
        data[:, 0] = np.arange(10_000) % 251  # tells examples apart
        by_name[name] = data, labels
    return by_name


def binary(data, labels):
    return np.concatenate([labels[:, None].astype(np.uint8), data], axis=1).tobytes()


def python(data, labels):
    batch = {b"batch_label": b"x", b"labels": labels.tolist(), b"data": data, b"filenames": []}
    return pickle.dumps(batch, 2)


FORMATS = {
    "python": ("cifar-10-batches-py", "{}", python),
    "binary": ("cifar-10-batches-bin", "{}.bin", binary),
}


def store(root, name, version, classes, splits):
    """Stores images and labels, by name of their split, as a data set of TensorFlow Datasets."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    features = {
        "id": tfds.features.Text(),  # as CIFAR-10's
        "image": tfds.features.Image(shape=splits["train"][0].shape[1:], encoding_format="png"),
        "label": tfds.features.ClassLabel(names=classes),
    }
    columns = {
        split: {"id": np.arange(len(y)).astype("S"), "image": x, "label": y.astype(np.int64)}
        for split, (x, y) in splits.items()
    }
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version=version,
        features=tfds.features.FeaturesDict(features),
        split_datasets={k: tf.data.Dataset.from_tensor_slices(v) for k, v in columns.items()},
        data_dir=root,
    )


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with both formats, as archives and extracted."""
    root = tmp_path_factory.mktemp("cifar10")
    for kind, (folder, pattern, encode) in FORMATS.items():
        (root / kind / folder).mkdir(parents=True)
        with tarfile.open(root / f"cifar-10-{kind}.tar.gz", "w:gz", compresslevel=0) as archive:
            for name, batch in made_up().items():
                path = root / kind / folder / pattern.format(name)
                path.write_bytes(encode(*batch))
                archive.add(path, f"{folder}/{path.name}")
    return root
