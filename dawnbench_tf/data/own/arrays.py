"""Examples that the caller passes to `train`: arrays, data sets, or a function for them."""

from typing import Any

import numpy as np
import tensorflow as tf

from dawnbench_tf.data.images.splits import Split, Splits, in_memory
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import division
from dawnbench_tf.data.questions.encoding import Encoded
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import GIVEN

Examples = Splits | Encoded
_FORMS = (
    "should be (x_train, y_train, x_test, y_test), flat or in pairs, (x, y) with validation_share, "
    "two tf.data data sets of (image, label), or a function that returns one of these"
)


def to_splits(data: Any, recipe: Recipe) -> Examples:
    """Converts what `train` takes as `data` to the form that training reads. Raises Refusal."""
    if isinstance(data, Splits | Encoded):
        expected = Splits if recipe.task_row.inputs == "images" else Encoded
        if not isinstance(data, expected):
            name, inputs = recipe.task_row.name, recipe.task_row.inputs
            raise Refusal(f"data: are {type(data).__name__}; {name} has {inputs}")
        return data
    if callable(data):
        data = data()
        if callable(data):
            raise Refusal(f"data: returned a function; {_FORMS}")
        return to_splits(data, recipe)
    if recipe.task_row.inputs != "images":
        text = "should be `Encoded`, the `splits` of `dataset.open`"
        raise Refusal(f"data: is a {type(data).__name__}; {text}")
    if not isinstance(data, tuple | list):
        raise Refusal(f"data: is a {type(data).__name__}; {_FORMS}")
    if len(data) == 2 and all(isinstance(part, tuple) and len(part) == 2 for part in data):
        data = (*data[0], *data[1])  # Keras's ((x_train, y_train), (x_test, y_test))
    if len(data) == 2 and all(isinstance(part, tf.data.Dataset) for part in data):
        pairs = [_read_pairs(part) for part in data]
        return from_arrays((*pairs[0], *pairs[1]), recipe)
    if len(data) not in (2, 4):
        raise Refusal(f"data: has {len(data)} parts; {_FORMS}")
    return from_arrays(data, recipe)


def _read_pairs(dataset: tf.data.Dataset) -> tuple[np.ndarray, np.ndarray]:
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise Refusal("data: a data set has no end; leave out its repeat()")
    elements = []
    for element in dataset.as_numpy_iterator():
        if not isinstance(element, tuple) or len(element) != 2:
            raise Refusal("data: a data set should have single (image, label) pairs")
        elements.append(element)
    if not elements:
        raise Refusal("data: a data set is empty; should have single (image, label) pairs")
    images, labels = zip(*elements, strict=True)
    if np.ndim(images[0]) == 4:
        raise Refusal("data: a data set has batches; pass its unbatch()")
    if len({np.shape(image) for image in images}) > 1:
        raise Refusal("data: images of several sizes; resize them, or use --task=folder")
    return np.stack(images), np.stack(labels)


def from_arrays(arrays: Any, recipe: Recipe, where: str = "data") -> Splits:
    """Makes splits of arrays: (x_train, y_train, x_test, y_test), or (x, y) to divide."""
    share = recipe.validation_share
    if (len(arrays) == 2) != bool(share):
        text = "divides x and y; there is a test set" if share else "is needed to divide x and y"
        refuse("validation_share", share, text)
    if recipe.jpegs:
        refuse("recipe", recipe.name, f"reads JPEGs, and {where} has arrays; own/images takes them")
    splits = [split(arrays[i], arrays[i + 1], where) for i in range(0, len(arrays), 2)]
    if share:
        train, test = division.divide(splits[0].labels, share, recipe.seed)
        splits = [splits[0].take(train), splits[0].take(test)]
    if len({part.images(slice(1)).shape[1:] for part in splits}) > 1:
        raise Refusal(f"{where}: training and test images have different sizes")
    return Splits(splits[0], splits[1], Origin(GIVEN))


def split(images: Any, labels: Any, where: str) -> Split:
    """Makes a split of arrays. Raises Refusal, which names `where`, for other types or shapes."""
    try:
        images, labels = np.asarray(images), np.asarray(labels)
    except ValueError:  # NumPy's for ragged lists
        text = "images or labels of several shapes; resize the images, or use --task=folder"
        raise Refusal(f"{where}: {text}") from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        text = f"labels are {labels.dtype} {labels.shape}; should be whole numbers (examples,)"
        text = text if labels.size else "holds no example"
        named = "; one list numbers those of training and test, as sorted(set(labels)).index"
        raise Refusal(f"{where}: {text}{named * (labels.ndim == 1 and labels.size > 0)}")
    labels = labels.astype(np.int64)
    if labels.min() < 0:
        raise Refusal(f"{where}: label {labels.min()} should be 0 or more")
    if images.ndim == 3:
        images = images[..., None]
    sides = images.shape[1:3]
    if images.ndim != 4 or images.shape[3] not in (1, 3) or not 0 < sides[0] == sides[-1]:
        text = f"images are {images.shape}"
        raise Refusal(f"{where}: {text}; should be (examples, side, side, 1 or 3)")
    if images.dtype != np.uint8:
        text = f"images are {images.dtype}"
        raise Refusal(f"{where}: {text}; should be uint8, 0 to 255")
    if len(images) != len(labels):
        text = f"{len(images)} images and {len(labels)} labels"
        raise Refusal(f"{where}: {text}; should be one label for each image")
    if images.shape[3] == 1:  # the networks take three channels
        images = np.repeat(images, 3, axis=3)
    return in_memory(images, labels)
