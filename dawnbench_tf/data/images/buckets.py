"""TFRecord shards in a bucket (gs://), which training reads sequentially.

A seek in a bucket costs as much as reading a hundred images. So each epoch shuffles the files, and
then blocks of `BUFFER` images; each worker reads its own files. The index that `prepare` writes has
to lie beside the shards: it has the labels, and the test images are read through it.
"""

import os
from collections.abc import Callable

import tensorflow as tf

from dawnbench_tf.data.images import jpeg_index, shards
from dawnbench_tf.data.images.jpeg_index import JpegIndex
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.refusals import one_line, refuse

BUFFER = 10_000  # images that are shuffled together: 1.1 GB of ImageNet's JPEGs
FILES = 16  # files that are read in parallel, interleaved


def find(url: str, flag: str = "data_dir") -> Splits:
    """Opens a data set that `prepare` made, in a bucket.

    Args:
      url: the bucket's folder, e.g. gs://bucket/imagenet.
      flag: the flag that named it, for errors.

    Raises:
      Refusal: an index is missing or can't be read.
    """
    train, test = (_index(url, split, flag) for split in ("train", "validation"))
    in_sequence = jpeg_index.split(train)._replace(in_sequence=_in_sequence(train))
    source = f"TFRecord shards, in the order of files and {BUFFER:,} images at a time"
    return Splits(in_sequence, jpeg_index.split(test), Origin(source))


def _index(url: str, split: str, flag: str) -> JpegIndex:
    path = f"{url.rstrip('/')}/{shards.INDEX.format(split=split)}"
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            index, _ = shards.unpack(url.rstrip("/"), file.read(shards.LARGEST_INDEX))
    except (tf.errors.OpError, ValueError) as error:
        reason = one_line(getattr(error, "message", None) or error, 80)
        refuse(
            flag, url, f"{os.path.basename(path)} can't be read there ({reason}); prepare writes it"
        )
    return index


def _in_sequence(index: JpegIndex) -> Callable[..., tf.data.Dataset]:
    """Returns a function (seed, worker, workers) -> labels and JPEGs in an epoch's order."""
    paths = tf.constant([index.full_path(name) for name in index.paths])

    def examples(seed: tf.Tensor, worker: int, workers: int) -> tf.data.Dataset:
        order = tf.random.experimental.stateless_shuffle(tf.range(len(paths)), seed)
        files = tf.data.Dataset.from_tensor_slices(tf.gather(paths, order[worker::workers]))
        records = files.interleave(
            tf.data.TFRecordDataset, FILES, num_parallel_calls=FILES, deterministic=True
        )

        # Dataset.shuffle takes no seed that is a tensor.
        def shuffled(number: tf.Tensor, block: tf.Tensor) -> tf.Tensor:
            block_seed = tf.random.experimental.stateless_fold_in(seed, number)
            return tf.random.experimental.stateless_shuffle(block, block_seed)

        blocks = records.batch(BUFFER).enumerate().map(shuffled)
        return blocks.unbatch().map(shards.parse)

    return examples
