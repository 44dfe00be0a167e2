"""Data sets of a few flat JPEGs, in every layout that is read."""

import io
import tarfile

import numpy as np
import tensorflow as tf

CLASSES = ("n01", "n02", "n03")
TRAIN_LABELS, TEST_LABELS = [0, 0, 0, 0, 1, 1, 2, 2, 2], [0, 1, 1, 2, 2]


def jpeg(grey, side=20):
    """Returns a JPEG of one grey value."""
    return tf.io.encode_jpeg(np.full((side, side + 4, 3), grey, np.uint8)).numpy()


def contents(labels):
    """Returns flat JPEGs whose grey value is 20 times their index."""
    return [jpeg(20 * index) for index in range(len(labels))]


def greys(split):
    """Returns the indices of a split's JPEGs, from their grey values."""
    every = split.jpegs(tf.range(len(split.labels))).numpy()
    return [round(float(tf.io.decode_jpeg(one).numpy().mean()) / 20) for one in every]


def write_tree(root, flat=False):
    """Writes CLASS/NAME.JPEG and other files; `flat` puts the validation into one folder."""
    for split, labels in (("train", TRAIN_LABELS), ("val", TEST_LABELS)):
        for index, (label, content) in enumerate(zip(labels, contents(labels), strict=True)):
            lies_in = root / split if flat and split == "val" else root / split / CLASSES[label]
            lies_in.mkdir(parents=True, exist_ok=True)
            (lies_in / f"{split}_{index:03}.JPEG").write_bytes(content)
    (root / "train" / ".DS_Store").write_text("of a Mac")
    (root / "train" / "n02" / "README.txt").write_text("of somebody")
    return root


ARCHIVES = ("train.tar", "val.tar")


def tar(*files, form=""):
    """Returns the content of a tar archive with files (name, content), compressed as `form`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=f"w:{form}") as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def write_tars(root):
    """Writes an archive of one archive for each class, and an archive of the validation images."""
    by_class = {name: {} for name in CLASSES}
    for index, label in enumerate(TRAIN_LABELS):
        by_class[CLASSES[label]][f"{CLASSES[label]}_{index}.JPEG"] = contents(TRAIN_LABELS)[index]
    outer = [(f"{name}.tar", tar(*files.items())) for name, files in by_class.items()]
    (root / ARCHIVES[0]).write_bytes(tar(*outer))
    images = [(f"val_{index:03}.JPEG", one) for index, one in enumerate(contents(TEST_LABELS))]
    (root / ARCHIVES[1]).write_bytes(tar(*images))
    return ARCHIVES


def example(features):
    """Returns a serialized tf.train.Example."""

    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    named = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


def record(content, label, form):
    if form == "tfds":
        return example({"image": content, "label": label, "file_name": b"a.JPEG"})
    names = {"image/encoded": content, "image/class/label": label + 1, "image/format": b"JPEG"}
    return example({**names, "image/class/synset": CLASSES[label].encode(), "image/height": 20})


def write_shards(root, form="ours", name="{split}-{number:05}-of-00002"):
    """Writes two shards for each split."""
    root.mkdir(parents=True, exist_ok=True)
    for split, labels in (("train", TRAIN_LABELS), ("validation", TEST_LABELS)):
        rows = list(zip(contents(labels), labels, strict=True))
        for number, part in enumerate((rows[:4], rows[4:])):
            path = str(root / name.format(split=split, number=number))
            with tf.io.TFRecordWriter(path) as writer:
                for content, label in part:
                    writer.write(record(content, label, form))
    return root
