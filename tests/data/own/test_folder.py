"""Images in folders of one's own."""

import io
import os
import shutil

import pytest
from PIL import Image

from dawnbench_tf import recipes, terminal
from dawnbench_tf.data import dataset
from dawnbench_tf.data.image_files import shard_writer
from dawnbench_tf.data.own import folder as own_folder
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import find_task
from tests.data.own import conftest as own


def recipe(**changes):
    task = find_task("folder", "colours")
    return recipes.get("own/photos", task=task, image_sizes=(32,), batch_size=4, **changes)


def test_folders_are_classes_in_the_order_of_their_names(tmp_path):
    completed, splits = own.loaded(recipe(), str(own.write_folder(tmp_path)))
    task = completed.whole_task
    assert (task.classes, task.train_examples, task.test_examples) == (3, 12, 6)
    assert splits.classes == list(own.CLASSES)
    assert splits.test.names[:3] == ["val/blue/000.png", "val/blue/001.jpg", "val/green/002.jpg"]
    assert splits.test.labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_share_is_drawn_from_the_seed_for_the_test(tmp_path):
    own.write_folder(tmp_path, train=10, val=0)
    recipes = (recipe(validation_share=0.2, seed=seed) for seed in (0, 0, 1))
    shared = [dataset.open(each, str(tmp_path)).splits for each in recipes]
    names = [sorted(splits.test.names) for splits in shared]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 6 and not {*names[0]} & {*shared[0].train.names}


def test_a_part_of_the_training_images_is_used(tmp_path):
    completed, splits = own.loaded(recipe(train_examples=5), str(own.write_folder(tmp_path)))
    assert len(splits.train.labels) == completed.task_row.train_examples == 5
    assert completed.whole_task.train_examples == 12


def test_a_damaged_image_is_named(tmp_path):
    path = own.write_folder(tmp_path) / "train" / "red" / "009.jpg"
    path.write_bytes(path.read_bytes()[:200])
    data = dataset.open(recipe(), str(tmp_path))
    assert data.describe_damage().startswith("train/red/009.jpg: is damaged")


