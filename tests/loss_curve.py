"""Trains digits for two epochs under a strategy and prints the loss of each step, as JSON.

Run as a process of its own, since a process can make its devices and its cluster only once:

    python tests/loss_curve.py --strategy=mirrored --logical_cpus=2 --output_dir=DIR
"""

import json
import os
from pathlib import Path

from absl import app

from dawnbench_tf import options, tasks


def main(_):
    recipe, run = options.read()
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    from dawnbench_tf import checkpoints, data, evaluation, fitting, strategies, tta

    class Recorder(tta.TimeToAccuracy):
        losses = []

        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            before = sum(self.losses[len(self.losses) - batch :]) if batch else 0.0
            # Keras logs the mean of the epoch so far.
            self.losses.append(self.loss * (batch + 1) - before)

    task = tasks.TASKS[recipe.task]
    strategy = strategies.build(run, recipe)
    splits = data.load(task, recipe, run)
    model = fitting.build(task, recipe, run, strategy, splits)
    evaluate = evaluation.Evaluator(task, recipe, model, splits, strategy, run.data_format)
    timer = Recorder(101, task.metric, evaluate=evaluate)
    writer = strategies.is_chief(strategy)
    folder = checkpoints.claim(Path(run.output_dir), recipe, writer)
    saver = checkpoints.Saver(folder, model, timer)
    fitting.fit(model, splits, recipe, run, strategy, timer, saver)
    accuracies = [row[task.metric] for row in timer.rows]
    print(json.dumps({"losses": timer.losses, "accuracies": accuracies}))


if __name__ == "__main__":
    options.define()
    app.run(main, flags_parser=options.parse)
