"""Properties of every recipe."""

import pytest
import tensorflow as tf

from dawnbench_tf import fitting, losses, models, optimizers, recipes, scores, tasks
from dawnbench_tf.data import image_pipeline, qa_mini, synthetic
from dawnbench_tf.options import RunOptions

STRATEGY = tf.distribute.get_strategy()
NAMES = sorted(recipes.rows())
SPLITS = {
    "images": synthetic.make(tasks.TASKS["digits"], seed=0),
    "questions": qa_mini.make(5, 5, seed=0),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_names_a_task_a_model_a_score_and_a_loss_there_are(name):
    recipe = recipes.get(name)
    task = tasks.TASKS[recipe.task]
    assert recipe.name == name == f"{recipe.task}/{name.partition('/')[2]}"
    assert recipe.model in models.names()
    assert task.score in scores.SCORES and task.loss in losses.LOSSES
    assert recipe.schedule_epochs == () or recipe.schedule_epochs[-1] <= recipe.epochs


@pytest.mark.parametrize("name", NAMES)
def test_the_train_step_compiles_with_xla_at_static_shapes(name):
    """What a TPU needs: lowered whole, gradients and update included; no size left open."""
    recipe = recipes.get(name)
    task = tasks.TASKS[recipe.task]
    model = fitting.build(task, recipe, RunOptions(), STRATEGY, SPLITS[task.kind])
    optimizer = optimizers.build(
        recipe, image_pipeline.steps_per_epoch(task.train_examples, recipe.batch_size)
    )
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = losses.LOSSES[task.loss]()(labels, logits) + sum(model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    inputs, labels = static_batch(model, recipe, task)
    lowered = step.experimental_get_compiler_ir(inputs, labels)(stage="hlo")
    assert "convolution" in lowered and "<=" not in lowered  # "<=" marks a dimension left open


def static_batch(model, recipe, task):
    if task.kind == "images":
        images = tf.zeros([recipe.batch_size, *model.input_shape[1:]])
        return images, tf.zeros([recipe.batch_size], tf.int64)
    lengths = (recipe.bucket_boundaries[-1], 30)
    words = [tf.ones([recipe.batch_size, length], tf.int32) for length in lengths]
    letters = [tf.ones([recipe.batch_size, length, 16], tf.int32) for length in lengths]
    ends = tf.zeros([recipe.batch_size, 2], tf.int32)
    return (words[0], letters[0], words[1], letters[1]), ends


@pytest.mark.parametrize("name", ["digits/resnet8"])
def test_the_smallest_compiles_and_runs_under_xla(name):
    recipe = recipes.get(name)
    task = tasks.TASKS[recipe.task]
    model = fitting.build(task, recipe, RunOptions(), STRATEGY, SPLITS[task.kind])
    model.compile("sgd", losses.LOSSES[task.loss](), jit_compile=True)
    images = tf.random.normal([recipe.batch_size, 32, 32, 3])
    history = model.fit(
        images, tf.zeros([recipe.batch_size]), recipe.batch_size, epochs=3, verbose=0
    )
    assert history.history["loss"][2] < history.history["loss"][0]
