"""Verified models by name: `build("resnet56_tf", data_format="NCHW")`, `names()`.

Importing this package does not import TensorFlow; building a model does. Models are made of the
Keras that your `tf.keras` is, Keras 3 or tf-keras 2. Keras's global settings are not changed.

Each family of networks has a module with its `body`; bodies use `blocks`,
`factories` and `checks`. `networks` adds input and head, `texts` lists the inputs of readers and
the arguments that they share. `catalog` has a row for each variant, `layers` our Keras layers,
`weights` the loaders of published weights.

May import: nothing of dawnbench_tf.
"""

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .catalog import VARIANTS, Variant

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["names", "get", "build", "load_model", "load_published", "Variant"]


_LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}  # Keras's names of layouts
_REPLACEMENTS = {  # of arguments that keras.applications has
    "weights": "use load_published(model, file) to load weights from a file",
    "include_top": 'use model.get_layer("features").output for the features before the head',
    "classes": "use num_classes",
}


def names(pattern: str = "*") -> list[str]:
    """Returns the names of the models that match a pattern, in catalogue order.

    >>> names("resnet50_v*")
    ['resnet50_v1', 'resnet50_v1_5', 'resnet50_v1_slim', 'resnet50_v2', 'resnet50_v2_keras']

    Args:
      pattern: shell-style wildcard pattern (`fnmatch`), case-sensitive; default: all models.
    """
    return [name for name in VARIANTS if fnmatchcase(name, pattern)]


def get(name: str) -> Variant:
    """Returns the catalogue row of a model: its parameters, multiply-adds, published accuracy, ...

    The row of a MODULE:FUNCTION, a network that `imported` builds, lacks these figures.

    >>> row = get("resnet50_v1_5")
    >>> row.parameters, row.multiply_adds, row.top1, row.source
    (25557032, 4089184256, 76.13, 'Gross & Wilber 2016, fb.resnet.torch')

    Args:
      name: name of the model, one of `names()`.

    Raises:
      ValueError: no model has this name; the message suggests similar names.
    """
    if re.fullmatch(r"[A-Za-z_][\w.]*(?<!\.py):[A-Za-z_]\w*", str(name)):
        return Variant(name, "imported", {"function": name}, 0, None, name)
    if name not in VARIANTS:
        text = str(name)[:100]
        near = [variant for variant in VARIANTS if variant.startswith(f"{text}_")]
        near = near or get_close_matches(text, VARIANTS, n=1)
        module, _, function = text.replace(".py:", ":").replace(":", ".").rpartition(".")
        if module and all(part.isidentifier() for part in (*module.split("."), function)):
            near = [f"{module}:{function}"] * (f"{module}:{function}" != text)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "names() lists them."
        raise ValueError(
            "`name` should be a model of the catalogue, or MODULE:FUNCTION; "
            f"{hint} Received: name={text!r}"
        )
    return VARIANTS[name]


