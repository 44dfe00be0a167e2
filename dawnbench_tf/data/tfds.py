"""TensorFlow Datasets: preparing a data set in a folder, and reading a prepared one."""

import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import tensorflow as tf

from dawnbench_tf.refusals import one_line, refuse, refusing

if TYPE_CHECKING:
    import tensorflow_datasets

T = TypeVar("T")


def is_prepared(folder: Path) -> bool:
    """Whether a folder, e.g. `data_dir`/cifar10, holds a prepared data set, and not e.g. a run."""
    name = "dataset_info.json"  # in cifar10/3.0.2, or of a configuration in squad/v1.1/3.0.0
    return any(any(folder.glob(pattern)) for pattern in (f"*/{name}", f"*/*/{name}"))


def check_reachable(url: str, folder: Path) -> None:
    """Raises Refusal within 10 s if a server can't be reached; TFDS would retry for minutes."""
    # Does nothing if `folder` holds the prepared data set: it needs no server.
    if is_prepared(folder):
        return
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=10).close()
    except urllib.error.HTTPError:
        pass  # the server answers
    except OSError as error:
        refuse("download", True, f"{url} can't be reached ({one_line(error, 80)})")


def read(
    opened: "tensorflow_datasets.core.DatasetBuilder",
    split: str,
    convert: Callable[[tf.data.Dataset], T],
    encoded: Sequence[str] = (),
) -> T:
    """Returns the value of `convert` for a split's examples; features in `encoded` as stored."""
    import tensorflow_datasets

    decoders = {name: tensorflow_datasets.decode.SkipDecoding() for name in encoded}
    fault = f"TensorFlow Datasets can't read {opened.info.full_name}"
    with refusing(f"--data_dir={one_line(opened.data_dir)}", fault, Exception):  # of a dozen types
        return convert(opened.as_dataset(split=split, decoders=decoders))


def builder(
    root: Path, name: str, download: bool = False
) -> "tensorflow_datasets.core.DatasetBuilder":
    """Opens a data set of TensorFlow Datasets."""
    import tensorflow_datasets  # takes seconds; only TFDS's folders need it

    action = "could not download" if download else "can't read"
    fault = f"TensorFlow Datasets {action} {name} in it"
    with refusing(f"--data_dir={one_line(root)}", fault, Exception):
        opened = tensorflow_datasets.builder(name, data_dir=root)
        if download:
            opened.download_and_prepare()
        return opened
