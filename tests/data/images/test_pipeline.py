"""Every example in every epoch, equal for any number of replicas; every test example once."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.images import pipeline, tested
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.recipe import Images, Recipe


def split(seed, count):
    """Returns images whose label is the example's index."""
    images = np.random.default_rng(seed).integers(0, 256, (count, 8, 8, 3), np.uint8)
    return in_memory(images, np.arange(count))


SPLITS = Splits(split(0, 50), split(1, 23))
RECIPE = Recipe(batch_size=12, epochs=3, seed=5, data=Images(pad=2, flip=True))


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
    data = ImageData(recipe, splits, Placement(shared or Shared(), data_format))
    prepare = data.on_devices()
    return batches(prepare(*batch) for batch in data.training_batches(first_epoch))


def test_batches_for_any_loop_are_those_of_the_devices():
    recipe = replace(RECIPE, data=replace(RECIPE.data, cutout=2))
    data = ImageData(recipe, SPLITS, Placement(Shared(), "NCHW"))
    whole = train(recipe=recipe, data_format="NCHW")
    assert data.steps_per_epoch == 5
    own = [batch for epoch in range(3) for batch in batches(data.train(epoch))]
    np.testing.assert_equal(own, whole)


def test_each_epoch_shows_every_example_in_full_batches_of_another_order():
    labels = np.array([labels for _, labels in train()])
    assert labels.shape == (3 * 5, 12)
    for epoch in labels.reshape(3, 60):
        counts = Counter(epoch.tolist())
        assert set(counts) == set(range(50)) and sum(counts.values()) == 60
        assert [label for label, count in counts.items() if count == 2] == epoch[:10].tolist()
    assert len({tuple(epoch) for epoch in labels.reshape(3, 60)}) == 3


EVERYTHING = Recipe(  # every draw that there is; labels below 10, as mixup makes them one-hot
    task="digits",
    batch_size=12,
    epochs=3,
    seed=5,
    data=Images(
        pad=2, flip=True, crop_size=6, cutout=2, color_jitter=(0.2,) * 3, rotation=10, mixup=0.4
    ),
)
TEN = Splits(in_memory(SPLITS.train.images(), np.arange(50) % 10), SPLITS.test)


def test_the_global_batch_is_the_same_however_it_is_shared():
    whole = train(recipe=EVERYTHING, splits=TEN)
    workers = [train(Shared(4, 2, index), recipe=EVERYTHING, splits=TEN) for index in range(2)]
    for step, batch in enumerate(whole):
        parts = [worker[step * 2 + r] for worker in workers for r in range(2)]
        joined = tuple(np.concatenate(several) for several in zip(*parts, strict=True))
        np.testing.assert_equal(joined, batch)


def test_mixup_takes_the_mean_of_two_images_of_a_batch_and_of_their_labels():
    plain = replace(EVERYTHING, data=Images(mixup=0))
    mixed = replace(EVERYTHING, data=Images(mixup=0.4))
    shares = []
    both = (train(recipe=recipe, splits=TEN) for recipe in (plain, mixed))
    for (images, labels), (mixtures, probabilities) in zip(*both, strict=True):
        partners = []
        rows = zip(images, labels, mixtures, probabilities, strict=True)
        for image, label, mixture, probability in rows:
            share = probability[label] if probability[label] < 1 else None
            np.testing.assert_allclose(probability.sum(), 1, rtol=1e-6)
            if not share:
                continue
            errors = np.abs(mixture - share * image - (1 - share) * images).max((1, 2, 3))
            assert errors.min() < 1e-4
            shares.append(share)
            partners.append(errors.argmin())
        assert len(partners) > 6  # where labels differ, the share can be read off the label
        assert len(set(partners)) == len(partners)  # an image is the partner of one
    assert 0.5 <= min(shares) < 0.6 and max(shares) > 0.99
    # The mean of max(X, 1 - X) for a million Beta(0.4, 0.4) numbers of NumPy is 0.840.
    assert abs(np.mean(shares) - 0.840) < 0.03


def test_a_restart_in_the_middle_sees_what_the_whole_run_saw():
    np.testing.assert_equal(train(first_epoch=2), train()[10:])


def test_another_seed_is_another_order():
    assert (train()[0][1] != train(recipe=replace(RECIPE, seed=6))[0][1]).any()


def test_crops_and_flips_are_even():
    recipe = Recipe(batch_size=50, epochs=400, data=Images(pad=1, flip=True))
    image = np.zeros((50, 8, 8, 3), np.uint8)
    image[:, 4, 2] = 255
    splits = Splits(*[in_memory(image, np.arange(50))] * 2)
    spots = Counter()
    for images, _ in train(recipe=recipe, splits=splits):
        spots.update(map(tuple, np.argwhere(images[..., 0] > 1)[:, 1:].tolist()))
    assert set(spots) == {(y, x) for y in (3, 4, 5) for x in (1, 2, 3, 4, 5, 6)}
    wanted = 20_000 / 18
    assert all(abs(count - wanted) < 5 * wanted**0.5 for count in spots.values())


