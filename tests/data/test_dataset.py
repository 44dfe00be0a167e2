"""Both implementations of `Data`: scores of batches and of single examples are equal."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.refusals import Refusal


def answer(*arrays):
    """Returns logits that depend only on the example: an image's pixels, or a question's ids."""
    if len(arrays) == 1:
        pixels = np.asarray(arrays[0])
        return pixels.reshape(len(pixels), -1)[:, :10]
    ids = np.asarray(arrays[0])
    scores = np.where(ids > 0, np.sin(ids * 12.9898 + np.arange(ids.shape[1])), -1e30)
    return np.stack([scores, scores[:, ::-1] * 0 + np.cos(ids) + np.where(ids > 0, 0, -1e30)], 1)


@pytest.fixture(scope="module", params=["digits/resnet8", "qa_mini/bidaf"])
def data(request):
    return dataset.open(replace(recipes.get(request.param), synthetic="decoded"))


@pytest.mark.parametrize("batch_size", [64, 999])
def test_batches_and_single_examples_give_the_same_answers(data, batch_size):
    prepared = [data.prepare(batch) for batch in data.test_batches(batch_size)]
    outputs = [answer(*(b if isinstance(b, tuple) else (b,))) for b in prepared]
    collected = data.collect(outputs, batch_size)
    assert len(data.examples()) == data.recipe.task_row.test_examples
    joined = data.join([answer(*example) for example in data.examples()])
    assert data.score(collected) == data.score(joined)
    np.testing.assert_equal(collected, joined)


def test_a_sample_s_examples_are_the_test_s_own_and_scored_alone(data):
    chosen, few = data.sample(7)
    assert len(few.examples()) == 7
    np.testing.assert_equal([*few.examples()], [*data.examples()[chosen]])
    outputs = [answer(*example) for example in few.examples()]
    assert few.score(few.join(outputs))
    for wrong in (outputs[:6], [*outputs, outputs[0]]):
        with pytest.raises(ValueError, match="each of 7 .* should be (scored|answered) once"):
            few.score(few.join(wrong))


def test_the_last_images_are_held_out_and_no_class_with_them():
    whole = dataset.open(recipes.get("digits/resnet8", synthetic="decoded")).splits
    part = whole.hold_out(100)
    assert [*part.train.labels, *part.held_out.labels] == [*whole.train.labels]
    np.testing.assert_array_equal(part.held_out.images(), whole.train.images(slice(-100, None)))
    ordered = whole._replace(train=whole.train.take(np.argsort(whole.train.labels)))
    with pytest.raises(Refusal, match="--held_out=300: leaves no training example of class 8"):
        ordered.hold_out(300)


def test_logits_of_another_number_of_classes_have_no_score():
    digits = dataset.open(recipes.get("digits/resnet8", synthetic="decoded"))
    for wrong in (np.zeros([500, 9]), np.zeros([500, 11]), [0] * 500):
        with pytest.raises(ValueError, match="`answers` should be logits of 10 classes"):
            digits.score(wrong)


def test_an_epoch_for_any_loop_is_what_fit_gets(data):
    prepare = data.on_devices() or (lambda *batch: batch)
    whole = iter(data.training_batches(first_epoch=1))
    batches = list(data.train(1))
    assert len(batches) == data.steps_per_epoch
    for batch in batches:
        wanted = tf.nest.flatten(prepare(*next(whole)))
        for one, other in zip(tf.nest.flatten(batch), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_embedded_data_set_takes_no_folder():
    recipe = recipes.get("digits/resnet8")
    with pytest.raises(Refusal, match="--data_dir=here: digits is embedded and takes none"):
        dataset.open(recipe, "here")
    with pytest.raises(Refusal, match="--download=true: digits's examples are here already"):
        dataset.open(recipe, download=True)