@pytest.mark.parametrize(
    ("remove", "changes", "message"),
    [
        ("val", {}, r"should have train/ and val/ .* or add --validation_share"),
        ("", {"validation_share": 0.2}, r"has val/ for the test; leave this out"),
        ("", {"train_examples": 13, "batch_size": 1}, r"--train_examples=13: should be at most"),
        ("", {"synthetic": "jpeg"}, "--synthetic=jpeg: needs numbers of examples, which"),
        ("", {"batch_size": 13}, r"--batch_size=13: should be at most colours's 12 examples"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, remove, changes, message):
    own.write_folder(tmp_path)
    if remove:
        shutil.rmtree(tmp_path / remove)
    with pytest.raises(Refusal, match=message):
        dataset.open(recipe().with_values(**changes), str(tmp_path))


def test_names_may_have_any_letters(tmp_path):
    own.write_folder(tmp_path)
    for split in ("train", "val"):
        (tmp_path / split / "red").rename(tmp_path / split / "rosé")
    data = dataset.open(recipe(), str(tmp_path))
    assert data.splits.classes == ["blue", "green", "rosé"] and len(list(data.examples())) == 6
    data.save(tmp_path)
    assert "val/rosé/004.jpg" in (tmp_path / "test_images.txt").read_text()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"--data_dir=.*/none: is no folder; should be a folder with"):
        dataset.open(recipe(), str(tmp_path / "none"))


def test_other_test_images_than_the_run_had_are_refused(tmp_path):
    own.write_folder(tmp_path / "data")
    dataset.open(recipe(), str(tmp_path / "data")).save(tmp_path)
    (tmp_path / "data/val/red/004.jpg").rename(tmp_path / "data/val/red/005b.jpg")
    other = dataset.open(recipe(), str(tmp_path / "data"))
    with pytest.raises(Refusal, match="--data_dir: holds other test images than"):
        other.check_saved(tmp_path)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def rotated(jpeg):
    """A JPEG that says that it lies on its side."""
    with Image.open(io.BytesIO(jpeg)) as image:
        exif, turned = Image.Exif(), io.BytesIO()
        exif[0x0112] = 6
        image.save(turned, "JPEG", exif=exif)
    return turned.getvalue()


def test_all_damaged_images_are_named_before_the_clock(tmp_path, cache, monkeypatch):
    folder = own.write_folder(tmp_path / "own", train=8) / "train/red"
    paths = sorted(folder.iterdir())[:4]
    jpeg = paths[0].read_bytes()
    paths[0].write_bytes(b"")
    paths[1].write_bytes(jpeg[:-2])  # found only by decoding all of it
    size = jpeg.index(b"\xff\xc0") + 5
    paths[2].write_bytes(jpeg[:size] + b"\xc3\x50\xc3\x50" + jpeg[size + 4 :])  # 50,000 x 50,000
    paths[3].write_bytes(rotated(jpeg))
    said = []
    monkeypatch.setattr(terminal, "say", lambda line, *_, **__: said.append(line))
    monkeypatch.setattr(terminal, "status", lambda *_, **__: None)
    names = [f"train/red/{path.name}" for path in paths]
    with pytest.raises(Refusal) as refusal:
        own_folder.check(recipe(), str(tmp_path / "own"))
    text = str(refusal.value)
    assert "damaged: 3 of 30 images" in text and text.endswith("; replace or remove them")
    assert all(name in text for name in names[:3]) and names[3] not in text
    for path in paths[:3]:
        path.unlink()
    monkeypatch.setattr(shard_writer, "check_image", None)  # the others were decoded already
    own_folder.check(recipe(), str(tmp_path / "own"))
    assert said[-1:] == ["1 image with an EXIF orientation, which is not applied"]


def test_a_run_that_lost_images_is_told_what_to_do(tmp_path):
    completed, _ = own.loaded(recipe(), str(own.write_folder(tmp_path)))
    (tmp_path / "train/red/009.jpg").unlink()
    with pytest.raises(Refusal, match="should hold 12 examples, found 11; a run goes on with the"):
        dataset.open(completed, str(tmp_path))


def test_each_format_is_read_and_the_rest_is_counted(tmp_path, monkeypatch):
    own.write_folder(tmp_path)
    image = Image.fromarray(own.images(1)[0][0])
    for suffix in ("jpe", "jfif", "bmp", "gif", "webp"):
        image.save(tmp_path / f"train/red/more.{suffix}")
    for number in range(3):
        (tmp_path / f"train/red/{number}.tif").touch()
    (tmp_path / "train/red/nested").mkdir()
    for name in ("test", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "val").rename(tmp_path / "valid")
    said = []
    monkeypatch.setattr(terminal, "say", lambda line, *_, **__: said.append(line))
    _, splits = own.loaded(recipe(), str(tmp_path))
    assert len(splits.train.labels) == 17
    assert said == ["not read: train/: 3 .tif, 1 folders in red; more/; test/"]
    shutil.rmtree(tmp_path / "valid")
    (tmp_path / "train/red").rename(tmp_path / "red")
    for image in sorted((tmp_path / "train").rglob("*.*"))[:4]:
        image.rename(tmp_path / "train" / image.name)
    shutil.rmtree(tmp_path / "train/blue")
    (tmp_path / "train/green").rename(tmp_path / "green")
    shutil.rmtree(tmp_path / "test")
    shutil.rmtree(tmp_path / "more")
    _, splits = own.loaded(recipe(validation_share=0.25), str(tmp_path))
    assert splits.classes == ["green", "red", "train"]  # of vehicles, say
    assert {name.split("/")[0] for name in splits.train.names} == {"green", "red", "train"}


def test_a_user_without_a_home_has_no_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a uid without an entry
    own_folder.check(recipe(), str(own.write_folder(tmp_path)))
