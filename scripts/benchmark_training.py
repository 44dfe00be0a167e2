"""Training speed of CIFAR ResNet-20 against PyTorch: the same network, batch and machine, in turn.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/benchmark_training.py

Ours is what a user runs: `fit` with every callback, crops and flips in the pipeline. PyTorch's is
its bare step in channels_last on one batch made beforehand. Each run is a process of its own.
"""

import statistics
import tempfile
from pathlib import Path

import side_by_side

from dawnbench_tf import tensorflow_env

BATCH, STEPS = 128, 60


def ours(precision: str) -> float:
    """Examples per second of the recipe's `fit` in the steps after the first ones."""
    with tensorflow_env.importing():
        import tensorflow as tf

        from dawnbench_tf import recipes, tta
        from dawnbench_tf.data import inputs
        from dawnbench_tf.options import RunOptions
        from dawnbench_tf.training import checkpoints, fitting, progress

    changes = {"precision": precision, "model": "resnet20_v1_proj", "synthetic": True}
    recipe = recipes.get("cifar10/resnet20_tf", **changes)
    splits, of_task = inputs.load(recipe), inputs.of(recipe.task_row)
    placement = inputs.Placement(tf.distribute.get_strategy())
    model = fitting.build(recipe, splits, placement, RunOptions().steps_per_execution)
    timer = tta.TimeToAccuracy(101, "loss", step_examples=BATCH)
    with tempfile.TemporaryDirectory() as folder:
        saver = checkpoints.Saver(checkpoints.Folder(Path(folder), recipe), model, timer)
        batches = of_task.train(splits, recipe, placement, 0)
        callbacks = [timer, saver, progress.Line(timer, 3, STEPS)]
        model.fit(batches, epochs=3, steps_per_epoch=STEPS, verbose=0, callbacks=callbacks)
    return timer.examples_per_second


def theirs(precision: str) -> float:
    """Examples per second of PyTorch's step, the median of three rounds after a warm-up."""
    import time

    import torch
    from torch import nn

    def unit(inputs, filters, stride):
        def conv(channels, size, step):
            layer = nn.Conv2d(channels, filters, size, step, size // 2, bias=False)
            return nn.Sequential(layer, nn.BatchNorm2d(filters))

        branch = nn.Sequential(conv(inputs, 3, stride), nn.ReLU(), conv(filters, 3, 1))
        return branch, conv(inputs, 1, stride) if stride > 1 else nn.Identity()

    class ResNet20(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))
            widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2
            widths += [(32, 64, 2)] + [(64, 64, 1)] * 2
            self.units = nn.ModuleList(nn.ModuleList(unit(*width)) for width in widths)
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            x = torch.relu(self.stem(x))
            for branch, shortcut in self.units:
                x = torch.relu(branch(x) + shortcut(x))
            return self.head(x.mean((2, 3)))

    model = ResNet20().to(memory_format=torch.channels_last)
    if sum(p.numel() for p in model.parameters()) != 272_474:
        raise SystemExit("the two networks are not the same")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    images = torch.randn(BATCH, 3, 32, 32).to(memory_format=torch.channels_last)
    labels, loss = torch.randint(0, 10, (BATCH,)), nn.CrossEntropyLoss()

    def rate(steps):
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision != "float32"):
                value = loss(model(images), labels)
            value.backward()
            optimizer.step()
        return BATCH * steps / (time.perf_counter() - start)

    rate(10)
    return statistics.median(rate(STEPS) for _ in range(3))


if __name__ == "__main__":
    sides = {"ours": ours, "PyTorch": theirs}
    side_by_side.main(__file__, sides, ("float32", "mixed_bfloat16"), "images/s")
