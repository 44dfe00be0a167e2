"""Measures memory and time of data sets of ImageNet's size: index, epoch, test, checksums.

    .venv/bin/python scripts/benchmark_shards.py [IMAGES]

Index: 1,281,167 images, once in 1,024 shards and once as files of a folder tree (empty files in
memory). Epoch: IMAGES (200,000) generated images of 96 x 96 in batches of 256. Test: 50,000 images
(the size of the test set), one at a time as `infer` reads them. Checksums: the training
pipeline over JPEGs of ImageNet's size (110 KB), in turn with and without checking checksums, in
images/s (median and range).
"""

import collections
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dawnbench_tf import machine

IMAGENET, SHARDS, CLASSES, BYTES = 1_281_167, 1_024, 1_000, 110_000
ROUNDS, LARGE = 5, 2_048  # of the comparison of checksums: rounds; number of JPEGs


def main(images: int) -> None:
    """Prints a line for each part: seconds, and growth of the process's memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for measure in ("shards", "tree"):
            _in_own_process(measure, folder)
    with tempfile.TemporaryDirectory() as folder:
        _in_own_process("epoch", folder, images)
        _in_own_process("test", folder)
    with tempfile.TemporaryDirectory() as folder:
        _in_own_process("checksums", folder)


def _in_own_process(*arguments):
    subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True)


def shards(folder: str) -> None:
    """Measures reading the index of shards; the shards are sparse files."""
    from dawnbench_tf.data.image_files import jpeg_index, shards

    root = Path(folder)
    names = [f"train-{number:05}-of-{SHARDS:05}" for number in range(SHARDS)]
    zeros = np.zeros(IMAGENET, np.int32)
    positions, shard_numbers = np.divmod(np.arange(IMAGENET), SHARDS)
    for name in names:
        (root / name).touch()
        os.truncate(root / name, (positions[-1] + 1) * BYTES)
    written = jpeg_index.JpegIndex(
        root,
        np.array(names, np.bytes_),
        shard_numbers.astype(np.int32),
        positions * BYTES,
        zeros + BYTES,
        shard_numbers,
        zeros,
        zeros.astype(np.int64),
    )
    shards.write_index(written, "train")
    _measure("the index of 1,281,167 images in shards", lambda: shards.read(root, "train"))


def tree(folder: str) -> None:
    """Measures indexing files in one folder per class."""
    from dawnbench_tf.data.image_files import trees

    root = Path(folder, "tree")
    names = [f"n{number:08}" for number in range(CLASSES)]
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for index in range(IMAGENET // CLASSES + (number < IMAGENET % CLASSES)):
            os.mknod(root / name / f"{name}_{index}.JPEG")
    _measure("the index of as many files", lambda: trees.read(root, names))


def epoch(folder: str, images: str) -> None:
    """Measures reading all batches of an epoch."""
    from dawnbench_tf.data import dataset
    from dawnbench_tf.data.images.splits import Splits

    _write(folder, int(images))
    recipe, split = _read(folder)
    data = dataset.from_splits(recipe, Splits(split, split))
    steps, batches = data.steps_per_epoch, iter(data.training_batches())
    _measure(
        f"an epoch over {len(split.labels):,} images",
        lambda: collections.deque(itertools.islice(batches, steps), 1),
    )


def test(folder: str) -> None:
    """Measures reading 50,000 of the images that `epoch` wrote, one at a time."""
    from dawnbench_tf.data import dataset
    from dawnbench_tf.data.images.splits import Splits

    recipe, split = _read(folder)
    alone = dataset.from_splits(recipe, Splits(split, split)).examples()[:50_000]
    _measure(f"{len(alone):,} images one at a time", lambda: collections.deque(alone, 1))


def checksums(folder: str) -> None:
    """Measures training batches of large JPEGs with and without checking checksums."""
    from dawnbench_tf.data.image_files import jpeg_index, shards

    _write(folder, LARGE, (330, 500), quality=80)
    index = shards.read(Path(folder), "train")
    without = index._replace(checksums=np.full_like(index.checksums, jpeg_index.UNKNOWN))
    sides = {"with checksums": index, "without": without}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rates[name].append(_rate(jpeg_index.split(side)))
    size = index.lengths.mean() / 1000
    for name, values in rates.items():
        spread = f"{min(values):.0f} to {max(values):.0f}"
        middle = statistics.median(values)
        print(f"JPEGs of {size:.0f} KB {name}: {middle:.0f} images/s ({spread})")


def _rate(split):
    """Returns the images/s of an epoch's batches without the first batch."""
    from dawnbench_tf import recipes
    from dawnbench_tf.data import dataset
    from dawnbench_tf.data.images.splits import Splits

    recipe = recipes.get("imagenet/resnet50_v1_5", batch_size=64)
    data = dataset.from_splits(recipe, Splits(split, split))
    batches = iter(data.training_batches())
    next(batches)
    steps, start = data.steps_per_epoch - 1, time.perf_counter()
    collections.deque(itertools.islice(batches, steps), 1)
    return steps * recipe.batch_size / (time.perf_counter() - start)


def _write(folder, count, sides=(96, 96), quality=95):
    """Writes shards that repeat 100 different images."""
    import tensorflow as tf

    from dawnbench_tf.data.image_files import shard_writer

    parts = 100
    pixels = np.random.default_rng(0).integers(0, 256, (100, *sides, 3), np.uint8)
    examples = [
        shard_writer.make_record(
            tf.io.encode_jpeg(image, quality=quality).numpy(), sides[::-1], number, ""
        )
        for number, image in enumerate(pixels)
    ]
    for number in range(parts):
        path = f"{folder}/train-{number:05}-of-{parts:05}"
        with tf.io.TFRecordWriter(path) as writer:
            for index in range(-(-count // parts)):
                writer.write(examples[index % 100])


def _read(folder):
    from dawnbench_tf import recipes
    from dawnbench_tf.data.image_files import jpeg_index, shards

    recipe = recipes.get("imagenet/resnet50_v1_5", image_sizes=(96,))
    return recipe, jpeg_index.split(shards.read(Path(folder), "train"))


def _measure(title, call):
    before, start = _resident(), time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{title}: {seconds:.1f} s, {_resident() - before:.0f} MB more; process {peak:,.0f} MB")
    del kept


def _resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    with machine.importing():
        import dawnbench_tf.data.dataset  # noqa: F401
    if sys.argv[2:]:
        parts = {part.__name__: part for part in (shards, tree, epoch, test, checksums)}
        parts[sys.argv[1]](*sys.argv[2:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 200_000)
