"""Every example in every epoch, the same for any sharing out; every test example once."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf.data.images import pipeline
from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.data.inputs import Placement
from dawnbench_tf.recipe import Recipe


def split(seed, count):
    """Images whose label tells which example they are."""
    images = np.random.default_rng(seed).integers(0, 256, (count, 8, 8, 3), np.uint8)
    return in_memory(images, np.arange(count))


SPLITS = Splits(split(0, 50), split(1, 23))
RECIPE = Recipe(batch_size=12, epochs=3, pad=2, flip=True, seed=5)


class Shared:
    """A stand-in strategy: worker `index` of `pipelines`, `replicas` devices in all."""

    def __init__(self, replicas=1, pipelines=1, index=0):
        self.num_replicas_in_sync = replicas
        self.context = SimpleNamespace(num_input_pipelines=pipelines, input_pipeline_id=index)

    def distribute_datasets_from_function(self, make):
        return make(self.context)

    def scope(self):
        return nullcontext()


def batches(dataset):
    return [tuple(np.asarray(x) for x in batch) for batch in dataset]


def train(shared=None, first_epoch=0, recipe=RECIPE, splits=SPLITS, data_format="NHWC"):
    placement = Placement(shared or Shared(), data_format)
    prepare = pipeline.on_devices(splits, recipe, placement) or (lambda *batch: batch)
    dataset = pipeline.train(splits, recipe, placement, first_epoch)
    return batches(prepare(*batch) for batch in dataset)


def test_each_epoch_shows_every_example_in_full_batches_of_another_order():
    labels = np.array([labels for _, labels in train()])
    assert labels.shape == (3 * 5, 12)
    for epoch in labels.reshape(3, 60):
        counts = Counter(epoch.tolist())
        assert set(counts) == set(range(50)) and sum(counts.values()) == 60
        assert [label for label, count in counts.items() if count == 2] == epoch[:10].tolist()
    assert len({tuple(epoch) for epoch in labels.reshape(3, 60)}) == 3


@pytest.mark.parametrize(("replicas", "pipelines"), [(2, 1), (2, 2), (4, 2), (3, 3)])
def test_the_global_batch_is_the_same_however_it_is_shared(replicas, pipelines):
    whole = train()
    workers = [train(Shared(replicas, pipelines, index)) for index in range(pipelines)]
    local = replicas // pipelines
    for step, (images, labels) in enumerate(whole):
        parts = [worker[step * local + r] for worker in workers for r in range(local)]
        np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), images)
        np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), labels)


def test_a_restart_in_the_middle_sees_what_the_whole_run_saw():
    for (images, labels), (again, same) in zip(train()[10:], train(first_epoch=2), strict=True):
        np.testing.assert_array_equal(images, again)
        np.testing.assert_array_equal(labels, same)


def test_another_seed_is_another_order():
    other = Recipe(batch_size=12, epochs=3, pad=2, flip=True, seed=6)
    assert (train()[0][1] != train(recipe=other)[0][1]).any()


def test_crops_and_flips_are_even():
    recipe = Recipe(batch_size=50, epochs=400, pad=1, flip=True)
    image = np.zeros((50, 8, 8, 3), np.uint8)
    image[:, 4, 2] = 255
    splits = Splits(*[in_memory(image, np.arange(50))] * 2)
    spots = Counter()
    for images, _ in train(recipe=recipe, splits=splits):
        where = np.argwhere(images[..., 0] > 1)
        spots.update(map(tuple, where[:, 1:].tolist()))
    assert set(spots) == {(y, x) for y in (3, 4, 5) for x in (1, 2, 3, 4, 5, 6)}
    wanted = 20_000 / 18
    assert all(abs(count - wanted) < 5 * wanted**0.5 for count in spots.values())


def orientations(recipe):
    """Of each epoch's images, by label: whether they are mirrored."""
    images = SPLITS.train.images()
    plain = pipeline.without_augmentation(SPLITS.train, recipe, "NHWC", len(images))
    steps = train(recipe=recipe)
    for first in range(0, len(steps), len(steps) // recipe.epochs):
        epoch = steps[first : first + len(steps) // recipe.epochs]
        yield {
            int(label): not np.array_equal(image, plain[label])
            for images, labels in epoch
            for image, label in zip(images, labels, strict=True)
        }


def test_alternating_flips_turn_every_image_in_every_epoch():
    recipe = Recipe(batch_size=10, epochs=4, flip=True, alternating_flip=True, seed=3)
    first, *later = orientations(recipe)
    assert set(first) == set(range(50)) and 10 < sum(first.values()) < 40
    for number, epoch in enumerate(later, 1):
        assert epoch == {label: turned ^ (number % 2 == 1) for label, turned in first.items()}


def test_what_fills_no_batch_can_be_left_out():
    recipe = replace(RECIPE, drop_remainder=True)
    assert pipeline.steps(SPLITS, recipe) == 4
    labels = np.array([labels for _, labels in train(recipe=recipe)]).reshape(3, 48)
    assert all(len(set(epoch)) == 48 for epoch in labels.tolist())


def test_a_square_is_cut_out_of_each_image_anywhere_inside():
    recipe = Recipe(batch_size=50, epochs=40, cutout=6)
    images = np.concatenate([images for images, _ in train(recipe=recipe)])
    empty = (images == 0).all(3)
    assert set(empty.sum((1, 2)).tolist()) == {36}
    corners = np.stack([empty.any(2).argmax(1), empty.any(1).argmax(1)], 1)
    _, counts = np.unique(corners, axis=0, return_counts=True)
    assert len(counts) == 9 and np.abs(counts - 2000 / 9).max() < 80


@pytest.mark.parametrize("batch_size", [1, 5, 23, 24, 60])
@pytest.mark.parametrize(("replicas", "pipelines"), [(1, 1), (4, 2)])
def test_every_test_example_comes_once_and_in_order(batch_size, replicas, pipelines):
    batch_size *= replicas
    workers = [
        list(pipeline.test(SPLITS, RECIPE, Placement(Shared(replicas, pipelines, i)), batch_size))
        for i in range(pipelines)
    ]
    local = replicas // pipelines
    steps = len(workers[0]) // local
    whole = [
        worker[s * local + r] for s in range(steps) for worker in workers for r in range(local)
    ]
    images_in_order = np.concatenate([part.numpy() for part in whole])
    wanted = tf.image.per_image_standardization(SPLITS.test.images()).numpy()
    collected = pipeline.collect([images_in_order], SPLITS, Placement(Shared()), batch_size)
    np.testing.assert_allclose(collected, wanted, atol=1e-6)


def test_nchw_is_nhwc_transposed():
    last = train()[0][0]
    first = train(data_format="NCHW")[0][0]
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


def test_a_set_that_is_not_in_memory_comes_through_the_same_door():
    """Its fetch decodes each image when it is asked for; batches are those of the set in memory."""
    images = SPLITS.train.images()
    files = tf.stack([tf.io.encode_png(image) for image in images])

    def fetch(indices):
        decode = lambda at: tf.io.decode_png(files[at], channels=3)  # noqa: E731
        decoded = tf.map_fn(decode, indices, fn_output_signature=tf.uint8)
        return tf.ensure_shape(decoded, [None, 8, 8, 3])

    lazy = Splits(Split(SPLITS.train.labels, fetch), SPLITS.test)
    for one, other in zip(train(), train(splits=lazy), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_a_step_gets_numbers_and_makes_its_images_itself_compiled_or_not():
    recipe = replace(RECIPE, cutout=3, pad_mode="reflection")
    placement = Placement(tf.distribute.get_strategy())
    batch = next(iter(pipeline.train(SPLITS, recipe, placement)))
    assert sum(x.numpy().nbytes for x in batch) < 12 * 40  # of an image of 192 values
    prepare = pipeline.on_devices(SPLITS, recipe, placement)
    compiled = tf.function(prepare, jit_compile=True)(*batch)
    for one, other in zip(prepare(*batch), compiled, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_images_of_any_size_come_back_from_the_devices():
    images = np.random.default_rng(0).integers(0, 256, (9, 5, 3, 3), np.uint8)  # 45 bytes each
    fetch = pipeline._on_each_device(images, tf.distribute.get_strategy())
    np.testing.assert_array_equal(fetch(tf.constant([8, 0, 3])), images[[8, 0, 3]])
    every = (
        np.arange(256, dtype=np.uint8).repeat(4).reshape(-1, 2, 2, 1)
    )  # words that are no number
    fetch = pipeline._on_each_device(every, tf.distribute.get_strategy())
    np.testing.assert_array_equal(tf.function(fetch, jit_compile=True)(tf.range(256)), every)


def test_examples_one_by_one_are_the_test_s_and_made_a_block_at_a_time(monkeypatch):
    monkeypatch.setattr(pipeline, "BLOCK", 5)
    fetched = []

    def fetch(indices):
        fetched.append(len(indices))
        return SPLITS.test.fetch(indices)

    examples = pipeline.OneByOne(Splits(SPLITS.train, Split(SPLITS.test.labels, fetch)), RECIPE)
    wanted = tf.image.per_image_standardization(SPLITS.test.images()).numpy()
    assert len(examples) == 23 and examples[0][0].shape == (1, 8, 8, 3)
    np.testing.assert_allclose(np.concatenate([image for (image,) in examples]), wanted, atol=1e-6)
    assert fetched == [5, 5, 5, 5, 3]
    np.testing.assert_array_equal(examples[-1][0], examples[20:][2][0])
    with pytest.raises(IndexError):
        examples[23]
