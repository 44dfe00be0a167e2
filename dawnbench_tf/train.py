"""Train a model until it is good enough; time it; leave a DAWNBench entry.

    python -m dawnbench_tf.train     # embedded digits to 98 %, no download
    python -m dawnbench_tf.train --recipe=cifar10/resnet56_tf --data_dir=DIR --strategy=mirrored

Exit status: 0 the threshold was reached, 3 it was not, 1 bad input or environment.
"""

import os
import shlex
import signal
import sys
import time
from pathlib import Path

from absl import app, flags, logging

from dawnbench_tf import options, recipes, run_entry, tasks
from dawnbench_tf.clock import Clock
from dawnbench_tf.settings import Refusal

SECONDS_TO_UNWIND = 3  # of an interrupted run, at most; saving its clock takes 0.02


def main(_):
    if flags.FLAGS.list_recipes:
        print(recipes.table())
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    command = ["python", "-m", "dawnbench_tf.train", *sys.argv[1:]]
    try:
        recipe, run = options.read()
        folder = run.output_dir
        if not folder:
            folder = f"runs/{recipe.name.replace('/', '-')}-{time.strftime('%Y%m%d-%H%M%S')}"
            command.append(f"--output_dir={folder}")
        return train(recipe, run, Path(folder))
    except Refusal as refusal:
        options.exit_with(str(refusal))
    except KeyboardInterrupt as interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        options.exit_with(
            f"interrupted; to continue: {shlex.join(command)}", 128 + interrupt.args[0]
        )


def _interrupt(number, frame):
    """Ends the run; asks again, should a destructor of TensorFlow swallow the exception."""
    signal.signal(signal.SIGALRM, lambda *_: _interrupt(number, frame))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_UNWIND)
    raise KeyboardInterrupt(number)


def train(recipe, run, output: Path) -> int:
    """Trains `recipe` the way `run` says, in folder `output`. Returns the exit status."""
    clock = Clock()  # from here every second belongs to one named part
    with clock.part("import"):  # recorded, not counted
        # tf-keras: Keras 3's fit fails on several workers and knows no TPU strategy.
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from dawnbench_tf import checkpoints, data, evaluation, fitting, hardware, plots
        from dawnbench_tf import strategies, tta  # isort: skip
        from dawnbench_tf.data import vocabulary

        logging.set_verbosity(logging.WARNING)  # TensorFlow's import has raised it to INFO
    task = tasks.TASKS[recipe.task]
    with clock.part("build"):
        strategy = strategies.build(run, recipe)  # before anything else touches a device
    folder = checkpoints.claim(output, recipe, writer=strategies.is_chief(strategy))
    with clock.part("load"):
        splits = data.load(task, recipe, run)
    if folder.writer and task.kind == "questions":
        vocabulary.save(splits.vocabulary, output)  # what `dawnbench_tf.answer` needs
    with clock.part("build"):
        model = fitting.build(task, recipe, run, strategy, splits)

    evaluate = evaluation.Evaluator(task, recipe, model, splits, strategy, run.data_format)
    timer = tta.TimeToAccuracy(  # evaluates off the clock, stops at the threshold
        task.threshold if recipe.threshold is None else recipe.threshold,
        task.metric,
        evaluate=evaluate,
        every=recipe.eval_every,
        clock=clock,
        log=folder.rows if folder.writer else None,
        step_examples=recipe.batch_size,
        cost_per_hour=run.cost_per_hour,
    )
    saver = checkpoints.Saver(folder, model, timer)  # weights, optimizer, rows, clock: one rename
    fitting.fit(model, splits, recipe, run, strategy, timer, saver)
    if not folder.writer:
        return 0 if timer.reached else 3

    entry = run_entry.training(task, recipe, run, timer, hardware.described(strategy))
    path, reasons = run_entry.write(output, entry)
    evaluate.save(output)
    plots.accuracy_over_time(entry, output / "accuracy.png")
    print(run_entry.summary(entry, timer))
    print(run_entry.outcome(task, path, reasons))
    return 0 if timer.reached else 3


if __name__ == "__main__":
    options.define()
    app.run(main, flags_parser=options.parse)
