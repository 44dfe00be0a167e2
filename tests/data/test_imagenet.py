"""ImageNet's classes and labels, compared with TensorFlow Datasets'; refusals."""

from importlib import resources

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import imagenet, imagenette
from dawnbench_tf.data.image_files import jpeg_index
from dawnbench_tf.inference import preprocessing
from dawnbench_tf.refusals import Refusal
from tests.data.image_files.conftest import greys, jpeg

RECIPE = recipes.get("imagenet/resnet50_v1_5")
PUBLISHED = resources.files("tensorflow_datasets") / "datasets" / "imagenet2012"


def test_classes_are_the_published_ones():
    assert imagenet.classes() == (PUBLISHED / "labels.txt").read_text().split()
    assert set(imagenette.CLASSES) < set(imagenet.classes())


def test_a_validation_in_order_has_the_published_labels(tmp_path):
    images = [f"{jpeg_index.VALIDATION}{number:08}.JPEG" for number in range(1, 50_001)]
    labels = np.array(imagenet._labels_of(tmp_path, images))
    assert (np.bincount(labels) == 50).all() and len(labels) == 50_000
    names = (PUBLISHED / "validation_labels.txt").read_text().split()
    assert [imagenet.classes()[label] for label in labels] == names
    # Of a part, or of other names, each has the label of its number, or is refused.
    assert imagenet._labels_of(tmp_path, [images[8], images[6]]) == [labels[8], labels[6]]
    for name in ("1.JPEG", f"{jpeg_index.VALIDATION}00050001.JPEG"):
        with pytest.raises(Refusal, match=f"{name}: should be named ILSVRC2012_val_00000001.JPEG"):
            imagenet._labels_of(tmp_path, [name])


def test_labels_beside_the_data_come_first(tmp_path):
    (tmp_path / imagenet.LABELS).write_text("n01443537\nn01440764\n")
    val = tmp_path / "val"  # which has none of its own
    assert imagenet._labels_of(val, ["1.JPEG", "2.JPEG"]) == [1, 0]
    (tmp_path / imagenet.LABELS).write_text("n01443537\nn00000000\n")
    with pytest.raises(Refusal, match="'n00000000' is no class of ImageNet's"):
        imagenet._labels_of(val, ["1.JPEG", "2.JPEG"])


@pytest.mark.parametrize(("flat", "inside"), [(True, "val"), (False, "validation"), (False, "")])
def test_validation_images_alone_serve_for_published_weights(flat, inside, tmp_path):
    classes, published = imagenet.classes(), imagenet._labels_of(tmp_path, NAMES)
    for number, (name, label) in enumerate(zip(NAMES, published, strict=True)):
        folder = tmp_path / inside / ("" if flat else classes[label])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(jpeg(20 * number, side=32))
    test, origin = imagenet.load_test(RECIPE, str(tmp_path))
    assert origin.source == "JPEG files of validation images" and not origin.verified
    by_grey = dict(zip(greys(test), test.labels, strict=True))
    assert by_grey == dict(enumerate(published)) and len({*published}) == 3
    row = preprocessing.PREPROCESSINGS["torchvision"]
    inputs = preprocessing.prepare(test, row, 24, np.array([1, 0]))
    expected = [preprocessing.standardize(np.uint8([20 * greys(test)[i]] * 3), row) for i in (1, 0)]
    np.testing.assert_allclose(inputs[:, 12, 12], expected, atol=0.02)  # JPEG's rounding
    path = next(path for path in tmp_path.rglob("*.JPEG") if path.stat().st_size)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Refusal, match="^--data_dir: test image . is damaged"):
        preprocessing.prepare(test, row, 24, np.arange(3))


NAMES = [f"{jpeg_index.VALIDATION}{number:08}.JPEG" for number in (7, 9, 50_000)]


def test_imagenet_can_t_be_downloaded():
    with pytest.raises(Refusal, match="--download=true: ImageNet is given out at https"):
        imagenet.load(RECIPE, "anywhere", download=True)


def test_the_blacklisted_are_left_out_by_their_numbers(tmp_path):
    (tmp_path / "ILSVRC2014_devkit/data").mkdir(parents=True)
    path = tmp_path / "ILSVRC2014_devkit/data/ILSVRC2014_clsloc_validation_blacklist.txt"
    path.write_text("".join(f"{number}\n" for number in range(36, 36 + 1762)))
    numbers = np.random.default_rng(0).permutation(50_000) + 1  # the labels here
    names = [f"val/ILSVRC2012_val_{number:08}.JPEG" for number in numbers]
    index = jpeg_index.index_files(tmp_path, names, numbers)
    kept = index.without(imagenet._read_blacklist(tmp_path))
    assert sorted(kept.labels) == [*range(1, 36), *range(36 + 1762, 50_001)]
    assert {len(getattr(kept, name)) for name in jpeg_index.EXAMPLE_COLUMNS} == {48_238}
    recipe = recipes.get("imagenet/resnet50_v1_5", skip_blacklisted=True)
    assert recipe.task_row.test_examples == 48_238


def test_blacklists_that_can_t_be_followed_are_refused(tmp_path):
    with pytest.raises(Refusal, match="--skip_blacklisted=true: needs the development kit's ILS"):
        imagenet._read_blacklist(tmp_path)
    (tmp_path / "ILSVRC2015_clsloc_validation_blacklist.txt").write_text("1\n2\n")
    with pytest.raises(Refusal, match="should hold 1762 numbers"):
        imagenet._read_blacklist(tmp_path)
    nameless = jpeg_index.index_files(tmp_path, ["a.JPEG", "b.JPEG"], np.zeros(2))
    with pytest.raises(Refusal, match="of 2 numbers 0 are an image's"):
        nameless.without({1, 2})
    with pytest.raises(Refusal, match="--skip_blacklisted=true: is for ImageNet; imagenette has"):
        recipes.get("imagenette/resnet18", skip_blacklisted=True)
