"""Synthetic images with a task's shapes and counts: learnable, the same for a seed.

Each class is one smooth pattern; an example is its class's pattern, dimmed at random, in noise. For
trying hardware and pipelines without the data: a run on them is labelled and never an entry.
"""

import numpy as np

from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.tasks import Task


def load(task: Task, seed: int) -> Splits:
    """Splits with the task's counts of examples and classes, of images of its size."""
    rng = np.random.default_rng([seed, 2017])
    coarse = rng.uniform(-1, 1, (task.classes, 4, 4, 3))
    fine = np.ones((1, task.image_size // 4, task.image_size // 4, 1))
    patterns = np.kron(coarse, fine).astype(np.float32)  # (classes, height, width, 3)
    return Splits(
        _split(rng, patterns, task.train_examples), _split(rng, patterns, task.test_examples)
    )


def _split(rng, patterns, count) -> Split:
    labels = rng.permutation(np.arange(count) % len(patterns))
    images = np.empty((count, *patterns.shape[1:]), np.uint8)
    for start in range(0, count, 1000):  # a slice at a time: floats of all 50,000 would be 600 MB
        part = labels[start : start + 1000]
        contrast = rng.uniform(10, 50, (len(part), 1, 1, 1)).astype(np.float32)
        noise = rng.standard_normal((len(part), *patterns.shape[1:]), np.float32) * 40
        images[start : start + 1000] = np.clip(128 + contrast * patterns[part] + noise, 0, 255)
    return in_memory(images, labels.astype(np.int64))
