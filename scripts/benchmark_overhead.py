"""Measures the overhead of the harness: `fit` with pipeline and callbacks against bare steps.

    .venv/bin/python scripts/benchmark_overhead.py [RECIPE [EPOCHS [STEPS]]]

Times EPOCHS of STEPS steps of each in turn, in one process, without evaluation. Bare steps: the
compiled training function on one batch in memory.
"""

import math
import shutil
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

import side_by_side

from dawnbench_tf import machine, run_folder
from dawnbench_tf.clock import beating
from dawnbench_tf.machine import Machine


def main(name: str = "cifar10/resnet20_tf", epochs: str = "1", steps: str = "100", rounds: int = 7):
    """Prints the ratio of wall times, harness / bare: median and range over rounds."""
    with machine.importing():
        from dawnbench_tf import recipes, tta
        from dawnbench_tf.data import dataset
        from dawnbench_tf.recipe.options import RunOptions
        from dawnbench_tf.training import checkpoints, fitting, progress

    changes = {"schedule": "constant", "schedule_epochs": (), "schedule_factors": ()}
    recipe = recipes.get(name, epochs=1000, synthetic="decoded", **changes)
    epochs, steps = int(epochs), int(steps)
    data = dataset.open(recipe)
    at_once = math.gcd(steps, RunOptions().steps_per_execution)
    model, other = (fitting.build(data, at_once) for _ in range(2))
    batches = data.training_batches()
    bare_steps = _bare(other, next(iter(batches)), data.on_devices())
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        timer = tta.TimeToAccuracy(-1, "loss", log=Path(folder) / "rows.tsv")
        home = run_folder.RunFolder(Path(folder), recipe)
        here = Machine("", "", {})
        line = progress.Line(timer, epochs)
        callbacks = [timer, checkpoints.Saver(home, model, timer, here), line]
        beats = partial(home.write_clock, timer.clock), line.tick

        def harness():
            with beating(*beats):
                model.fit(
                    batches, epochs=epochs, steps_per_epoch=steps, verbose=0, callbacks=callbacks
                )

        for round_ in range(rounds + 1):
            bare = partial(bare_steps, epochs * steps // at_once)
            seconds = [side_by_side.seconds(run) for run in (harness, bare)]
            for _, old in run_folder.checkpoints(home.path):  # the next round reuses their names
                shutil.rmtree(old)
            if round_:  # the first round compiles
                ratios.append(seconds[0] / seconds[1])
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    ratio = statistics.median(ratios)
    print(f"{name}: harness / bare {ratio:.3f} ({spread}), {epochs} x {steps} steps")


def _bare(model, batch, prepare):
    """Returns run(calls), which calls the compiled training function on one batch in memory."""
    import tensorflow as tf

    if prepare:
        batch = prepare(*batch)
        del model.train_step  # it would prepare the batch again
    step = model.make_train_function()
    batches = iter(tf.data.Dataset.from_tensors(batch).repeat())

    def run(calls):
        for _ in range(calls):
            step(batches)["loss"].numpy()

    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