def orientations(recipe):
    """Returns whether images are flipped, by epoch and label."""
    images = SPLITS.train.images()
    plain = tested.prepare(SPLITS.train, recipe, "NHWC", np.arange(len(images)))
    steps = train(recipe=recipe)
    for first in range(0, len(steps), 5):
        yield {
            int(label): not np.array_equal(image, plain[label])
            for batch in steps[first : first + 5]
            for image, label in zip(*batch, strict=True)
        }


def test_alternating_flips_turn_every_image_in_every_epoch():
    recipe = Recipe(batch_size=10, epochs=4, seed=3, data=Images(flip=True, alternating_flip=True))
    first, *later = orientations(recipe)
    assert set(first) == set(range(50)) and 10 < sum(first.values()) < 40
    for number, epoch in enumerate(later, 1):
        assert epoch == {label: turned ^ (number % 2 == 1) for label, turned in first.items()}


def test_what_fills_no_batch_can_be_left_out():
    recipe = replace(RECIPE, drop_remainder=True)
    assert ImageData(recipe, SPLITS, None).steps_per_epoch == 4
    labels = np.array([labels for _, labels in train(recipe=recipe)]).reshape(3, 48)
    assert all(len(set(epoch)) == 48 for epoch in labels.tolist())


def test_a_square_is_cut_out_of_each_image_anywhere_inside():
    recipe = Recipe(batch_size=50, epochs=40, data=Images(cutout=6))
    images = np.concatenate([images for images, _ in train(recipe=recipe)])
    empty = (images == 0).all(3)
    assert set(empty.sum((1, 2)).tolist()) == {36}
    corners = np.stack([empty.any(2).argmax(1), empty.any(1).argmax(1)], 1)
    _, counts = np.unique(corners, axis=0, return_counts=True)
    assert len(counts) == 9 and np.abs(counts - 2000 / 9).max() < 80


def test_nchw_is_nhwc_transposed():
    first = train(data_format="NCHW")[0][0]
    np.testing.assert_array_equal(first, train()[0][0].transpose(0, 3, 1, 2))


def jpegs(count):
    """Returns a split of flat images of many sizes, whose pixels are 5 times the label."""
    sides = np.random.default_rng(0).integers(8, 40, (count, 2))
    pixels = (np.full((*shape, 3), 5 * label, np.uint8) for label, shape in enumerate(sides))
    files = tf.stack([tf.io.encode_jpeg(image) for image in pixels])
    return Split(np.arange(count), jpegs=lambda indices: tf.gather(files, indices))


JPEGS = Splits(jpegs(50), jpegs(23))
OF_JPEGS = Recipe(
    task="imagenette",
    model="resnet18_v1",
    batch_size=12,
    epochs=3,
    seed=5,
    data=Images(
        flip=True,
        image_sizes=(8, 16),
        image_size_epochs=(2,),
        test_image_size=12,
        standardize="channel",
        channel_mean=(0, 0, 0),
        channel_deviation=(1, 1, 1),
    ),
)


def shown(images):
    """Returns the labels of a batch, from its pixels."""
    return np.round(images.mean((1, 2, 3)) * 255 / 5).astype(int)


def test_jpegs_come_through_the_same_door():
    """Every JPEG in every epoch, with its label, in the order of images in memory."""
    held = train(recipe=replace(RECIPE, seed=5))
    jpeg_batches = train(recipe=OF_JPEGS, splits=JPEGS)
    for (_, wanted), (images, labels) in zip(held, jpeg_batches, strict=True):
        np.testing.assert_array_equal(labels, wanted)
        np.testing.assert_array_equal(shown(images), labels)


def test_augmentation_is_the_same_for_any_sharing_and_after_a_restart():
    recipe = replace(OF_JPEGS, data=replace(OF_JPEGS.data, color_shift=(0.1, 0.1)))
    whole = train(recipe=recipe, splits=JPEGS)
    workers = [train(Shared(2, 2, index), recipe=recipe, splits=JPEGS) for index in range(2)]
    for (images, _), (one, _), (other, _) in zip(whole, *workers, strict=True):
        np.testing.assert_array_equal(images, np.concatenate([one, other]))
    resumed = train(recipe=recipe, splits=JPEGS, first_epoch=2)
    np.testing.assert_array_equal(resumed[0][0], whole[10][0])
    assert (shown(whole[0][0]) != whole[0][1]).any()


