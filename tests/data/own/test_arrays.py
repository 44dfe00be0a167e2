"""Arrays of one's own, in memory and in .npz files."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes, terminal
from dawnbench_tf.data import dataset
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import arrays
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import Task, find_task
from tests.data.own import conftest as own

RECIPE = Recipe(task=Task("colours", threshold=90), model="resnet8_v1_pad", batch_size=4)


def parts():
    return (*own.images(4), *own.images(2, seed=1))


def test_arrays_data_sets_and_functions_give_the_same_examples():
    four = parts()
    pairs = [tf.data.Dataset.from_tensor_slices(four[i : i + 2]) for i in (0, 2)]
    for form in (four, list(four), tuple(pairs), lambda: four, lambda: tuple(pairs)):
        recipe, splits = own.loaded(RECIPE, examples=form)
        assert np.array_equal(splits.train.images(), four[0])
        assert np.array_equal(splits.test.labels, four[3])
        task = recipe.task_row
        assert (task.classes, task.image_size, task.train_examples) == (3, 16, 12)


def test_grey_images_get_three_channels():
    images, labels = own.images(4)
    split = arrays.split(images[..., 0], labels[:, None], "data")
    assert split.images().shape == (12, 16, 16, 3)
    assert np.array_equal(split.images()[..., 2], images[..., 0])


def test_two_arrays_are_divided():
    recipe, splits = own.loaded(RECIPE.with_values(validation_share=0.25), examples=own.images(8))
    assert (len(splits.train.labels), len(splits.test.labels)) == (18, 6)


def pairs(images, labels):
    return tf.data.Dataset.from_tensor_slices((images, labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x / 255, y, x, y), "images are float64; should be uint8, 0 to 255"),
        (lambda x, y: (x, y[1:], x, y), "12 images and 11 labels; should be one label for each"),
        (lambda x, y: (x, y * 1.0, x, y), r"labels are float64 \(12,\); should be whole numbers"),
        (lambda x, y: (x[:, :8], y, x, y), r"images are \(12, 8, 16, 3\); should be"),
        (lambda x, y: (x[:, :0, :0], y, x, y), r"images are \(12, 0, 0, 3\); should be"),
        (lambda x, y: (x, y, x[:, :8, :8], y), "training and test images have different sizes"),
        (lambda x, y: (x, y - 1, x, y), "data: label -1 should be 0 or more"),
        (lambda x, y: (x, y), "--validation_share=0.0: is needed to divide x and y"),
        (lambda x, y: (x, y, x), r"data: has 3 parts; should be \(x_train"),
        (lambda x, y: (pairs(x, y).repeat(), pairs(x, y)), r"has no end; leave out its repeat"),
        (lambda x, y: (pairs(x, y).batch(5), pairs(x, y)), r"has batches; pass its unbatch\(\)"),
        (lambda x, y: "x", "data: is a str; should be"),
        (lambda x, y: ([*x[:3], x[3, :8]], y[:4], x, y), "images or labels of several shapes"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(change, message):
    with pytest.raises(Refusal, match=message):
        dataset.open(RECIPE, examples=change(*own.images(4)))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (recipes.get("own/photos", threshold=90.0, batch_size=4), "reads JPEGs, and data has arr"),
        (recipes.get("qa_mini/bidaf"), "data: is a tuple; should be `Encoded`"),
        (
            recipes.get("digits/resnet8", batch_size=4),
            "train: images have 16 pixels; digits has 32",
        ),
    ],
)
def test_a_recipe_for_other_examples_is_refused(recipe, message):
    with pytest.raises(Refusal, match=message):
        dataset.open(recipe, examples=parts())


def test_an_empty_test_set_is_refused():
    splits = dataset.open(RECIPE, examples=(*own.images(4), *own.images(4))).splits
    empty = splits._replace(test=splits.test.take(np.arange(0)))
    with pytest.raises(Refusal, match="test: holds no examples"):
        dataset.open(RECIPE, examples=empty)


def npz_recipe(path, **changes):
    task = find_task("npz", str(path))
    return recipes.get("own/images", task=task, batch_size=4, threshold=90.0, **changes)


def test_an_npz_file_is_read(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(terminal, "say", said.append)
    path, (x, y, x_test, y_test) = tmp_path / "colours.npz", parts()
    np.savez_compressed(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test, x_val=x, b=1)
    recipe, splits = own.loaded(npz_recipe(path), str(path))
    assert recipe.name == "colours/resnet8_v1_pad" and str(splits.origin) == "colours.npz"
    assert said == [f"{path}: not read: b, x_val"]
    assert np.array_equal(splits.train.images(), x)
    assert np.array_equal(splits.test.images(), x_test)


def test_an_npz_file_with_other_names_is_refused(tmp_path):
    path = tmp_path / "colours.npz"
    np.savez(path, images=own.images(4)[0])
    with pytest.raises(Refusal, match=r"colours.npz: lacks x_train, y_train, x_test, y_test; has"):
        dataset.open(npz_recipe(path), str(path))
    x, y, x_test, y_test = parts()
    np.savez(path, x=x, y=y, x_test=x_test, y_test=y_test)  # the test set would be left out
    with pytest.raises(Refusal, match=r"lacks x_train, y_train; has x, x_test, y, y_test"):
        dataset.open(npz_recipe(path, validation_share=0.5), str(path))


def test_a_damaged_npz_file_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(Refusal, match=r"--data_dir=.*a.npz: it is damaged"):
        dataset.open(npz_recipe("a.npz"), str(tmp_path / "a.npz"))


def test_other_pixels_than_the_run_had_are_refused(tmp_path):
    dataset.open(RECIPE, examples=parts()).save(tmp_path)
    dataset.open(RECIPE, examples=parts()).check_saved(tmp_path)
    other = dataset.open(RECIPE, examples=(*parts()[:2], *own.images(2, seed=9)))
    with pytest.raises(Refusal, match="^data: holds other test images than"):
        other.check_saved(tmp_path)
    x, y, *test = parts()
    other = dataset.open(RECIPE, examples=((255 - x, y), tuple(test)))  # Keras's pairs
    other.check_saved(tmp_path)  # for inference
    turned = dataset.open(RECIPE, examples=(x[::-1], y[::-1], *test))
    turned.check_saved(tmp_path, trains=True)  # as a data set that shuffles
    with pytest.raises(Refusal, match="^data: holds other training images than"):
        other.check_saved(tmp_path, trains=True)


def test_examples_that_are_passed_are_never_the_published_ones():
    _, splits = own.loaded(RECIPE, examples=parts())
    published = splits._replace(origin=Origin("cifar-10-python.tar.gz", True))
    _, passed = own.loaded(RECIPE, examples=published)
    assert passed.origin.facts() == {"source": "given"}


def test_a_task_of_arrays_has_no_files():
    with pytest.raises(Refusal, match="colours has no files; pass its examples to train or infer"):
        dataset.open(RECIPE)


def test_a_label_far_above_the_others_is_refused():
    x_train, y_train, *test = parts()
    y_train = np.where(y_train == 2, 2**32 - 1, y_train)
    line = "^colours: labels should be 0 to 3: 4 classes have examples, but .* 4,294,967,295$"
    with pytest.raises(Refusal, match=line):
        dataset.open(RECIPE, examples=(x_train, y_train, *test))


def test_classes_without_examples_are_said_and_a_test_s_own_refused(tmp_path, monkeypatch):
    x, y, x_test, y_test = parts()
    said = []
    monkeypatch.setattr(terminal, "say", said.append)
    dataset.open(RECIPE, examples=(x, y + 1, x_test, y_test + 1))
    assert said == ["colours: 4 classes by the largest label; without example: 0"]
    y_test = np.append(y_test[:-1], 3)
    with pytest.raises(Refusal, match="colours: labels 3 are in the test alone; training should"):
        dataset.open(RECIPE, examples=(x, y, x_test, y_test))
    with pytest.raises(Refusal, match="whole numbers .*; one list numbers those of training and"):
        dataset.open(RECIPE, examples=(x, np.array(["a", "b"])[y % 2], x_test, y_test))
