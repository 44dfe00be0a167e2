"""From a recipe to a compiled model, and through `fit` with the callbacks in their order."""

import tensorflow as tf

from dawnbench_tf import files, losses, models, optimizers, progress
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import pipeline
from dawnbench_tf.models import layers
from dawnbench_tf.settings import Refusal, refuse


def build(task, recipe, run, strategy, splits):
    """Builds and compiles the recipe's model for the data's images, from the recipe's seed."""
    tf.keras.utils.set_random_seed(recipe.seed)
    images = pipeline.sample(splits, recipe, run.data_format)
    steps = pipeline.steps_per_epoch(task.train_examples, recipe.batch_size)
    with strategy.scope():
        model = models.build(
            recipe.model,
            num_classes=task.classes,
            input_shape=images.shape[1:],
            data_format=run.data_format,
            dtype=recipe.precision,
            synchronized=_synchronizes(recipe, strategy),
        )
        losses.add_weight_decay(model, recipe.weight_decay)
        model.compile(
            optimizers.build(recipe, steps),
            losses.LOSSES[task.loss](),
            steps_per_execution=min(run.steps_per_execution, steps),
            jit_compile=False,
        )
    for layer in model.layers:
        if isinstance(layer, layers.Whitening):
            layer.adapt(images)
    # Else tf-keras logs the sum of all workers' mean losses.
    model.distribute_reduction_method = "first"
    return model


def _synchronizes(recipe, strategy):
    """Whether BN needs to speak across replicas to see the global batch."""
    several = strategy.num_replicas_in_sync > 1 and recipe.synchronized_batch_norm
    if several and models.get(recipe.model).args.get("final_survival", 1) < 1:
        refuse(
            "synchronized_batch_norm",
            "true",
            f"{recipe.model} skips blocks, and BN can't speak across replicas inside one that may "
            "be skipped; add --nosynchronized_batch_norm for statistics of each replica's own",
        )
    return several


def fit(model, splits, recipe, run, strategy, timer, saver) -> None:
    """Trains from where `saver` finds the run to the threshold or the last epoch."""
    done = saver.restore()
    _agree(strategy, done)
    if timer.reached or done >= recipe.epochs:
        timer.clock = Clock(saver.recorded)  # nothing is left: this process is no part of the run
        return
    callbacks = [timer, saver]  # order matters: row, then save, then show
    if saver.folder.writer:
        callbacks.append(progress.Line(timer, recipe.epochs))
    if run.tensorboard or run.profile_steps:
        logs = str(saver.folder.path / "tensorboard")
        callbacks.append(
            tf.keras.callbacks.TensorBoard(
                logs, profile_batch=run.profile_steps or 0, write_graph=False
            )
        )
    try:
        with timer.clock.part("train"):
            model.fit(
                pipeline.train(splits, recipe, strategy, run.data_format, done),
                initial_epoch=done,
                epochs=recipe.epochs,
                steps_per_epoch=pipeline.steps_per_epoch(
                    len(splits.train_labels), recipe.batch_size
                ),
                verbose=0,
                callbacks=callbacks,
            )
    except tf.errors.ResourceExhaustedError:
        refuse("batch_size", recipe.batch_size, "does not fit into the device's memory; lower it")
    except (tf.errors.UnavailableError, tf.errors.AbortedError):
        raise Refusal("a worker was lost; the same command on all workers continues") from None
    except OSError as error:
        raise files.cannot_write(saver.folder.path, error) from None
    finally:
        saver.beat()  # whatever ended it: no second is forgotten


def _agree(strategy, done):
    """Refuses if workers found different checkpoints: they would wait for each other for ever."""
    if strategy.num_replicas_in_sync == 1:
        return
    found = tf.function(lambda: strategy.gather(strategy.run(lambda: tf.constant([done])), axis=0))
    every = found().numpy()
    if every.min() != every.max():
        raise Refusal(
            f"--output_dir: workers found checkpoints of epochs {sorted(set(every.tolist()))}; "
            "it should be one folder that all workers see"
        )
