"""Data sets that TensorFlow Datasets prepares, or has prepared, in a folder."""

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import tensorflow as tf

from dawnbench_tf.refusals import one_line, refuse

T = TypeVar("T")


def check_reachable(url: str) -> None:
    """Refuses at once where TensorFlow Datasets would try again for minutes."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=10).close()
    except urllib.error.HTTPError:
        pass  # it answers
    except OSError as error:
        refuse("download", True, f"{url} can't be reached ({one_line(error, 80)})")


def read(
    root: Path,
    name: str,
    splits: tuple[str, ...],
    convert: Callable[[tf.data.Dataset], T],
    download: bool,
) -> list[T]:
    """Reads splits of a data set.

    Args:
      root: TensorFlow Datasets' `data_dir`.
      name: of the data set, e.g. "squad/v1.1".
      splits: their names.
      convert: takes a split as a data set of dicts; what it returns is returned.
      download: download and prepare the data set in `root` first.

    Raises:
      Refusal: the data set is not there, or is damaged.
    """
    builder = _builder(root, name, download)
    try:
        return [convert(builder.as_dataset(split=split)) for split in splits]
    except Exception as error:  # TFDS raises errors of a dozen kinds for damaged or missing files
        refuse("data_dir", root, f"TensorFlow Datasets can't read {name} in it: {one_line(error)}")


def prepare(root: Path, name: str) -> None:
    """Downloads and prepares a data set in TensorFlow Datasets' `data_dir`. Raises Refusal."""
    _builder(root, name, download=True)


def _builder(root, name, download):
    import tensorflow_datasets  # takes seconds, and only this path needs it

    action = "could not download" if download else "can't read"
    try:
        builder = tensorflow_datasets.builder(name, data_dir=root)
        if download:
            builder.download_and_prepare()
        return builder
    except Exception as error:  # of a dozen kinds
        refuse("data_dir", root, f"TensorFlow Datasets {action} {name} in it: {one_line(error)}")
