"""The command `prepare` on a data set of Imagenette's size: ten classes of tiny JPEGs."""

import fcntl
import io
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import dawnbench_tf.prepare
from dawnbench_tf import recipes
from dawnbench_tf.data import dataset, imagenette
from dawnbench_tf.data.image_files import shards
from dawnbench_tf.prepare import Options
from dawnbench_tf.refusals import Refusal
from tests import warm


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A folder tree with Imagenette's numbers of images."""
    root = tmp_path_factory.mktemp("raw")
    contents = []
    for label in range(10):
        content = io.BytesIO()
        Image.fromarray(np.full((8, 8, 3), 25 * label, np.uint8)).save(content, "JPEG")
        contents.append(content.getvalue())
    for split, count in (("train", 9469), ("val", 3925)):
        for name in imagenette.CLASSES:
            (root / split / name).mkdir(parents=True)
        for index in range(count):
            folder = root / split / imagenette.CLASSES[index % 10]
            (folder / f"{index}.JPEG").write_bytes(contents[index % 10])
    return root


def prepare(raw, out, *flags):
    flags = ["--task=imagenette", f"--raw={raw}", f"--out={out}", *flags]
    return [*warm.python(), "-m", "dawnbench_tf.prepare", *flags]


def test_interrupted_it_goes_on_and_what_it_makes_is_read(raw, tmp_path):
    out = tmp_path / "out"
    command = prepare(raw, out, "--examples_per_shard=500")
    begun = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(list(out.glob("train-*"))) < 3:
        assert begun.poll() is None
        time.sleep(0.05)
    begun.send_signal(signal.SIGINT)
    _, errors = begun.communicate(timeout=60)
    assert begun.returncode == 130 and "to continue: dawnbench prepare --" in errors
    kept = {path: path.stat().st_mtime_ns for path in out.glob("train-*")}
    assert 3 <= len(kept) < 19
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "images a second" not in done.stderr, done.stderr
    assert f"train with --data_dir={out}" in done.stderr
    assert all(path.stat().st_mtime_ns == kept[path] for path in kept)
    assert np.bincount(shards.read(out, "train").labels).tolist() == [947] * 9 + [946]
    sizes = {"batch_size": 4, "image_sizes": (32,), "image_size_epochs": ()}
    data = dataset.open(recipes.get("imagenette/resnet18", **sizes), str(out))
    images, labels = next(iter(data.train(0)))
    assert images.shape == (4, 32, 32, 3) and labels.shape == (4,)
    options = Options(task="imagenette", raw=str(raw), out=str(out), examples_per_shard=500)
    for _ in range(2):  # all is written, without a warning; the folder is released
        assert dawnbench_tf.prepare.prepare(options) == {}
    with pytest.raises(Refusal, match="^--out=.*: has the shards of --raw already"):
        dawnbench_tf.prepare.prepare(replace(options, raw=str(out)))


def test_a_set_of_other_counts_is_refused(raw, tmp_path):
    copy = tmp_path / "raw"
    copy.mkdir()
    (copy / "train").symlink_to(raw / "train")
    (copy / "val").symlink_to(raw / "train")
    done = subprocess.run(prepare(copy, tmp_path / "o"), capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "o").exists()
    assert "imagenette test: should hold 3925 examples, found 9469" in done.stderr


def test_two_cannot_write_to_one_folder(raw, tmp_path):
    with open(tmp_path / ".lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = subprocess.run(prepare(raw, tmp_path), capture_output=True, text=True)
    assert done.returncode == 1 and [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert f"--out={tmp_path}: another `prepare` writes to it" in done.stderr.splitlines()[-1]


def test_bad_input_is_refused_in_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = {"task": "imagenette", "raw": ".", "out": "o"}
    for values, line in (
        ({"out": ""}, "^--out: should be the folder to write to"),
        ({"raw": "nowhere"}, "^--raw=nowhere: should be the folder of the archives"),
        ({}, "^--raw=.: holds no imagenette"),
        ({"task": "cifar10"}, "^--task=cifar10: should be one of"),
    ):
        with pytest.raises(Refusal, match=line):
            dawnbench_tf.prepare.prepare(Options(**whole | values))
    assert not (tmp_path / "o").exists()
