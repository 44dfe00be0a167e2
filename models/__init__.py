"""Verified models by name: `build("resnet56_tf", data_format="NCHW")`, `names()`.

Importing this package imports no TensorFlow; building a model does. Whichever Keras the importing
project uses (`tf.keras` as Keras 3 or as tf-keras 2) is the one the model is made of, and none of
its global settings is touched.

Here: a module for each family of networks, its `body`, and what bodies are made of, `blocks`,
`reader_blocks`, `factories`, `checks`; `arguments`, theirs by name; `networks`, which adds input
and head; `texts`, the inputs of readers. `catalog`: rows. `layers`: what Keras has not. `weights`:
published ones.

May import: nothing of dawnbench_tf.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Unpack

from .arguments import Overrides
from .catalog import VARIANTS, Variant

if TYPE_CHECKING:
    import os

    import tensorflow as tf

__all__ = ["names", "get", "build", "load_model", "load_published", "Variant"]


_LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}  # in Keras's words
_ELSEWHERE = {  # arguments of keras.applications: what does that here
    "weights": "load_published(model, file) gives a model weights of a file",
    "include_top": 'model.get_layer("features").output is what the head reads',
    "classes": "num_classes is the length of the logits",
}


def names(pattern: str = "*") -> list[str]:
    """Returns the names of variants, in catalogue order.

    >>> names("resnet50_v*")
    ['resnet50_v1', 'resnet50_v1_5', 'resnet50_v2', 'resnet50_v2_keras']

    Args:
      pattern: of the shell's kind (`fnmatch`), case counts.
    """
    return [name for name in VARIANTS if fnmatchcase(name, pattern)]


def get(name: str) -> Variant:
    """Returns the row of `name` in the catalogue.

    >>> row = get("resnet50_v1_5")
    >>> row.parameters, row.multiply_adds, row.top1, row.source
    (25557032, 4089184256, 76.13, 'Gross & Wilber 2016, fb.resnet.torch')

    Raises:
      ValueError: there is none; the message has names that are like it.
    """
    if name not in VARIANTS:
        text = str(name)[:100]
        near = [variant for variant in VARIANTS if variant.startswith(f"{text}_")]
        near = near or get_close_matches(text, VARIANTS, n=1)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "names() lists them."
        raise ValueError(
            f"`name` should be a model of the catalogue; {hint} Received: name={text!r}"
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
    **overrides: Unpack[Overrides],
) -> "tf.keras.Model":
    """Builds a variant as a `tf.keras.Model` that returns float32 logits.

    Args:
      variant: a name out of `names()`.
      num_classes: length of the logits, at least 1; default: the variant's data set's, 10 or 1000.
      input_shape: (height, width, channels), or (channels, height, width) with NCHW; sides may be
        None. Default: the variant's own, 32x32x3 or 224x224x3.
      data_format: "NHWC" (default) or "NCHW"; Keras's "channels_last" and "channels_first" too.
      dtype: precision of the layers as Keras has it, e.g. "mixed_bfloat16"; default: Keras's global
        policy.
      synchronized: BN statistics over the global batch, not over each replica's own (default).
      name: of the model; default: the variant's.
      **overrides: arguments of the family's `body` that replace the variant's; `get(variant)` says
        which family it is, and `arguments.Overrides` has them all.

    Readers take `dtype`, `name` and the arguments of their `body`.

    Returns:
      Of images: (batch, *input_shape) to logits (batch, num_classes). Of questions: what
      `texts.INPUTS` says of the inputs, named as there, to logits of the answer's first and last
      token (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: there is no such variant, it has no such argument, or one is out of range.
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
    if unknown := sorted(args.keys() - networks.arguments(row)):
        instead = _ELSEWHERE.get(unknown[0], f"those are {', '.join(networks.arguments(row))}")
        raise ValueError(f"`{unknown[0]}` is no argument of build for {variant}: {instead}.")
    return networks.build(row, args)


def load_model(file: "str | os.PathLike") -> "tf.keras.Model":
    """Loads a `.keras` file that `model.save` wrote of a model of `build`, in any process.

    A file may name Keras's layers, ours and those that the program registered; one that names
    anything else, or a layer that runs code or opens files, is refused before Keras sees it.
    Keras's own `tf.keras.models.load_model` loads any file of `build` once
    `dawnbench_tf.models.layers` is imported, which registers our layers. The Keras must be
    the one that wrote the file.

    Args:
      file: path of the file.

    Raises:
      ValueError: the file does not exist, is no `.keras` file, is damaged, or names classes or
        functions that are not allowed.
    """
    return import_module(f"{__name__}.serialization").load_model(file)


def load_published(model: "tf.keras.Model", file: "str | os.PathLike") -> None:
    """Gives a ResNet or a BERT of the catalogue the weights that somebody published for it.

    Files: PyTorch's state dicts (.pth, .th, .bin), alone or in a training script's checkpoint;
    .safetensors; Keras's .h5, of Keras 3 too; a TensorFlow checkpoint, or its .index. Names of
    layers: those of torchvision, timm and keras.applications, and of CIFAR ResNets in torchvision's
    manner; of BERTs Hugging Face's and google-research/bert's, with the head of one trained on
    SQuAD. A
    bias in front of a BN, where our network has none, is taken off the BN's mean. Nothing that a
    file may hold is run. How images are standardized belongs to the weights: look it up where they
    come from.

    Args:
      model: of `build`, in any precision and layout.
      file: path of the file.

    Raises:
      ValueError: the file is damaged, of another kind or of another network; the model is as it
        was.
      OSError: the file can't be read.
    """
    import_module(f"{__name__}.weights.resnets").load(model, file)
