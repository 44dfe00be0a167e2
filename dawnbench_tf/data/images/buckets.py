"""TFRecord shards in a bucket, such as gs://: training reads them file after file.

A seek there costs what reading a hundred images does. So an epoch's order is that of the files,
drawn anew, and of `BUFFER` images at a time; each worker reads files of its own. Their index, which
`prepare` writes, has to lie beside them; through it the test is read as anywhere.
"""

import os
from collections.abc import Callable

import tensorflow as tf

from dawnbench_tf.data.images import jpeg_index, shards
from dawnbench_tf.data.images.jpeg_index import JpegIndex
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.refusals import one_line, refuse

BUFFER = 10_000  # images that are shuffled at a time: 1.1 GB of ImageNet's
FILES = 16  # read at a time, by turns


def find(url: str, flag: str = "data_dir") -> Splits:
    """The data set that `prepare` made, wherever it was copied to.

    Raises:
      Refusal: no index is there, or it can't be read.
    """
    train, test = (_index(url, split, flag) for split in ("train", "validation"))
    in_sequence = Split(train.labels, in_sequence=_in_sequence(train))
    source = f"TFRecord shards, in the order of files and {BUFFER:,} images at a time"
    return Splits(in_sequence, jpeg_index.split(test), Origin(source))


def _index(url, split, flag) -> JpegIndex:
    path = f"{url.rstrip('/')}/{shards.INDEX.format(split=split)}"
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            index, _ = shards.unpack(url.rstrip("/"), file.read(shards.LARGEST_INDEX))
    except (tf.errors.OpError, ValueError) as error:
        why = one_line(getattr(error, "message", None) or error, 80)
        refuse(
            flag, url, f"{os.path.basename(path)} can't be read there ({why}); prepare writes it"
        )
    return index


def _in_sequence(index) -> Callable[..., tf.data.Dataset]:
    paths = tf.constant([index.full_path(name) for name in index.paths])

    def examples(seed, worker, workers):
        order = tf.random.experimental.stateless_shuffle(tf.range(len(paths)), seed)
        files = tf.data.Dataset.from_tensor_slices(tf.gather(paths, order[worker::workers]))
        records = files.interleave(
            tf.data.TFRecordDataset, FILES, num_parallel_calls=FILES, deterministic=True
        )

        def shuffled(block, some):  # Dataset.shuffle takes no seed of a graph
            own = tf.random.experimental.stateless_fold_in(seed, block)
            return tf.random.experimental.stateless_shuffle(some, own)

        blocks = records.batch(BUFFER).enumerate().map(shuffled)
        return blocks.unbatch().map(shards.parse)

    return examples
