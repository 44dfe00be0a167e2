"""Synthetic images with a task's shapes and counts: learnable, and deterministic for a seed.

They are for tests of hardware and pipelines without the data; a run on them is labelled and can't
become an entry. Each class has one smooth pattern. An example is its class's pattern with random
contrast, plus noise. A data set of a task with JPEGs repeats `POOL` different images.
"""

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

# "decoded": images of the test's size, kept on devices; "jpeg": read and decoded like real ones.
POOL = {"decoded": 1000, "jpeg": 200}  # by the recipe's `synthetic`; a JPEG takes 15 ms
JPEG_SHAPE = (400, 472)  # height and width, ImageNet's means
_QUALITY = 85  # JPEG quality that gives 110 KB an image, ImageNet's mean


def load(recipe: Recipe, pool: int = 0) -> Splits:
    """Generates splits with the numbers of examples and classes of the recipe's task."""
    task = recipe.task_row
    if recipe.synthetic == "jpeg" and not task.jpegs:
        refuse("synthetic", "jpeg", f"{task.name} has no JPEGs; decoded would run")
    sizes = {*recipe.sizes, recipe.test_side}
    if recipe.synthetic == "decoded" and task.jpegs and len(sizes) > 1:
        several = ",".join(map(str, sizes))
        refuse("synthetic", "decoded", f"takes one size of images, not {several}; jpeg would run")
    rng = np.random.default_rng([recipe.seed, 2017])
    side = task.image_size if recipe.data.crop_size else recipe.test_side
    shape = JPEG_SHAPE if recipe.synthetic == "jpeg" else (side, side)
    patterns = rng.uniform(-1, 1, (task.classes, 4, 4, 3)).astype(np.float32)

    def split(count: int) -> Split:
        different = min(count, pool or (POOL[str(recipe.synthetic)] if task.jpegs else count))
        labels = rng.permutation(np.arange(different) % task.classes).astype(np.int64)
        images, labels = _draw_images(rng, patterns, labels, *shape), np.resize(labels, count)
        if recipe.synthetic == "decoded":
            return in_memory(images, labels)
        with tf.device("CPU:0"):
            jpegs = tf.stack([tf.io.encode_jpeg(image, quality=_QUALITY) for image in images])
        return Split(labels, jpegs=lambda indices: tf.gather(jpegs, indices % different))

    return Splits(split(task.train_examples), split(task.test_examples))


def _draw_images(
    rng: np.random.Generator, coarse: np.ndarray, labels: np.ndarray, height: int, width: int
) -> np.ndarray:
    """Draws images uint8 (labels, height, width, 3) from 4x4 patterns, one for each class."""
    fine = np.ones((1, -(-height // 4), -(-width // 4), 1), np.float32)
    images = np.empty((len(labels), height, width, 3), np.uint8)
    step = max(1, 1000 * 32 * 32 // (height * width))  # images whose floats take 12 MB
    for start in range(0, len(labels), step):
        part = labels[start : start + step]
        pattern = np.kron(coarse[part], fine)[:, :height, :width]
        contrast = rng.uniform(10, 50, (len(part), 1, 1, 1)).astype(np.float32)
        noise = rng.standard_normal(pattern.shape, np.float32) * 40
        images[start : start + step] = np.clip(128 + contrast * pattern + noise, 0, 255)
    return images
