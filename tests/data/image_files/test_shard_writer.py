"""Writing shards: equal images and labels, resuming, repairs, one-line refusals."""

import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from dawnbench_tf.data.image_files import shard_writer, shards
from dawnbench_tf.data.image_files.jpeg_index import split as split_of
from dawnbench_tf.data.image_files.trees import read
from dawnbench_tf.refusals import Refusal
from tests.data.image_files import conftest as small


def write(raw, out, split="train", shuffled=True):
    index = read(raw / split, small.CLASSES)
    out.mkdir(exist_ok=True)
    return shard_writer.write(index, small.CLASSES, out, split, 4, shuffled), index


def test_shards_hold_every_image_with_its_label(tmp_path):
    _, index = write(small.write_tree(tmp_path / "raw"), tmp_path / "out")
    assert len(list((tmp_path / "out").glob("train-0000?-of-00003"))) == 3
    written = shards.read(tmp_path / "out", "train")
    assert written.labels.tolist() != index.labels.tolist()  # in an order of its own
    wanted = sorted((index.labels[i], index.read(i)) for i in range(9))
    assert sorted((written.labels[i], written.read(i)) for i in range(9)) == wanted


def test_the_records_are_those_of_tensorflow_s_own_scripts(tmp_path):
    write(small.write_tree(tmp_path / "raw"), tmp_path / "out", shuffled=False)
    names = [str(path) for path in sorted((tmp_path / "out").glob("train-*"))]
    features = {"image/encoded": tf.string, "image/class/synset": tf.string}
    features |= dict.fromkeys(("image/class/label", "image/height", "image/width"), tf.int64)
    features = {name: tf.io.FixedLenFeature([], dtype) for name, dtype in features.items()}
    records = tf.data.TFRecordDataset(names)
    parsed = [tf.io.parse_single_example(record, features) for record in records]
    labels = [int(one["image/class/label"]) - 1 for one in parsed]
    assert labels == small.TRAIN_LABELS
    for one, label in zip(parsed, labels, strict=True):
        shape = tf.io.decode_jpeg(one["image/encoded"]).shape
        assert shape == (one["image/height"], one["image/width"], 3)
        assert one["image/class/synset"].numpy().decode() == small.CLASSES[label]


def test_what_is_written_is_not_written_again_and_what_is_lost_is(tmp_path):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    write(raw, out)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    kept, lost = out / "train-00000-of-00003", out / "train-00001-of-00003"
    lost.unlink()
    (out / ".train-00001-of-00003.tmp").write_bytes(b"half")
    before = kept.stat().st_mtime_ns
    write(raw, out)
    assert kept.stat().st_mtime_ns == before
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first


def test_shards_of_other_images_are_refused(tmp_path):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    write(raw, out)
    other = small.write_tree(tmp_path / "other")  # equal labels
    for path in other.rglob("*.JPEG"):
        path.write_bytes(small.jpeg(7))
    with pytest.raises(Refusal, match="train-00000-of-00003: is not of these images"):
        write(other, out)
    (out / "train-00000-of-00003").write_bytes((out / "train-00001-of-00003").read_bytes())
    with pytest.raises(Refusal, match="train-00000-of-00003: is not of these images"):
        write(raw, out)
    (out / "train-00000-of-00009").write_bytes(b"")
    with pytest.raises(Refusal, match="train-00000-of-00009: is there already"):
        write(raw, out)


def saved(pixels, form, **options):
    content = io.BytesIO()
    pixels.save(content, form, **options)
    return content.getvalue()


def test_odd_images_are_repaired_as_the_references_do_and_counted(tmp_path):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    grey = Image.fromarray(np.full((10, 14), 90, np.uint8))
    stripes = np.tile(np.array([[200, 60, 60], [60, 60, 200]], np.uint8), (10, 7, 1))
    cmyk = saved(Image.fromarray(stripes).convert("CMYK"), "JPEG", quality=100)
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, content in (
        ("train_000", saved(grey, "PNG", exif=exif)),
        ("train_001", cmyk),
        ("train_002", saved(grey, "JPEG")),
        ("train_003", saved(grey.convert("RGB"), "JPEG", exif=exif)),
    ):
        (raw / "train" / "n01" / f"{name}.JPEG").write_bytes(content)
    unusual, _ = write(raw, out, shuffled=False)
    assert unusual == {
        "no JPEG, encoded anew": 1,
        "CMYK, encoded anew": 1,
        "grey": 1,
        "turned by EXIF, left as it is stored": 2,
    }
    jpegs = split_of(shards.read(out, "train")).jpegs(tf.range(4)).numpy()
    wanted = [90, tf.io.decode_jpeg(cmyk, channels=3).numpy(), 90, 90]  # as the files are read
    for content, pixels in zip(jpegs, wanted, strict=True):
        stored = tf.io.decode_jpeg(content, channels=3).numpy().astype(int)
        assert stored.shape == (10, 14, 3) and np.abs(stored - pixels).max() <= 12


@pytest.mark.parametrize(("form", "side"), [("PNG", 13_000), ("JPEG", 30_000)])
def test_headers_of_more_pixels_than_there_can_be_are_refused(form, side, tmp_path):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    content = bytearray(saved(Image.fromarray(np.zeros((16, 16, 3), np.uint8)), form))
    if form == "JPEG":
        start = content.index(b"\xff\xc0") + 5  # of the frame's header: height, width
        content[start : start + 4] = struct.pack(">HH", side, side)
    else:
        content[16:24] = struct.pack(">II", side, side)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    (raw / "train" / "n02" / "train_004.JPEG").write_bytes(content)
    with pytest.raises(Refusal, match=f"train_004.JPEG: .* bytes that claim {side:,} x {side:,} "):
        write(raw, out)


def noise():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    return saved(Image.fromarray(pixels), "JPEG")


def test_a_truncated_image_is_named_and_no_half_shard_is_left(tmp_path):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    path = raw / "train" / "n02" / "train_004.JPEG"
    path.write_bytes(noise()[:-2000])
    path.with_name("train_005.JPEG").write_bytes(b"")
    with pytest.raises(Refusal, match="; then the same command goes on$") as refused:
        write(raw, out)
    for text in ("train_004.JPEG: holds no whole JPEG", "train_005.JPEG: is empty; fetch it"):
        assert text in str(refused.value)
    assert all(part.name.startswith("train-") for part in out.iterdir())


def test_an_image_that_libjpeg_repairs_is_named_and_kept(tmp_path, capsys):
    raw, out = small.write_tree(tmp_path / "raw"), tmp_path / "out"
    path = raw / "train" / "n02" / "train_004.JPEG"
    content = bytearray(noise())
    content[-2000:-1990] = bytes(10)  # within the coded pixels
    path.write_bytes(content)
    kinds, _ = write(raw, out)
    assert kinds["damaged within, named above"] == 1
    assert f"{path}: libjpeg: Corrupt JPEG data" in capsys.readouterr().err
    assert any(bytes(content) in shard.read_bytes() for shard in out.iterdir())
