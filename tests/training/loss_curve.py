"""Trains digits for two epochs under a strategy and prints the loss of each step, as JSON.

Run as a process of its own, since a process can make its devices and its cluster only once:

    python tests/training/loss_curve.py --strategy=mirrored --logical_cpus=2 --output_dir=DIR
"""

import json

from dawnbench_tf import flags, machine, recipes, train
from dawnbench_tf.recipe import Recipe


def main(options, _):
    with machine.importing():
        import tensorflow as tf

    class Losses(tf.keras.callbacks.Callback):
        values = []

        def on_train_batch_end(self, batch, logs):
            before = sum(self.values[len(self.values) - batch :]) if batch else 0.0
            # Keras logs the mean of the epoch so far.
            self.values.append(logs["loss"] * (batch + 1) - before)

    changes = {"threshold": 100.0, **flags.replacements(Recipe)}
    recipe = recipes.get(options.recipe, **changes)
    run = train.train(recipe, options.run, callbacks=[Losses()])
    accuracies = [row["top1Accuracy"] for row in run.rows]
    print(json.dumps({"losses": Losses.values, "accuracies": accuracies}))


if __name__ == "__main__":
    flags.run(main, train.Options, replaces=Recipe)
