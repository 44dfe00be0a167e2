"""From a recipe to a compiled model, and through `fit` with the callbacks in their order."""

import tensorflow as tf

from dawnbench_tf import data, files, losses, models, optimizers, progress, reader, tasks
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import image_pipeline
from dawnbench_tf.models import layers
from dawnbench_tf.settings import Refusal, refuse


def build(task, recipe, run, strategy, splits):
    """Builds and compiles the recipe's model for the data's images, from the recipe's seed."""
    tf.keras.utils.set_random_seed(recipe.seed)
    steps = data.pipeline(task).steps(splits, recipe)
    with strategy.scope():
        model = MODELS[task.kind](task, recipe, run, strategy, splits)
        losses.add_weight_decay(model, recipe.weight_decay)
        model.compile(
            optimizers.build(recipe, steps),
            losses.LOSSES[task.loss](),
            steps_per_execution=min(run.steps_per_execution, steps),
            jit_compile=False,
        )
        # Now, so that moving averages start from the weights before the first step.
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        optimizer.build(model.trainable_variables)
    # Else tf-keras logs the sum of all workers' mean losses.
    model.distribute_reduction_method = "first"
    return model


def _classifier(task, recipe, run, strategy, splits):
    images = image_pipeline.sample(splits, recipe, run.data_format)
    model = models.build(
        recipe.model,
        num_classes=task.classes,
        input_shape=images.shape[1:],
        data_format=run.data_format,
        dtype=recipe.precision,
        synchronized=_synchronizes(recipe, strategy),
    )
    for layer in model.layers:
        if isinstance(layer, layers.Whitening):
            layer.adapt(images)
    return model


def _reader(task, recipe, run, strategy, splits):
    model = reader.build(recipe, splits.vocabulary)
    model.get_layer("words").set_fixed(splits.vectors)
    return model


MODELS = {"images": _classifier, "questions": _reader}


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
    pipeline = data.pipeline(tasks.TASKS[recipe.task])
    done = saver.restore()
    _agree(strategy, done)
    if timer.reached or done >= recipe.epochs:
        timer.clock = Clock(saver.recorded)  # nothing is left: this process is no part of the run
        return
    callbacks = [timer, saver]  # order matters: row, then save, then show
    if saver.folder.writer:
        callbacks.append(progress.Line(timer, recipe.epochs))
    if saver.folder.writer and (run.tensorboard or run.profile_steps):
        logs = str(saver.folder.path / "tensorboard")
        profiled = run.profile_steps or 0
        callbacks.append(
            tf.keras.callbacks.TensorBoard(logs, profile_batch=profiled, write_graph=False)
        )
    try:
        with timer.clock.part("train"):
            model.fit(
                pipeline.train(splits, recipe, strategy, run.data_format, done),
                initial_epoch=done,
                epochs=recipe.epochs,
                steps_per_epoch=pipeline.steps(splits, recipe),
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

    @tf.function
    def found():
        own = strategy.run(lambda: tf.constant([done]))
        return strategy.gather(own, axis=0)

    every = found().numpy()
    if every.min() != every.max():
        raise Refusal(
            f"--output_dir: workers found checkpoints of epochs {sorted(set(every.tolist()))}; "
            "it should be one folder that all workers see"
        )