def test_the_size_of_training_images_changes_at_its_epoch():
    sides = [images.shape[1:3] for images, _ in train(recipe=OF_JPEGS, splits=JPEGS)]
    assert sides == [(8, 8)] * 10 + [(16, 16)] * 5
    resumed = train(recipe=OF_JPEGS, splits=JPEGS, first_epoch=2)
    assert [images.shape[1] for images, _ in resumed] == [16] * 5
    one = replace(OF_JPEGS, data=replace(OF_JPEGS.data, image_sizes=(8,), image_size_epochs=()))
    dataset = ImageData(one, JPEGS, Placement(Shared())).training_batches()
    assert dataset.element_spec[1].shape == (12, 8, 8, 3)  # static, as a TPU wants it


def test_each_size_has_its_smallest_crop(monkeypatch):
    def crop(jpeg, seed, flip, size, smallest):  # its pixels tell the share
        return tf.cast(tf.fill([size, size, 3], round(100 * smallest)), tf.uint8)

    monkeypatch.setattr(pipeline.jpegs, "random_crop", crop)
    recipe = replace(OF_JPEGS, data=replace(OF_JPEGS.data, smallest_crops=(0.1, 0.9)))
    data = ImageData(recipe, JPEGS, Placement(Shared()))
    shares = [int(images.numpy().mean()) for _, images in data.training_batches()]
    assert shares == [10] * 10 + [90] * 5


@settings(deadline=None, max_examples=8)
@given(st.data())
def test_every_example_is_seen_once_however_it_is_shared(data):
    """Once in an epoch, except examples that complete its last batch; once in the test."""
    replicas, pipelines = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (3, 3)]))
    batch = replicas * data.draw(st.integers(1, 5))
    count = data.draw(st.integers(batch, 40))
    splits = Splits(jpegs(count), jpegs(count))
    one_size = replace(OF_JPEGS.data, image_sizes=(), image_size_epochs=())
    recipe = replace(OF_JPEGS, batch_size=batch, epochs=1, data=one_size)
    trained, answered = [], []
    for index in range(pipelines):
        data = ImageData(recipe, splits, Placement(Shared(replicas, pipelines, index)))
        trained.append([b.numpy() for b, _ in data.training_batches()])
        answered.append([shown(b.numpy() / 255) for b in data.test_batches(batch)])
    local, steps = replicas // pipelines, -(-count // batch)
    outputs_by_step = [
        np.concatenate([w[s * local + r] for w in answered for r in range(local)])
        for s in range(steps)
    ]
    outputs = ImageData(recipe, splits, None).collect(outputs_by_step, batch)
    np.testing.assert_array_equal(outputs, np.arange(count))
    counts = np.bincount(np.concatenate([np.concatenate(labels) for labels in trained]))
    assert len(counts) == count and counts.min() == 1 and counts.sum() == steps * batch


def test_a_step_gets_numbers_and_makes_its_images_itself_compiled_or_not():
    recipe = replace(RECIPE, data=replace(RECIPE.data, cutout=3, pad_mode="reflection"))
    data = ImageData(recipe, SPLITS, Placement(tf.distribute.get_strategy()))
    batch = next(iter(data.training_batches()))
    numbers = tf.nest.flatten(batch)
    assert sum(x.numpy().nbytes for x in numbers) < 12 * 40  # of an image of 192 values
    prepare = data.on_devices()
    compiled = tf.function(prepare, jit_compile=True)(*batch)
    for one, other in zip(prepare(*batch), compiled, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_images_of_any_size_come_back_from_the_devices():
    images = np.random.default_rng(0).integers(0, 256, (9, 5, 3, 3), np.uint8)  # 45 bytes each
    fetch = pipeline.on_each_device(images, tf.distribute.get_strategy(), 20)
    np.testing.assert_array_equal(fetch(tf.constant([8, 0, 12])), images[[8, 0, 3]])
    every = np.arange(256, dtype=np.uint8).repeat(4).reshape(-1, 2, 2, 1)  # words: no numbers
    fetch = pipeline.on_each_device(every, tf.distribute.get_strategy(), 256)
    np.testing.assert_array_equal(tf.function(fetch, jit_compile=True)(tf.range(256)), every)


def test_examples_one_by_one_are_the_test_s_and_made_a_block_at_a_time(monkeypatch):
    monkeypatch.setattr(tested, "BLOCK", 5)
    unpatched, fetched = tested.pixels, []

    def as_tested(split, recipe, indices):
        fetched.append(len(indices))
        return unpatched(split, recipe, indices)

    monkeypatch.setattr(tested, "pixels", as_tested)
    examples = ImageData(RECIPE, SPLITS, Placement(Shared())).examples()
    wanted = tf.image.per_image_standardization(SPLITS.test.images()).numpy()
    assert len(examples) == 23 and examples[0][0].shape == (1, 8, 8, 3)
    np.testing.assert_allclose(np.concatenate([image for (image,) in examples]), wanted, atol=1e-6)
    assert fetched == [5, 5, 5, 5, 3]
    np.testing.assert_array_equal(examples[-1][0], examples[20:][2][0])
    with pytest.raises(IndexError):
        examples[23]
