"""Trains digits for two epochs under a strategy and prints the loss of each step, as JSON.

Run as a process of its own, since a process can make its devices and its cluster only once:

    python tests/training/loss_curve.py --strategy=mirrored --logical_cpus=2 --output_dir=DIR
"""

import json
from pathlib import Path

from dawnbench_tf import flags, recipes, tensorflow_env, train
from dawnbench_tf.recipe import Recipe


def main(_):
    options = flags.read(train.Options)
    recipe, run = recipes.get(options.recipe, **flags.replacements(Recipe)), options.run
    with tensorflow_env.importing():
        from dawnbench_tf import tta
        from dawnbench_tf.data import inputs
        from dawnbench_tf.training import checkpoints, claims, evaluation, fitting, strategies

    class Recorder(tta.TimeToAccuracy):
        losses = []

        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            before = sum(self.losses[len(self.losses) - batch :]) if batch else 0.0
            # Keras logs the mean of the epoch so far.
            self.losses.append(self.loss * (batch + 1) - before)

    strategy = strategies.build(run)
    strategies.check(strategy, run, recipe)
    placement, task = inputs.Placement(strategy, run.data_format), recipe.task_row
    splits, of_task = inputs.load(recipe), inputs.of(task)
    model = fitting.build(recipe, splits, placement, run.steps_per_execution)
    evaluate = evaluation.Evaluator(recipe, model, splits, placement)
    timer = Recorder(101, task.metric, evaluate=evaluate)
    chief = strategies.is_chief(strategy)
    claims.claim(Path(run.output_dir), recipe, chief)
    folder = checkpoints.Folder(Path(run.output_dir), recipe, chief)
    saver = checkpoints.Saver(folder, model, timer)
    newest = folder.newest()
    epochs_done = saver.restore(newest)
    with fitting.refusing(recipe, folder.path):
        model.fit(
            of_task.train(splits, recipe, placement, epochs_done),
            initial_epoch=epochs_done,
            epochs=recipe.epochs,
            steps_per_epoch=of_task.steps(splits, recipe),
            verbose=0,
            callbacks=[timer, saver],
        )
    accuracies = [row[task.metric] for row in timer.rows]
    print(json.dumps({"losses": timer.losses, "accuracies": accuracies}))


if __name__ == "__main__":
    flags.run(main, train.Options, replaces=Recipe)
