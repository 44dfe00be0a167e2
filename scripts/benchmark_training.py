"""Compares training speed with PyTorch: same networks, batches and machine, in turn.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/benchmark_training.py [ROUNDS]

This package: the speed test of `dawnbench train --max_steps`, which is `fit` with augmentation in
its steps. PyTorch: bare steps in channels_last on one batch in memory, eager or compiled, whichever
is faster; on a GPU ours too, with or without XLA. Each run is a process of its own.
"""

import statistics
import time

import side_by_side

from dawnbench_tf import machine

ON_GPU = bool(machine.gpus())
NETWORKS = {  # recipe, model, batch size, timed steps of this package, timed steps of PyTorch
    "resnet20": ("cifar10/resnet20_tf", "resnet20_v1_proj", 128, 60, 60),
    "airbench94": ("cifar10/airbench94", "airbench94", 1024, 8, 4),
    "resnet50": ("imagenet/resnet50_v1_5", "resnet50_v1_5", 256 if ON_GPU else 32, 10, 4),
}
CASES = [f"{name} {form}" for name in NETWORKS for form in ("float32", "mixed_bfloat16")]


def ours(case: str) -> float:
    """Returns the examples per second of the recipe's `fit` after its first steps."""
    with machine.importing():
        from dawnbench_tf import recipes
        from dawnbench_tf.recipe.options import RunOptions
        from dawnbench_tf.training import speed_test

    name, precision = case.split()
    row, network, batch, steps, _ = NETWORKS[name]
    changes = {"precision": precision, "model": network, "batch_size": batch}
    recipe = recipes.get(row, synthetic="decoded", **changes)
    compiled = (False, True) if ON_GPU else (False,)
    runs = [RunOptions(max_steps=3 * steps, peak_tflops=1.0, jit_compile=jit) for jit in compiled]
    return max(batch / speed_test.measure(recipe, run).phases[0].percentile(50) for run in runs)


def theirs(case: str) -> float:
    """Returns the examples per second of PyTorch: median of three rounds after a warm-up."""
    import pytorch_networks
    import torch

    network, precision = case.split()
    *_, batch, _, steps = NETWORKS[network]
    side, classes = (224, 1000) if network == "resnet50" else (32, 10)
    device = pytorch_networks.DEVICE
    if (device == "cuda") != ON_GPU:
        raise SystemExit(
            f"this machine has {machine.gpus() or 'no GPU'}; PyTorch uses its {device}"
        )
    images = torch.randn(batch, 3, side, side, device=device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (batch,), device=device)
    wait = torch.cuda.synchronize if ON_GPU else lambda: None  # a GPU works on after a call
    rates = []
    for compiled in (False, True):
        step = pytorch_networks.step(network, precision, compiled)
        for _ in range(3):
            step(images, labels)
        rounds = []
        for _ in range(3):
            wait()
            start = time.perf_counter()
            for _ in range(steps):
                step(images, labels)
            wait()
            rounds.append(batch * steps / (time.perf_counter() - start))
        rates.append(statistics.median(rounds))
    return max(rates)


if __name__ == "__main__":
    side_by_side.main(__file__, {"ours": ours, "PyTorch": theirs}, CASES, "images/s")
