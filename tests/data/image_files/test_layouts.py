"""A data set is equal in every layout; errors are one line."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from dawnbench_tf.data.image_files import layouts
from dawnbench_tf.refusals import Refusal
from tests.data.image_files import conftest as small


def load(root, labels_in_order=None):
    names = "imagenette", small.CLASSES, "imagenette/*-v2/[0-9]*", small.ARCHIVES
    return layouts.find(layouts.DataSet(*names, labels_in_order), str(root)).splits()


def in_layout(layout, root):
    """Writes the data set in a layout, and loads it."""
    if layout in ("tree", "flat", "kaggle"):
        kaggle_s = "ILSVRC/Data/CLS-LOC" if layout == "kaggle" else ""
        small.write_tree(root / kaggle_s, layout == "flat")
    elif layout == "tfds":
        name = "imagenette-{split}.tfrecord-{number:05}-of-00002"
        home = root / "imagenette" / "160px-v2"
        small.write_shards(home / "1.0.0", "tfds", name)
        (home / "incomplete.ABC_1.0.0").mkdir()  # of a download that was killed
        (home / "incomplete.ABC_1.0.0" / name.format(split="train", number=0)).touch()
    elif layout == "tars":
        small.write_tars(root)
    else:
        small.write_shards(root)
    return load(root, lambda folder, names: small.TEST_LABELS)


@pytest.mark.parametrize("layout", ["tree", "flat", "kaggle", "tars", "shards", "tfds"])
def test_every_layout_gives_the_same_images_and_labels(layout, tmp_path):
    splits = in_layout(layout, tmp_path)
    for split, labels in ((splits.train, small.TRAIN_LABELS), (splits.test, small.TEST_LABELS)):
        assert split.labels.tolist() == labels and split.labels.dtype == np.int64
        assert small.greys(split) == list(range(len(labels)))
    jpegs = splits.train.jpegs(tf.constant([7, 0, 7])).numpy()
    assert jpegs[0] == jpegs[2] != jpegs[1]
    assert splits.origin.verified is None and str(tmp_path) not in splits.origin.source


@pytest.mark.parametrize(
    "data_dir, reason", [("", "needs the folder of the data .train: or"), ("none", "is no folder")]
)
def test_a_folder_that_is_none_is_refused(data_dir, reason):
    with pytest.raises(Refusal, match=f"--data_dir={data_dir}: .*{reason}".replace("=:", ":")):
        load(data_dir)


def test_a_folder_without_the_data_names_what_it_should_have(tmp_path):
    with pytest.raises(Refusal, match="holds no imagenette: should have train-00000-of-"):
        load(tmp_path)
    small.write_tree(tmp_path)
    (tmp_path / "val").rename(tmp_path / "test")
    with pytest.raises(Refusal, match="has train/ and no val/"):
        load(tmp_path)


def test_a_missing_an_extra_and_an_empty_class_are_named(tmp_path):
    root = small.write_tree(tmp_path)
    (root / "train" / "n04").mkdir()
    with pytest.raises(Refusal, match=r"n04: is none of the 3 classes"):
        load(root)
    (root / "train" / "n04").rmdir()
    (root / "train" / "n02").rename(root / "n02")
    with pytest.raises(Refusal, match=r"n02: is missing; should be a folder for each class"):
        load(root)
    (root / "train" / "n02").mkdir()
    with pytest.raises(Refusal, match=r"n02: holds no image"):
        load(root)


def test_labels_of_a_flat_validation_have_to_be_as_many(tmp_path):
    small.write_tree(tmp_path, flat=True)
    with pytest.raises(Refusal, match="val: should hold 4 images, found 5"):
        load(tmp_path, lambda folder, names: [0, 1, 2, 0])


def test_a_png_that_is_named_jpeg_is_read_and_a_text_is_not(tmp_path):
    small.write_tree(tmp_path)
    png = io.BytesIO()
    Image.fromarray(np.full((9, 7, 4), 200, np.uint8)).save(png, "PNG")
    path = tmp_path / "train" / "n01" / "train_000.JPEG"
    path.write_bytes(png.getvalue())
    content = load(tmp_path).train.jpegs(tf.constant([0])).numpy()[0]
    assert content.startswith(b"\xff\xd8") and tf.io.decode_jpeg(content).shape == (9, 7, 3)
    for damage, reason in ((b"no image", "holds no image"), (b"", "is empty")):
        path.write_bytes(damage)
        with pytest.raises(Exception, match=f"train_000.JPEG: {reason}"):
            load(tmp_path).train.jpegs(tf.constant([0]))


def test_a_file_that_is_no_image_by_its_size_is_refused(tmp_path):
    small.write_tree(tmp_path)
    with open(tmp_path / "train" / "n01" / "train_000.JPEG", "wb") as file:
        file.truncate(10**9)  # a hole: it takes no disk
    with pytest.raises(Exception, match="train_000.JPEG: holds more than an image can"):
        load(tmp_path).train.jpegs(tf.constant([0]))


def test_damaged_archives_are_named(tmp_path):
    train, validation = (tmp_path / name for name in small.write_tars(tmp_path))
    labels = lambda folder, names: small.TEST_LABELS  # noqa: E731
    content = train.read_bytes()
    train.write_bytes(content[:-12_000])
    with pytest.raises(Refusal, match="train.tar: truncated at n03.tar"):
        load(tmp_path, labels)
    train.write_bytes(content)
    validation.unlink()
    with pytest.raises(Refusal, match="val.tar: can't be read"):
        load(tmp_path, labels)
