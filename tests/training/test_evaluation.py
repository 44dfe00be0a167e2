"""Every test example is scored once, whatever the batch; strategies: test_strategies.py."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.images.splits import Splits, in_memory
from dawnbench_tf.tasks import Task
from dawnbench_tf.training import evaluation, fitting

RECIPE = recipes.get("digits/resnet8")


def test_the_score_is_that_of_one_example_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (26, 8, 8, 3), np.uint8)
    model = models.build("resnet8_v1_pad", input_shape=(8, 8, 3))
    inputs = tf.image.per_image_standardization(images)
    one_by_one = [np.argmax(model(image[None])) for image in inputs]
    labels = np.where(np.arange(26) % 2, one_by_one, -1)  # right for every other one
    data = dataset.from_splits(RECIPE, Splits(*[in_memory(images, labels)] * 2))
    for batch in (1, 7, 13, 500):
        monkeypatch.setattr(evaluation, "BATCH", batch)
        evaluate = evaluation.Evaluator(data, model)
        assert evaluate() == evaluate() == {"top1Accuracy": 50.0}


def test_a_network_that_answers_one_class_only_is_named_once(monkeypatch):
    said = []
    monkeypatch.setattr(evaluation.terminal, "say", said.append)
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    splits = Splits(*[in_memory(images, np.arange(6) % 3)] * 2)
    task = Task("own", 90, train_examples=6, test_examples=6, classes=3, image_size=8)
    data = dataset.from_splits(recipes.get("own/images", task=task, batch_size=2), splits)
    model = data.network()
    evaluate = evaluation.Evaluator(data, model)
    model.set_weights([0 * weights for weights in model.get_weights()])
    for _ in range(3):
        evaluate()
    assert len(said) == 1 and "gave every test image the same class" in said[0]


def test_only_the_least_probable_images_get_all_views(monkeypatch):
    monkeypatch.setattr(evaluation, "BATCH", 7)
    images = np.random.default_rng(0).integers(0, 256, (26, 8, 8, 3), np.uint8)
    splits = Splits(*[in_memory(images, np.arange(26) % 10)] * 2)
    model = models.build("resnet8_v1_pad", input_shape=(8, 8, 3))
    inputs = tf.image.per_image_standardization(images)
    alone = model(inputs).numpy()
    for share, count in ((0.25, 6), (0.01, 1)):  # rounded down, at least 1
        recipe = RECIPE.with_values(test_views="mirror_and_shifts", views_share=share)
        data = dataset.from_splits(recipe, splits)
        with_views = data.with_views(model)(inputs).numpy()
        lowest = np.argsort(tf.nn.softmax(alone).numpy().max(1))[:count]
        expected = alone.copy()
        expected[lowest] = with_views[lowest]
        evaluate = evaluation.Evaluator(data, model)
        evaluate()
        np.testing.assert_allclose(evaluate.answers, expected, atol=1e-5)
        assert not np.allclose(alone[lowest], with_views[lowest], atol=1e-3)


def test_moving_averages_are_evaluated_and_training_goes_on_from_the_weights():
    data = dataset.open(RECIPE.with_values(average=0.5, synthetic="decoded"))
    model = fitting.build(data)
    evaluate = evaluation.Evaluator(data, model)
    forward, states = evaluate._forward, []
    evaluate._forward = lambda inputs: states.append(model.get_weights()) or forward(inputs)
    averages = model.get_weights()
    trained = [weight + 1 for weight in averages]
    model.set_weights(trained)
    evaluate()
    for weights, expected in ((states[0], averages), (model.get_weights(), trained)):
        for weight, wanted in zip(weights, expected, strict=True):
            np.testing.assert_array_equal(weight, wanted)


def test_answers_come_in_the_order_of_the_replicas():
    """TensorFlow puts worker 10 before worker 2; twelve workers are tried in the long mode."""

    class Three:
        run = staticmethod(lambda function, args: function(*args))

        def gather(self, values, axis):
            first, second, third = tf.split(values, 3, axis)
            return tf.concat([first, third, second], axis)

    data = SimpleNamespace(placement=SimpleNamespace(strategy=Three()), prepare=lambda batch: batch)
    batch = tf.reshape(tf.range(24.0), [12, 2])
    order = np.array([0, 2, 1])
    forward = evaluation._forward(data, lambda inputs, training: 2 * inputs, order)
    np.testing.assert_array_equal(forward(batch), 2 * batch)
