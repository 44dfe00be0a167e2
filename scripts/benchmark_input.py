"""Compares JPEG input pipelines in images/s: this package, PyTorch's DataLoader, bare decoding.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    JPEGS=DIR .venv/bin/python scripts/benchmark_input.py [ROUNDS]

DIR contains JPEGs at any depth, which are read repeatedly. This package: the input pipeline of
`train`, random crops of 224 and flips in batches of 256. PyTorch: torchvision's RandomResizedCrop
and flip, one worker per core. Bare decoding: decode_and_crop_jpeg alone, with the windows drawn and
the bytes read beforehand, one thread per core.
"""

import itertools
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import side_by_side

from dawnbench_tf import machine

BATCH, WARM, TIMED = 256, 4, 16  # batch size; warm-up batches; timed batches
SIZE, SMALLEST = 224, 0.08


def ours(case: str) -> float:
    """Returns the images/s of this package's training batches."""
    with machine.importing():
        import numpy as np

        from dawnbench_tf import recipes
        from dawnbench_tf.data import dataset
        from dawnbench_tf.data.image_files import jpeg_index
        from dawnbench_tf.data.images.splits import Splits

    paths = _paths() * 100
    index = jpeg_index.index_files(Path("/"), [path[1:] for path in paths], np.zeros(len(paths)))
    split = jpeg_index.split(index)
    recipe = recipes.get("imagenet/resnet50_v1_5", batch_size=BATCH)
    return _rate(iter(dataset.from_splits(recipe, Splits(split, split)).training_batches()))


def pytorch(case: str) -> float:
    """Returns the images/s of PyTorch's DataLoader."""
    import torch
    from PIL import Image
    from torchvision import transforms

    augment = transforms.Compose(
        [
            transforms.RandomResizedCrop(SIZE, (SMALLEST, 1)),
            transforms.RandomHorizontalFlip(),
            transforms.PILToTensor(),
        ]
    )

    class Images(torch.utils.data.Dataset):
        paths = _paths() * 100

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            with Image.open(self.paths[index]) as image:
                return augment(image.convert("RGB"))

    loader = torch.utils.data.DataLoader(Images(), BATCH, True, num_workers=machine.cpus())
    return _rate(iter(loader))


def decoding(case: str) -> float:
    """Returns the images/s of decode_and_crop_jpeg, with windows drawn beforehand."""
    with machine.importing():
        import tensorflow as tf

        from dawnbench_tf.data.images import jpegs

    window = tf.function(lambda jpeg, seed: jpegs.random_window(jpeg, [seed, 0], SMALLEST))
    contents = [tf.constant(Path(path).read_bytes()) for path in _paths()]
    pairs = [(jpeg, window(jpeg, tf.constant(seed))) for seed, jpeg in enumerate(contents)]

    def decode(pair):
        tf.io.decode_and_crop_jpeg(*pair, channels=3, dct_method="INTEGER_ACCURATE")

    count = BATCH * TIMED
    with tf.device("CPU:0"), ThreadPoolExecutor(machine.cpus()) as pool:
        start = time.perf_counter()
        list(pool.map(decode, itertools.islice(itertools.cycle(pairs), count), chunksize=64))
    return count / (time.perf_counter() - start)


def _rate(batches):
    for _ in range(WARM):
        next(batches)
    return BATCH * TIMED / side_by_side.seconds(lambda: [next(batches) for _ in range(TIMED)])


def _paths():
    folder = Path(os.environ.get("JPEGS", "")).resolve()
    paths = sorted(str(path) for path in folder.rglob("*.[jJ][pP]*[gG]"))
    if not paths or "JPEGS" not in os.environ:
        raise SystemExit("JPEGS=: should be a folder of JPEGs")
    return paths


SIDES = {"ours": ours, "PyTorch": pytorch, "decoding": decoding}

if __name__ == "__main__":
    cases = [f"crops of {SIZE}"]
    if len(sys.argv) == 3:
        side_by_side.main(__file__, SIDES, cases, "")
        raise SystemExit
    for other in ("PyTorch", "decoding"):
        pair = {name: SIDES[name] for name in ("ours", other)}
        side_by_side.main(__file__, pair, cases, "images/s")
