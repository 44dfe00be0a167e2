"""Training on the hardest examples of each batch: which ones, an interrupted run."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data import dataset
from dawnbench_tf.train import train
from dawnbench_tf.training import fitting, utilization
from tests.training import interruption, test_phases

# Epochs of 8 batches of 32, which are trained on whole, then of 2 batches of 128.
RECIPE = test_phases.RECIPE.with_values(
    epochs=4,
    batch_size=32,
    later_batch_sizes=(128,),
    batch_size_epochs=(1,),
    hardest=48,
    average=0,
    train_examples=256,
    momentum=0,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    images, labels = tf.zeros([2, 32, 32, 3]), tf.zeros([2])
    evaluator = tf.keras.callbacks.LambdaCallback()  # computes a loss that ranks no example
    evaluator.on_epoch_end = lambda *_: evaluator.model.evaluate(images, labels, verbose=0)
    folder = tmp_path_factory.mktemp("hardest") / "run"
    return train(RECIPE, output=folder, callbacks=[evaluator])


def test_a_run_equals_a_written_out_loop(trained):
    """The loop ranks by a dictionary of losses, and takes gradients of the chosen examples only."""
    data = dataset.open(RECIPE)
    model = fitting.build(data)  # for its initial weights
    prepare, last, counts = data.on_devices(), {}, []

    @tf.function(reduce_retracing=True)
    def gradients(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(each)
        return each, tape.gradient(loss, model.trainable_variables)

    for batches in (data.training_batches(0), data.training_batches(1)):
        for batch in batches:
            indices = batch[0].numpy().tolist()
            ranked = sorted(range(len(indices)), key=lambda i: -last.get(indices[i], np.inf))
            chosen = ranked[:48]
            images, labels = (tf.gather(part, chosen) for part in prepare(*batch))
            each, slopes = gradients(images, labels)
            for position, loss in zip(chosen, each.numpy().tolist(), strict=True):
                last[indices[position]] = np.float32(loss)
            for slope, weight in zip(slopes, model.trainable_variables, strict=True):
                weight.assign_sub(2**-8 * slope)
            counts.append(len(chosen))
    assert counts == [32] * 8 + [48] * 6
    for ours, loop in zip(trained.model().get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, loop, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_a_run_goes_on_with_the_losses_of_its_checkpoint(trained, tmp_path):
    interruption.check_continued(trained, tmp_path)


def test_a_step_counts_the_examples_that_it_trains_on():
    model = fitting.build(dataset.open(RECIPE.with_values(image_sizes=())))
    forward = utilization.forward_flops(models.build("resnet8_v1_pad"))
    assert utilization.step_flops(model, 32) == 3 * forward
    assert utilization.step_flops(model, 128) == 3 * forward * 48 / 128