def build(
    variant: str,
    /,
    *,
    num_classes: int | None = None,
    input_shape: Sequence[int | None] | None = None,
    data_format: str | None = None,
    dtype: str | None = None,
    synchronized: bool | None = None,
    name: str | None = None,
    **overrides: Any,
) -> "tf.keras.Model":
    """Builds a model of the catalogue: a `tf.keras.Model` that returns float32 logits.

    Args:
      variant: name of the model, one of `names()`. Or MODULE:FUNCTION, a function that returns a
        Keras classifier, as "keras.applications:ConvNeXtTiny".
      num_classes: number of classes, at least 1; default: that of the model's data set, 10 or 1000.
      input_shape: (height, width, channels), or (channels, height, width) with NCHW; height and
        width may be None. Default: the model's own, 32x32x3 or 224x224x3.
      data_format: "NHWC" (default) or "NCHW"; Keras's "channels_last" and "channels_first" too.
      dtype: Keras dtype or policy of the layers, e.g. "mixed_bfloat16"; default: Keras's global
        policy. Image classifiers in float64 return float64 logits.
      synchronized: whether BN statistics are those of the global batch; default: of each replica.
      name: name of the Keras model; default: `variant`.
      **overrides: arguments of the family's `body`, in place of the catalogue's, e.g. `depth`; the
        module `get(variant).family` documents them.

    Readers take `dtype`, `name` and the arguments of their `body` only.

    Returns:
      Image classifiers: model from (batch, *input_shape) to logits (batch, num_classes).
      Readers: model from a list of inputs, named and shaped as `texts.INPUTS` says, to logits of
      the answer's first and last token (batch, 2, context), -1e30 at padding.

    Raises:
      ValueError: the model does not exist, it has no such argument, or a value is out of range.
    """
    row, networks = get(variant), import_module(f"{__name__}.networks")
    own = {
        "num_classes": num_classes,
        "input_shape": input_shape,
        "data_format": _LAYOUTS.get(data_format or "", data_format),
        "dtype": dtype,
        "synchronized": synchronized,
        "name": name,
    }
    own = {argument: value for argument, value in own.items() if value is not None}
    args = {**row.args, **own, **overrides}
    accepted = [item for item in networks.arguments(row) if item != "function"]  # of `imported`
    if unknown := sorted({**own, **overrides}.keys() - {*accepted}):
        hint = _REPLACEMENTS.get(unknown[0], f"its arguments are {', '.join(accepted)}")
        raise ValueError(f"`{unknown[0]}` is not an argument of build for {variant}: {hint}.")
    try:
        return networks.build(row, args)
    except (AttributeError, RuntimeError, TypeError) as error:
        backend = import_module("tensorflow").keras.backend.backend()
        if backend == "tensorflow":
            raise
        text = f"{variant} needs Keras's TensorFlow backend, or an argument is wrong"
        cause = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
        raise ValueError(f"{text} ({cause}). Received: KERAS_BACKEND={backend}") from error


def load_model(file: str | os.PathLike) -> "tf.keras.Model":
    """Loads a `.keras` file that `model.save` wrote of a network of the catalogue.

    The file is checked before Keras reads it: it may contain Keras's layers, this package's, and
    layers that your program registered. What runs code or opens files is refused, and what else is
    none of these layers, as operations in networks of keras.applications. The file must be from the
    same Keras (Keras 3 or tf-keras).
    `tf.keras.models.load_model` loads all these files, after `import dawnbench_tf.models.layers`.

    Args:
      file: path of the file.

    Returns:
      The model, with its weights.

    Raises:
      ValueError: the file does not exist, is not a `.keras` file, is damaged, or names classes or
        functions that are not allowed.
    """
    return import_module(f"{__name__}.serialization").load_model(file)


def load_published(
    model: "tf.keras.Model", file: str | os.PathLike, new_head: bool = False, download: bool = False
) -> bool:
    """Loads published weights into a ResNet or a BERT of the catalogue.

    File formats: PyTorch state dicts (.pth, .th, .bin), also inside a training script's checkpoint;
    .safetensors; Keras's .h5, including Keras 3's; TensorFlow checkpoints. No code in a file is
    run.

    Layer names: those of torchvision, timm, keras.applications, and CIFAR ResNets named like
    torchvision's; for BERTs those of Hugging Face and google-research/bert, with the span head if
    the BERT was fine-tuned on SQuAD. If the file has a bias in front of a BN and our network has
    none, it is subtracted from the BN's moving mean.

    Standardize images as the publisher of the weights did; the file does not say how.

    Args:
      model: model of `build`, in any precision and layout.
      file: path of the file; for a TensorFlow checkpoint its prefix or its .index. Or the name
        of a publisher: "torchvision" (IMAGENET1K_V1), "torchvision_v2" (IMAGENET1K_V2) or
        "akamaster" (ResNets for CIFAR-10). Its file for `model.name` is read from Keras's cache.
      new_head: accept a file of another number of classes, with another head, or without; the
        dense layers of a ResNet, or a BERT's span head, then keep their values.
      download: whether to download a publisher's file that is not in the cache. Its name states
        the start of its SHA-256, which is always checked.

    Returns:
      Whether the head was loaded too.

    Raises:
      ValueError: the file is damaged, has another format or is for another network; the model is
        not changed.
      OSError: the file can't be read or downloaded.
    """
    downloads = import_module(f"{__name__}.weights.downloads")
    if isinstance(file, str) and not os.path.exists(file):
        if file in downloads.PUBLISHERS:
            file = downloads.find(file, model.name, download)
        elif near := get_close_matches(file, downloads.PUBLISHERS, n=1):
            raise ValueError(f"`file` should be a file or a publisher; did you mean {near[0]!r}?")
    loaded: bool = import_module(f"{__name__}.weights").load(model, file, new_head)
    return loaded
