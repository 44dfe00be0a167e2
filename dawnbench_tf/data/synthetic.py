"""Data made up in the shape and number of a task's real ones: learnable, the same for a seed.

Of images, each class is one smooth pattern; an example is its class's pattern, dimmed at random,
in noise. Questions are the generated ones of `qa_mini`. For trying hardware and pipelines without
the data: a run on it is labelled and never an entry.
"""

import numpy as np

from dawnbench_tf.data import qa_mini, reading
from dawnbench_tf.data.splits import Splits


def make(task, seed: int) -> Splits | reading.Reading:
    """A stand-in of the task's size and kind."""
    if task.kind == "images":
        return images(task, seed)
    counts = (-(-n // qa_mini.QUESTIONS) for n in (task.train_examples, task.test_examples))
    return qa_mini.make(*counts, seed, most=(task.train_examples, task.test_examples))


def images(task, seed: int, side: int = 32) -> Splits:
    """Synthetic Splits with the task's counts of examples and classes, side x side x 3."""
    rng = np.random.default_rng([seed, 2017])
    coarse = rng.uniform(-1, 1, (task.classes, 4, 4, 3))
    patterns = np.kron(coarse, np.ones((1, side // 4, side // 4, 1))).astype(np.float32)
    return Splits(
        *_examples(rng, patterns, task.train_examples),
        *_examples(rng, patterns, task.test_examples),
    )


def _examples(rng, patterns, count):
    labels = rng.permutation(np.arange(count) % len(patterns))
    images = np.empty((count, *patterns.shape[1:]), np.uint8)
    for start in range(0, count, 1000):  # a slice at a time: floats of all 50,000 would be 600 MB
        part = labels[start : start + 1000]
        contrast = rng.uniform(10, 50, (len(part), 1, 1, 1)).astype(np.float32)
        noise = rng.standard_normal((len(part), *patterns.shape[1:]), np.float32) * 40
        images[start : start + 1000] = np.clip(128 + contrast * patterns[part] + noise, 0, 255)
    return images, labels.astype(np.int64)
