"""Data sets of TensorFlow Datasets by name: one that is stored here, so nothing is fetched."""

import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import find_task
from tests.data.conftest import store
from tests.data.own import conftest as own


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder of TensorFlow Datasets with the data set `colours`: PNGs of one size."""
    rows = {name: own.images(count, count) for name, count in (("train", 4), ("test", 2))}
    root = tmp_path_factory.mktemp("tfds")
    store(root, "colours", "1.0.0", own.CLASSES, rows)
    return str(root), rows


def load(base, root, name="colours", **changes):
    recipe = recipes.get(base, task=find_task(f"tfds:{name}"), batch_size=4, **changes)
    return own.loaded(recipe, root)


def test_images_of_one_size_are_arrays(stored):
    root, rows = stored
    recipe, splits = load("own/images", root)
    assert recipe.name == "colours/resnet8_v1_pad" and splits.classes == ["blue", "green", "red"]
    ours = splits.test.images(), splits.test.labels
    one, other = (sorted(zip(map(bytes, x), y, strict=True)) for x, y in (ours, rows["test"]))
    assert one == other


def test_encoded_images_are_cropped_and_resized(stored):
    recipe, splits = load("own/photos", stored[0], image_sizes=(32,))
    (jpeg,) = splits.train.jpegs(tf.constant([0])).numpy()
    assert jpeg.startswith(b"\xff\xd8\xff") and recipe.task_row.jpegs
    assert recipe.task_row.test_examples == 6


def test_a_name_that_is_not_there_is_refused(stored):
    with pytest.raises(Refusal, match="TensorFlow Datasets can't read colors in it"):
        load("own/images", stored[0], name="colors")


def test_a_share_of_a_data_set_with_a_test_is_refused(stored):
    with pytest.raises(Refusal, match="has splits test, train; should have train, and no --valid"):
        load("own/images", stored[0], validation_share=0.2)


def test_a_data_set_that_is_not_prepared_is_refused(tmp_path):
    with pytest.raises(Refusal, match="holds no mnist .train also takes --download"):
        load("own/images", str(tmp_path), name="mnist")
